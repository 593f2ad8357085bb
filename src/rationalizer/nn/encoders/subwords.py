"""Words as an encoder's tokenizer writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rationalizer.text import DataError, Example

MOST = 16  # tokens of a word; what follows is dropped. Only addresses, hashes and the like have more
REMEMBERED = 1 << 17  # words whose tokens are not looked up again
BLANK = "▁"  # as SentencePiece writes it
Before = Literal["start", "blank", "word"]  # what stands before a word: nothing, a blank, or another word
Written = tuple[str, Before]


@dataclass(frozen=True)
class Subwords:
    """Every word is cut by itself, so its tokens say nothing of its neighbours but whether there is a blank before it:
    to a text's first word there is one for those tokenizers that begin every text with "▁".

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
    _found: dict[Written, tuple[int, ...]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, tokenizer: Any) -> Subwords:
        """Of a fast tokenizer of transformers."""
        bare = tokenizer("a", add_special_tokens=False)["input_ids"]
        whole = tokenizer("a")["input_ids"]
        before = next((k for k in range(len(whole)) if whole[k : k + len(bare)] == bare), None)
        if before is None:
            raise DataError("a tokenizer that writes words otherwise between special tokens cannot be used")
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
        tokenizer.encode_special_tokens = True  # "[SEP]" in a text is a word like any other
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
        starts = [start for start, _ in text.offsets]
        before: list[Before] = [
            "start" if start == 0 else "blank" if text.text[start - 1].isspace() else "word" for start in starts
        ]
        return self._find(list(zip(text.tokens, before, strict=True)))

    def knows(self, token: str) -> bool:
        return any(part != self.unknown for part in self._find([(token, "blank")])[0])

    def _find(self, written: list[Written]) -> list[tuple[int, ...]]:
        missing = sorted({each for each in written if each not in self._found})
        new = dict(zip(missing, self._encode(missing), strict=True)) if missing else {}
        # Other threads may forget in between: what is needed is at hand.
        found = [new.get(each) or self._found.get(each) or self._encode([each])[0] for each in written]
        if len(self._found) + len(new) > REMEMBERED:
            self._found.clear()
        self._found.update(new)
        return found

    def _encode(self, written: Sequence[Written]) -> list[tuple[int, ...]]:
        # Halves of surrogate pairs become "?".
        words = [word.encode("utf-8", "replace").decode() for word, _ in written]
        spaced = [f" {word}" if before == "blank" else word for word, (_, before) in zip(words, written, strict=True)]
        encoded = self.tokenizer.encode_batch(spaced, add_special_tokens=False)
        # A word that the tokenizer writes as nothing at all is an unknown one.
        nothing = (next(i for i in (self.unknown, self.mask, 0) if i is not None),)
        cut = [
            self._without_blank(each) if before == "word" and not word.startswith(BLANK) else list(each.ids)
            for each, word, (_, before) in zip(encoded, words, written, strict=True)
        ]
        return [tuple(ids[:MOST]) or nothing for ids in cut]

    def _without_blank(self, encoding: Any) -> list[int]:
        """For a word that follows another one directly: some tokenizers begin whatever they are given with a blank."""
        ids, first = list(encoding.ids), encoding.tokens[0] if encoding.tokens else ""
        if not first.startswith(BLANK):
            return ids
        bare = self.tokenizer.token_to_id(first[len(BLANK) :]) if first != BLANK else None
        return ids[1:] if first == BLANK else ids if bare is None else [bare, *ids[1:]]
