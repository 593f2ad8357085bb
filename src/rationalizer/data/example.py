"""One text with its tokens, their places in the text, and what is known about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """A text as the models see it, tied to the text as the user wrote it.

    Token k stands at `text[slice(*offsets[k])]`: what is said of tokens can be shown on the original text.
    """

    text: str
    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    label: int | float | None = None
    rationale: tuple[bool, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.tokens):
            raise ValueError(
                f"one offset a token is needed, got {len(self.offsets)} offsets for {len(self.tokens)} tokens"
            )
        if self.rationale is not None and len(self.rationale) != len(self.tokens):
            raise ValueError(f"a rationale has a flag a token, got {len(self.rationale)} for {len(self.tokens)} tokens")
