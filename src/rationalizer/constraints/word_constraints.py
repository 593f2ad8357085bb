"""Words that must be selected, and words that must not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from rationalizer.constraints.base import register
from rationalizer.constraints.layer_arguments import Mask, TextConstraint, TextRequirements
from rationalizer.constraints.patterns import check_pattern, check_settings, mask_for_text, matched_spans, parse_flags
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
        check_settings(self, flags=KINDS, lists=("words", "characters", "mask"))
        if not all(isinstance(word, str) for word in self.words):
            raise InputError(f"{self.name}: words are a list such as ['not', 'never'], got {short_repr(self.words)}")
        spaced = next((word for word in self.words if not word or word.split() != [word]), None)
        if spaced is not None:
            raise InputError(f"{self.name}: {short_repr(spaced)} is not one word", "give its words, or a pattern")
        if self.pattern is not None:
            check_pattern(self.name, self.pattern)
        if not self._settings():
            raise InputError(
                f"{self.name}: no words are named", f"give {', '.join(item.name for item in fields(self))}"
            )

    @property
    def per_text(self) -> bool:
        return self.characters is not None or self.mask is not None

    @classmethod
    def parse_value(cls, value: str) -> Self:
        """Flags, then words, then a pattern, separated by commas: "stopwords,words:a,b,pattern:REGEX"."""
        flags, colon, pattern = f",{value}".partition(",pattern:")
        flags, _, words = flags.partition(",words:")
        return cls(
            words=tuple(word.strip() for word in words.split(",") if word.strip()),
            pattern=pattern if colon else None,
            **parse_flags(flags, KINDS, ", words:... or pattern:..."),
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
        kinds += ["marked tokens"] if self.per_text else []
        return f"{self.name} {', '.join(kinds)}"

    def matching_tokens(self, text: TextRequirements) -> Mask:
        tokens = text.example.tokens
        words = {word.casefold() for word in self.words} | (STOPWORDS if self.stopwords else set())
        mask = np.zeros(len(tokens), dtype=bool)
        if words:
            mask |= [token.casefold().replace("’", "'") in words for token in tokens]
        if self.punctuation:
            mask |= [is_punctuation(token) for token in tokens]
        mask |= text.overlaps(matched_spans(self.name, self.pattern, self.characters, text))
        if self.mask is not None:
            mask |= mask_for_text(self.name, self.mask, text)
        return mask


@register("must", "must=words:not,never or must=pattern:\\d+ stars")
@dataclass(frozen=True, repr=False)
class Must(_Words):
    """Words that must be selected, wherever they occur; they use up the budget.

    Args:
        words: compared ignoring case.
        pattern: a regular expression; every word that a match overlaps.
        stopwords, punctuation: these, if True. Stopwords are English; negations are not among them.
        characters: for each text, (start, end) spans of characters; for these texts only, so not in training.
        mask: for each text, a 0 or 1 per token; for these texts only.
    """

    def update_text(self, text: TextRequirements) -> None:
        text.must |= self.matching_tokens(text)


@register("never", "never=stopwords or never=words:good,bad")
@dataclass(frozen=True, repr=False)
class Never(_Words):
    """Words that are never selected; they are named as for `Must`. A span does not extend across them."""

    suggested = ("never=stopwords",)

    def update_text(self, text: TextRequirements) -> None:
        text.never |= self.matching_tokens(text)
