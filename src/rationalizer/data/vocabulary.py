"""Words and their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rationalizer.data.example import Example

PADDING = 0
UNKNOWN = 1
FIRST_WORD = 2


class Vocabulary:
    """The words of a training set, numbered from 2: 0 is padding, 1 is every word not among them.

    With `lower`, words are compared in lower case; the examples keep their own case.
    """

    def __init__(self, words: Sequence[str], *, lower: bool = False) -> None:
        self.words = tuple(words)
        self.lower = lower
        self._id = {word: index for index, word in enumerate(self.words, FIRST_WORD)}
        if len(self._id) != len(self.words):
            repeated = next(word for word, count in Counter(self.words).items() if count > 1)
            raise ValueError(f"a vocabulary lists each word once, {repeated!r} comes several times")
        if lower and (cased := next((word for word in self.words if word != word.lower()), None)) is not None:
            raise ValueError(f"a lower-cased vocabulary cannot hold {cased!r}; use lower=False or word.lower()")

    @classmethod
    def from_examples(cls, examples: Iterable[Example], lower: bool = False, min_count: int = 1) -> Vocabulary:
        """Every word seen at least `min_count` times, the most frequent first, ties in alphabetical order."""
        if min_count < 1:
            raise ValueError(f"min_count must be at least 1, got {min_count}")
        counts: Counter[str] = Counter()
        for example in examples:
            counts.update(token.lower() for token in example.tokens) if lower else counts.update(example.tokens)
        kept = [word for word, count in counts.items() if count >= min_count]
        return cls(sorted(kept, key=lambda word: (-counts[word], word)), lower=lower)

    def ids(self, tokens: Iterable[str]) -> list[int]:
        if self.lower:
            return [self._id.get(token.lower(), UNKNOWN) for token in tokens]
        return [self._id.get(token, UNKNOWN) for token in tokens]

    def __len__(self) -> int:
        """Number of ids, padding and unknown included: the rows an embedding table needs."""
        return FIRST_WORD + len(self.words)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and (word.lower() if self.lower else word) in self._id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self.words, self.lower) == (other.words, other.lower)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Vocabulary({len(self.words)} words, lower={self.lower})"

    def to_json(self) -> dict[str, Any]:
        return {"lower": self.lower, "words": list(self.words)}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Vocabulary:
        try:
            return cls(stored["words"], lower=stored["lower"])
        except (KeyError, TypeError) as error:
            raise ValueError(
                "a stored vocabulary is an object with 'words' (a list) and 'lower' (true or false)"
            ) from error
