"""The best alignment of two texts, in NumPy: `ops.matching_map` and `ops.monotone_matching_map` for one pair without
PyTorch. Ties are broken as in the kernels of `ops`. Matrices have the words that can be aligned only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Aligned = NDArray[np.bool_]
SKIP_ROW, SKIP_COLUMN, PAIR = 0, 1, 2


def best_alignment(
    scores: Scores,
    *,
    budget: int | None = None,
    exactly: bool = False,
    complete: bool = False,
    monotone: bool = False,
    fixed: NDArray[Any] | None = None,
) -> Aligned | None:
    """The best matching: argmax Σ scores·Y, each word in at most one pair; None if none is feasible.

    Args:
        scores: (m, n).
        budget: the largest number of pairs.
        exactly: whether there must be as many pairs as the budget.
        complete: whether each word of the shorter text must have a partner.
        monotone: whether no two pairs may cross.
        fixed: (m, n), 1 for pairs that must be aligned, -1 for pairs that must not be.
    """
    if complete and monotone:
        budget, exactly = min(scores.shape), True
        if scores.shape[0] > scores.shape[1]:
            turned = None if fixed is None else fixed.T
            y = best_alignment(scores.T, budget=budget, exactly=True, monotone=True, fixed=turned)
            return None if y is None else y.T
    aligned, rows, columns, allowed = _apply_fixed(scores.shape, fixed, monotone)
    if allowed is None:
        return None
    most = min(len(rows), len(columns))
    left = most if budget is None else budget - int(aligned.sum())
    if left < 0 or (exactly and left > most):
        return None
    grid = np.ix_(rows, columns)
    free = np.where(allowed[grid], scores[grid], -np.inf)
    solve = _monotone_matching if monotone else _matching
    found = solve(free, min(left, most), exactly or (complete and not monotone))
    if found is None:
        return None
    aligned[grid] = found
    return aligned


def _apply_fixed(
    shape: tuple[int, ...], fixed: NDArray[Any] | None, monotone: bool
) -> tuple[Aligned, NDArray[Any], NDArray[Any], Aligned | None]:
    """The pairs that must be aligned, the other rows and columns, and the pairs that may be; None: infeasible."""
    if fixed is None:
        return np.zeros(shape, np.bool_), np.arange(shape[0]), np.arange(shape[1]), np.ones(shape, np.bool_)
    aligned = fixed == 1
    allowed: Aligned = fixed == 0
    for i, j in np.argwhere(aligned):
        if aligned[i].sum() > 1 or aligned[:, j].sum() > 1:
            return aligned, np.arange(0), np.arange(0), None
        if monotone:
            crossed = np.zeros(shape, np.bool_)
            crossed[:i, j + 1 :], crossed[i + 1 :, :j] = True, True
            if (crossed & aligned).any():
                return aligned, np.arange(0), np.arange(0), None
            allowed &= ~crossed
    return aligned, np.flatnonzero(~aligned.any(1)), np.flatnonzero(~aligned.any(0)), allowed


def _matching(scores: Scores, limit: int, exactly: bool) -> Aligned | None:
    """Successive shortest augmenting paths, see `ops/kernels/matching_map_cpu.py`. -inf forbids a pair."""
    if scores.shape[0] < scores.shape[1]:
        y = _matching(scores.T, limit, exactly)
        return None if y is None else y.T
    long, short = scores.shape
    mate, partner = np.full(long, -1), np.full(short, -1)
    if short == 0 or limit == 0:
        return np.zeros(scores.shape, np.bool_)
    u, v = np.zeros(long), np.zeros(short)
    source = np.array([_best_free(scores, mate, j) for j in range(short)])
    level = float(scores[source, np.arange(short)].max())
    if level == -np.inf:
        return None if exactly else np.zeros(scores.shape, np.bool_)
    for _ in range(limit):
        # Dijkstra over the short nodes; every unmatched long node is a start with potential `level`.
        done, before = np.zeros(short, np.bool_), source.copy()
        starts = scores[source, np.arange(short)]
        distance = np.where(source >= 0, level + v - starts, np.inf)
        while True:
            candidates = np.flatnonzero(~done)
            nearest = int(candidates[distance[candidates].argmin()])
            length = float(distance[nearest])
            if partner[nearest] < 0 or (not exactly and length >= level):
                break
            done[nearest] = True
            i = partner[nearest]
            through = length + u[i] + v - scores[i]
            closer = ~done & (through < distance)
            distance[closer], before[closer] = through[closer], i
        if exactly and length == np.inf:
            return None
        no_gain = not exactly and length >= level
        length = level if no_gain else length
        shift = length - distance[done]
        v[done] += shift
        u[partner[done]] -= shift
        if no_gain:
            break
        level -= length
        end = nearest
        while True:
            i = before[end]
            previous = mate[i]
            mate[i], partner[end] = end, i
            if previous < 0:
                u[i] = level
                for j in np.flatnonzero(source == i).tolist():
                    source[j] = _best_free(scores, mate, j)
                break
            end = previous
    y = np.zeros(scores.shape, np.bool_)
    matched = np.flatnonzero(mate >= 0)
    y[matched, mate[matched]] = True
    return y


def _best_free(scores: Scores, mate: NDArray[Any], j: int) -> int:
    """The unmatched long node with the highest score for short node `j`; -1 if there is none."""
    free = np.flatnonzero(mate < 0)
    return int(free[scores[free, j].argmax()]) if len(free) else -1


def _monotone_matching(scores: Scores, limit: int, exactly: bool) -> Aligned | None:
    """The dynamic program of sequence alignment, see `ops/kernels/monotone_matching_map_cpu.py`."""
    rows, columns = scores.shape
    step = int(exactly or limit < min(rows, columns))  # a budget that cannot bind needs no counter
    states = limit + 1 if step else 1
    back = np.empty((rows, columns, states), np.uint8)
    above = np.full((columns + 1, states), -np.inf)
    above[:, 0] = 0.0
    for i in range(rows):
        here = np.full((columns + 1, states), -np.inf)
        here[0, 0] = 0.0
        for j in range(columns):
            up, left = above[j + 1], here[j]
            pair = np.full(states, -np.inf)
            pair[step:] = above[j, : states - step] + scores[i, j]
            without = np.maximum(up, left)
            here[j + 1] = np.maximum(pair, without)
            back[i, j] = np.where(pair > without, PAIR, left > up)
        above = here
    used = states - 1
    if step and not exactly:
        used = int(above[columns].argmax())
    if above[columns, used] == -np.inf:
        return None
    y = np.zeros(scores.shape, np.bool_)
    i, j = rows - 1, columns - 1
    while i >= 0 and j >= 0:
        move = back[i, j, used]
        if move == PAIR:
            y[i, j] = True
            used -= step
        i -= move != SKIP_COLUMN
        j -= move != SKIP_ROW
    return y
