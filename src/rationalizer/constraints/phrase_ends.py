"""Phrases that are selected as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rationalizer.constraints.base import register
from rationalizer.constraints.layer_arguments import TextConstraint, TextRequirements
from rationalizer.constraints.patterns import check_pattern, check_settings, matched_spans
from rationalizer.text.errors import InputError, short_repr


@register("ends", "ends=pattern:not \\w+")
@dataclass(frozen=True, repr=False)
class Ends(TextConstraint):
    """A selection never ends inside a phrase: its words are selected together or not at all.

    Args:
        pattern: a regular expression; its matches are the phrases.
        characters: for each text, the phrases' (start, end) spans; for these texts only, so not in training.
    """

    pattern: str | None = None
    characters: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        check_settings(self, lists=("characters",))
        if self.pattern is None and self.characters is None:
            raise InputError(f"{self.name}: no phrases are named", "give pattern or characters")
        if self.pattern is not None:
            check_pattern(self.name, self.pattern)

    @property
    def per_text(self) -> bool:
        return self.characters is not None

    @classmethod
    def parse_value(cls, value: str) -> Ends:
        if not value.startswith("pattern:"):
            raise InputError(f"pattern:... was expected, got {short_repr(value)}")
        return cls(value.removeprefix("pattern:"))

    def format_value(self) -> str:
        return "characters" if self.pattern is None else f"pattern:{self.pattern}"

    def describe(self) -> str:
        return f"never cut {'marked phrases' if self.pattern is None else f'/{self.pattern}/'}"

    def update_text(self, text: TextRequirements) -> None:
        phrases = matched_spans(self.name, self.pattern, self.characters, text)
        text.together |= text.overlaps(phrases, but_last=True)[:-1]
