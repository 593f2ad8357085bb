"""What kind of token each token of a text is, and which of them a rationale may contain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rationalizer.text.word_splitting import is_punctuation

Punctuation = Literal["free", "count"]
UNKNOWN, KNOWN, PUNCTUATION, BLANK = 0, 1, 2, 3


def token_kind(token: str, knows: Callable[[str], bool]) -> int:
    """Return PUNCTUATION, BLANK, KNOWN or UNKNOWN."""
    if not token.strip():
        return BLANK
    if is_punctuation(token):
        return PUNCTUATION
    return KNOWN if knows(token) else UNKNOWN


def counted_tokens(kinds: NDArray[np.int8], punctuation: Punctuation) -> NDArray[np.bool_]:
    """Return which tokens of one text count towards the budget, as `selectable_tokens` does."""
    known = kinds == KNOWN
    return known if punctuation == "free" and known.any() else kinds != BLANK


def selectable_tokens(
    kinds: NDArray[np.int8], mask: NDArray[np.bool_], punctuation: Punctuation
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return which tokens count towards the budget, and which are punctuation that is read with the words around it.

    A text of only punctuation and unknown words counts them all. Blank tokens are never counted.

    Args:
        kinds: of the tokens where `mask` is True, in order.
        mask: (batch, n), False on padding.
        punctuation: "free": punctuation does not count, and neither do unknown words; "count": all tokens count.
    """
    counted, marks = mask.copy(), np.zeros_like(mask)
    counted[mask] = kinds != BLANK
    if punctuation == "free":
        selectable = counted.copy()
        marks[mask] = kinds == PUNCTUATION
        counted[mask] = kinds == KNOWN
        nothing = ~counted.any(1, keepdims=True)
        counted |= selectable & nothing
        marks &= ~nothing
    return counted, marks
