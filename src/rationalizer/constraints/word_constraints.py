"""Words that must be selected, and words that never may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from rationalizer.constraints.base import register
from rationalizer.constraints.layer_arguments import Flags, TextConstraint, TextRequirements
from rationalizer.constraints.patterns import check_pattern, find_pattern, mask_for_text, spans_for_text, to_tuples
from rationalizer.constraints.stopwords import STOPWORDS
from rationalizer.text import is_punctuation
from rationalizer.text.errors import InputError, short_repr

KINDS = ("stopwords", "punctuation")


@dataclass(frozen=True, repr=False)
class _Words(TextConstraint):
    words: Sequence[str] = ()
    pattern: str | None = None
    stopwords: bool = False
    punctuation: bool = False
    characters: Sequence[Any] | None = None
    mask: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        for key in ("words", "characters", "mask"):
            object.__setattr__(self, key, to_tuples(getattr(self, key)))
        if isinstance(self.words, str) or not all(isinstance(word, str) for word in self.words):
            raise InputError(f"{self.name}: words are a list such as ['not', 'never'], got {short_repr(self.words)}")
        spaced = next((word for word in self.words if not word or word.split() != [word]), None)
        if spaced is not None:
            raise InputError(f"{self.name}: {short_repr(spaced)} is not one word", "give its words, or a pattern")
        if self.pattern is not None:
            check_pattern(self.name, self.pattern)
        for key in KINDS:
            if not isinstance(getattr(self, key), bool):
                raise InputError(f"{self.name}: {key} must be true or false, got {short_repr(getattr(self, key))}")
        for key in ("characters", "mask"):
            if not isinstance(getattr(self, key), tuple | None):
                raise InputError(f"{self.name}: {key} is a list, got {short_repr(getattr(self, key))}")
        if not self._settings():
            raise InputError(f"{self.name}: which words? give {', '.join(item.name for item in fields(self))}")

    @property
    def per_text(self) -> bool:
        return self.characters is not None or self.mask is not None

    @classmethod
    def parse_value(cls, value: str) -> Self:
        """Kinds, then words, then a pattern, with commas between: "stopwords,words:a,b,pattern:REGEX"."""
        kinds, colon, pattern = f",{value}".partition(",pattern:")
        kinds, _, words = kinds.partition(",words:")
        flags = [kind.strip() for kind in kinds.split(",") if kind.strip()]
        for kind in flags:
            if kind not in KINDS:
                raise InputError(
                    f"stopwords, punctuation, words:... or pattern:... was expected, got {short_repr(kind)}"
                )
        return cls(
            words=tuple(word.strip() for word in words.split(",") if word.strip()),
            pattern=pattern if colon else None,
            stopwords="stopwords" in flags,
            punctuation="punctuation" in flags,
        )

    def format_value(self) -> str:
        parts = [kind for kind in KINDS if getattr(self, kind)]
        parts += [f"words:{','.join(self.words)}"] if self.words else []
        parts += [key for key in ("characters", "mask") if getattr(self, key) is not None]
        return ",".join([*parts, f"pattern:{self.pattern}"] if self.pattern is not None else parts)

    def describe(self) -> str:
        kinds = [kind for kind in KINDS if getattr(self, kind)]
        kinds += [f"“{word}”" for word in self.words]
        kinds += [f"/{self.pattern}/"] if self.pattern is not None else []
        kinds += ["what is marked"] if self.per_text else []
        return f"{self.name} {', '.join(kinds)}"

    def marked(self, text: TextRequirements) -> Flags:
        """The tokens it speaks of."""
        tokens = text.example.tokens
        wanted = {word.casefold() for word in self.words} | (STOPWORDS if self.stopwords else set())
        flags = np.zeros(len(tokens), dtype=bool)
        if wanted:
            flags |= [token.casefold().replace("’", "'") in wanted for token in tokens]
        if self.punctuation:
            flags |= [is_punctuation(token) for token in tokens]
        spans = [] if self.pattern is None else find_pattern(self.pattern, text.example.text)
        if self.characters is not None:
            spans += spans_for_text(self.name, self.characters, text.source)
        for span in spans:
            flags[text.touched(*span)] = True
        if self.mask is not None:
            flags |= mask_for_text(self.name, self.mask, text.source)
        return flags


@register("must", "must=words:not,never or must=pattern:\\d+ stars")
@dataclass(frozen=True, repr=False)
class Must(_Words):
    """Words that must be selected, wherever they stand; they use up the budget.

    Args:
        words: compared without regard to case.
        pattern: a regular expression; every word it touches.
        stopwords, punctuation: these, if True. Stopwords are English; those that negate are not among them.
        characters: for each text, (start, end) spans of characters; for these texts only, so not in training.
        mask: for each text, a 0 or 1 a token; for these texts only.
    """

    def update_text(self, text: TextRequirements) -> None:
        text.must |= self.marked(text)


@register("never", "never=stopwords or never=words:good,bad")
@dataclass(frozen=True, repr=False)
class Never(_Words):
    """Words that are never selected, named as those of `Must`. A span does not go across them."""

    suggested = ("never=stopwords",)

    def update_text(self, text: TextRequirements) -> None:
        text.never |= self.marked(text)
