"""Words as an encoder's tokenizer writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rationalizer.text import Example

MOST = 16  # tokens of a word; what follows is dropped. Only addresses, hashes and the like have more
REMEMBERED = 1 << 17  # words whose tokens are not looked up again


@dataclass(frozen=True)
class Subwords:
    """Every word is cut by itself, so its tokens say nothing of its neighbours but whether there is a blank before it.

    Args:
        tokenizer: a `tokenizers.Tokenizer`.
        prefix, suffix: the special tokens around a text.
        mask, unknown: the tokens for a word that is hidden, and for one that cannot be written; None if there are none.
    """

    tokenizer: Any
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    mask: int | None
    unknown: int | None
    _found: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, tokenizer: Any) -> Subwords:
        """Of a fast tokenizer of transformers."""
        bare = tokenizer("a", add_special_tokens=False)["input_ids"]
        whole = tokenizer("a")["input_ids"]
        before = next(k for k in range(len(whole)) if whole[k : k + len(bare)] == bare)
        return cls._clean(
            tokenizer.backend_tokenizer.to_str(),
            tuple(whole[:before]),
            tuple(whole[before + len(bare) :]),
            tokenizer.mask_token_id,
            tokenizer.unk_token_id,
        )

    @classmethod
    def _clean(cls, text: str, *others: Any) -> Subwords:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(text)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return cls(tokenizer, *others)

    def to_json(self) -> dict[str, Any]:
        return {
            "tokenizer": json.loads(self.tokenizer.to_str()),
            "prefix": list(self.prefix),
            "suffix": list(self.suffix),
            "mask": self.mask,
            "unknown": self.unknown,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Subwords:
        tokens = [tuple(map(int, stored[side])) for side in ("prefix", "suffix")]
        return cls._clean(json.dumps(stored["tokenizer"]), *tokens, stored["mask"], stored["unknown"])

    @property
    def special(self) -> int:
        """How many tokens stand around a text."""
        return len(self.prefix) + len(self.suffix)

    def of_text(self, text: Example) -> list[tuple[int, ...]]:
        """The tokens of each word."""
        starts = (start for start, _ in text.offsets)
        return self._find(
            f" {token}" if start and text.text[start - 1].isspace() else token
            for token, start in zip(text.tokens, starts, strict=True)
        )

    def knows(self, token: str) -> bool:
        return any(part != self.unknown for part in self._find([token])[0])

    def _find(self, written: Iterable[str]) -> list[tuple[int, ...]]:
        written = list(written)
        missing = sorted({word for word in written if word not in self._found})
        if missing:
            if len(self._found) + len(missing) > REMEMBERED:
                self._found.clear()
                missing = sorted(set(written))
            for word, tokens in zip(missing, self._encode(missing), strict=True):
                self._found[word] = tokens
        return [self._found[word] for word in written]

    def _encode(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        # A word that the tokenizer writes as nothing at all is an unknown one.
        nothing = (next(i for i in (self.unknown, self.mask, 0) if i is not None),)
        clean = [word.encode("utf-8", "replace").decode() for word in words]  # halves of surrogate pairs become "?"
        encoded = self.tokenizer.encode_batch(clean, add_special_tokens=False)
        return [tuple(each.ids[:MOST]) or nothing for each in encoded]
