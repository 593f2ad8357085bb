"""Phrases that are not cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rationalizer.constraints.base import register
from rationalizer.constraints.layer_arguments import TextConstraint, TextRequirements
from rationalizer.constraints.patterns import check_pattern, find_pattern, spans_for_text, to_tuples
from rationalizer.text.errors import InputError, short_repr


@register("ends", "ends=pattern:not \\w+")
@dataclass(frozen=True, repr=False)
class Ends(TextConstraint):
    """A selection never ends inside a phrase: its words are selected together or not at all.

    Args:
        pattern: a regular expression; what it finds is a phrase.
        characters: for each text, the phrases' (start, end) spans; for these texts only, so not in training.
    """

    pattern: str | None = None
    characters: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "characters", to_tuples(self.characters))
        if self.pattern is None and self.characters is None:
            raise InputError(f"{self.name}: which phrases? give pattern or characters")
        if self.pattern is not None:
            check_pattern(self.name, self.pattern)
        if not isinstance(self.characters, tuple | None):
            raise InputError(f"{self.name}: characters is a list, got {short_repr(self.characters)}")

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
        return f"never cut {'what is marked' if self.pattern is None else f'/{self.pattern}/'}"

    def update_text(self, text: TextRequirements) -> None:
        spans = [] if self.pattern is None else find_pattern(self.pattern, text.example.text)
        if self.characters is not None:
            spans += spans_for_text(self.name, self.characters, text.source)
        for span in spans:
            phrase = text.touched(*span)
            text.together[phrase.start : max(phrase.start, phrase.stop - 1)] = True
