"""Words as the subwords of a transformer's tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rationalizer.text.errors import DataError
from rationalizer.text.example import Example

MAX_SUBWORDS = 16  # per word; the rest is dropped. Only addresses, hashes and the like have more
CACHE_SIZE = 1 << 17  # words
BLANK = "▁"  # SentencePiece's symbol for a blank
Context = Literal["start", "blank", "word"]  # before a word: the start of the text, a blank, or another word
WordInContext = tuple[str, Context]


@dataclass(frozen=True)
class Subwords:
    """Every word is tokenized by itself, so its subwords depend on its neighbours only by whether a blank precedes it.
    For tokenizers that begin every text with "▁", a blank precedes the first word.

    Args:
        tokenizer: a `tokenizers.Tokenizer`.
        prefix, suffix: the special tokens around a text.
        mask, unknown: the tokens for a masked word, and for one that cannot be tokenized; None if there are none.
    """

    tokenizer: Any
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    mask: int | None
    unknown: int | None
    _cache: dict[WordInContext, tuple[int, ...]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_tokenizer(cls, tokenizer: Any) -> Subwords:
        """From a fast tokenizer of transformers."""
        bare = tokenizer("a", add_special_tokens=False)["input_ids"]
        whole = tokenizer("a")["input_ids"]
        before = next((k for k in range(len(whole)) if whole[k : k + len(bare)] == bare), None)
        if before is None:
            raise DataError("the tokenizer changes words between special tokens; choose another encoder")
        return cls.from_text(
            tokenizer.backend_tokenizer.to_str(),
            tuple(whole[:before]),
            tuple(whole[before + len(bare) :]),
            tokenizer.mask_token_id,
            tokenizer.unk_token_id,
        )

    @classmethod
    def from_text(cls, text: str, *others: Any) -> Subwords:
        """From the JSON text of a tokenizer, and the other fields."""
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
        return cls.from_text(json.dumps(stored["tokenizer"]), *tokens, stored["mask"], stored["unknown"])

    @property
    def special(self) -> int:
        """The number of special tokens around a text."""
        return len(self.prefix) + len(self.suffix)

    def tokenize(self, text: Example) -> list[tuple[int, ...]]:
        """The subwords of each word."""
        starts = [start for start, _ in text.offsets]
        contexts: list[Context] = [
            "start" if start == 0 else "blank" if text.text[start - 1].isspace() else "word" for start in starts
        ]
        return self._look_up(list(zip(text.tokens, contexts, strict=True)))

    def knows(self, token: str) -> bool:
        return any(part != self.unknown for part in self._look_up([(token, "blank")])[0])

    def _look_up(self, words: list[WordInContext]) -> list[tuple[int, ...]]:
        missing = sorted({word for word in words if word not in self._cache})
        new = dict(zip(missing, self._encode(missing), strict=True)) if missing else {}
        # Another thread may clear the cache in between.
        subwords = [new.get(word) or self._cache.get(word) or self._encode([word])[0] for word in words]
        if len(self._cache) + len(new) > CACHE_SIZE:
            self._cache.clear()
        self._cache.update(new)
        return subwords

    def _encode(self, words_in_context: Sequence[WordInContext]) -> list[tuple[int, ...]]:
        # Halves of surrogate pairs become "?".
        words = [word.encode("utf-8", "replace").decode() for word, _ in words_in_context]
        contexts = [context for _, context in words_in_context]
        spaced = [f" {word}" if before == "blank" else word for word, before in zip(words, contexts, strict=True)]
        encoded = self.tokenizer.encode_batch(spaced, add_special_tokens=False)
        # A word without any subwords is an unknown one.
        nothing = (next(i for i in (self.unknown, self.mask, 0) if i is not None),)
        cut = [
            self._without_blank(each) if before == "word" and not word.startswith(BLANK) else list(each.ids)
            for each, word, before in zip(encoded, words, contexts, strict=True)
        ]
        return [tuple(ids[:MAX_SUBWORDS]) or nothing for ids in cut]

    def _without_blank(self, encoding: Any) -> list[int]:
        """For a word directly after another one: some tokenizers put a blank before every input."""
        ids, first = list(encoding.ids), encoding.tokens[0] if encoding.tokens else ""
        if not first.startswith(BLANK):
            return ids
        bare = self.tokenizer.token_to_id(first[len(BLANK) :]) if first != BLANK else None
        return ids[1:] if first == BLANK else ids if bare is None else [bare, *ids[1:]]
