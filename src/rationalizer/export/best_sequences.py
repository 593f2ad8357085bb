"""The best sequence of words for one text, in NumPy: `ops.sequence_budget_map` and its relatives without PyTorch.

Ties are broken as in the kernels of `ops`, so that both select the same words. Arrays hold the selectable words only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Selected = NDArray[np.bool_]

IMPOSSIBLE = -1e300
MUST, NEVER, FREE = 1, -1, 0


def best_sequence(scores: Scores, transition: Scores, least: int, budget: int) -> Selected:
    """argmax s·y + Σ r_i y_i y_{i+1} s.t. least ≤ Σy ≤ budget; ties go to fewer words, then to earlier ones."""
    n = len(scores)
    zero, one = (np.full(budget + 1, IMPOSSIBLE) for _ in range(2))  # by the number of words; the last word is 0 or 1
    zero[0] = 0.0
    back = np.zeros((n, budget + 1), np.uint8)
    for t in range(n):
        most = min(t + 1, budget) + 1
        fresh, joined = zero[: most - 1], one[: most - 1] + (transition[t - 1] if t else 0.0)
        off, on = zero[1:most], one[1:most]
        back[t, 1:most] = (on > off) | ((joined > fresh) << 1)
        after_zero, after_one = zero.copy(), one.copy()
        after_zero[1:most] = np.maximum(on, off)
        after_one[1:most] = scores[t] + np.maximum(joined, fresh)
        zero, one = after_zero, after_one
    best, used, bit = (0.0 if least == 0 else -np.inf), 0, 0
    for k in range(max(least, 1), budget + 1):
        for last, value in enumerate((zero[k], one[k])):
            if value > best:
                best, used, bit = value, k, last
    y = np.zeros(n, np.bool_)
    for t in range(n - 1, -1, -1):
        y[t] = bit
        step = int(back[t, used])
        used -= bit
        bit = (step >> bit) & 1
    return y


def best_with_fixed_words(scores: Scores, transition: float, budget: int, fixed: NDArray[Any]) -> Selected | None:
    """The same if some words must, and others must not, be selected; None if the budget is too small.

    It is the problem on the free words: the transition between a free word and a neighbour that must be selected is
    added to the free word's score, and there is none across a fixed word.
    """
    must = fixed == MUST
    left = budget - int(must.sum())
    if left < 0:
        return None
    after, before = np.append(fixed[1:], FREE), np.append(FREE, fixed[:-1])[: len(fixed)]
    bonus = transition * (after == MUST) + transition * (before == MUST)
    edges = np.where((after == FREE) & (left > 1), transition, 0.0)
    free = fixed == FREE
    y = must.copy()
    y[free] = best_sequence((scores + bonus)[free], edges[free], 0, min(left, int(free.sum())))
    return y


def top_k(scores: Scores, k: int) -> Selected:
    """The k best words; ties go to earlier ones."""
    y = np.zeros(len(scores), np.bool_)
    y[np.argsort(-scores, kind="stable")[:k]] = True
    return y


def sparsemax(scores: Scores) -> Scores:
    """argmin ‖z − s‖² s.t. z ≥ 0, Σz = 1."""
    scores = scores - scores.max()
    ordered = np.sort(scores)[::-1]
    excess = np.cumsum(ordered) - 1
    support = int((np.arange(1, len(scores) + 1) * ordered > excess).sum())
    z: Scores = np.maximum(scores - excess[support - 1] / support, 0.0)
    return z
