"""The words of a training set and their ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

NOTHING = 0  # padding, and words that are not in the vocabulary
FIRST_WORD = 1


class Vocabulary:
    """The words of a training set, numbered from 1; 0 is everything else.

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
    def from_counts(cls, words: Counter[str], lower: bool = False, min_count: int = 1) -> Vocabulary:
        """Every word that occurs at least `min_count` times, most frequent first, ties in alphabetical order."""
        if min_count < 1:
            raise ValueError(f"min_count must be at least 1, got {min_count}")
        counts = words
        if lower:
            counts = Counter()
            for word, count in words.items():
                counts[word.lower()] += count
        kept = [word for word, count in counts.items() if count >= min_count]
        return cls(sorted(kept, key=lambda word: (-counts[word], word)), lower=lower)

    def id(self, token: str) -> int:
        return self._id.get(token.lower() if self.lower else token, NOTHING)

    def __len__(self) -> int:
        """The number of ids, including 0: the rows of an embedding table."""
        return FIRST_WORD + len(self.words)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.id(word) != NOTHING

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self.words, self.lower) == (other.words, other.lower)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Vocabulary({len(self.words)} words, lower={self.lower})"

    def to_json(self) -> dict[str, Any]:
        return {"lower": self.lower, "words": list(self.words)}

    @classmethod
    def from_json(cls, stored: Any) -> Vocabulary:
        if not (
            isinstance(stored, dict)
            and isinstance(stored.get("lower"), bool)
            and isinstance(words := stored.get("words"), list)
            and all(isinstance(word, str) for word in words)
        ):
            raise ValueError("a stored vocabulary is an object with 'words' (a list) and 'lower' (true or false)")
        return cls(words, lower=stored["lower"])
