"""Did you mean ...? What to say of a name that nothing goes by."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def closest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that `name` most likely was meant to be; None where none is like it."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=cutoff)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the likely one, or all there are."""
    known = list(known)
    guess = closest(name, known)
    return f"did you mean {guess!r}?" if guess else f"known are {', '.join(known)}"
