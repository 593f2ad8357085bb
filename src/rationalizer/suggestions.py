"""Suggestions for unknown names: "did you mean ...?"."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def closest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name most similar to `name`, or None if none is similar."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=cutoff)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the most similar name, or all names."""
    known = list(known)
    guess = closest(name, known)
    return f"did you mean {guess!r}?" if guess else f"available: {', '.join(known)}"
