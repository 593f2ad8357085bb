"""How much predictions support each class, and what they lose without a word of the rationale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_TOKENS = 100_000  # that the predictor may read for one text, if weights are computed by default
Place = tuple[int, ...]  # the index of a word, or those of two aligned words


def selected_places(mask: NDArray[Any], counted: NDArray[np.bool_] | None) -> list[Place]:
    """The indices of the selected words, without punctuation that does not use the budget; or of the aligned words."""
    selected = mask != 0
    return [tuple(place) for place in np.argwhere(selected if counted is None else selected & counted).tolist()]


def is_affordable(places: Sequence[Place], shape: Sequence[int], max_tokens: int | None) -> bool:
    """Whether there are words to leave out, and the predictor need not read more than `max_tokens` tokens for it."""
    return bool(places) and (max_tokens is None or (1 + len(places)) * sum(shape) <= max_tokens)


def support(outputs: NDArray[np.float32], *, several: bool = False) -> NDArray[np.float64]:
    """(rows, classes) log-odds of probabilities, log p − log(1 − p); or (rows, 1) values of a regression.

    1 − p is the sum of the other probabilities, which is exact where p is near 1. The probabilities of `several`
    labels do not sum to 1: 1 − p is then computed as such.
    """
    p = np.asarray(outputs, dtype=np.float64)
    if p.ndim == 1:
        return p[:, None]
    others = 1 - p if several else p @ (1 - np.eye(p.shape[1]))
    tiny = np.finfo(np.float32).tiny
    return np.log(np.maximum(p, tiny)) - np.log(np.maximum(others, tiny))


def leave_one_out(
    mask: NDArray[np.float32], places: Sequence[Place], predict: Callable[[NDArray[np.float32]], NDArray[np.float32]]
) -> NDArray[np.float64]:
    """Return what the support loses without each place: (places, classes), or (places, 1) for a regression."""
    outputs = [predict(mask)]
    for place in places:
        dropped = mask.copy()
        dropped[place] = 0
        outputs.append(predict(dropped))
    supported = support(np.stack(outputs))
    return supported[0] - supported[1:]
