"""Budgeted Viterbi: the best binary sequence with L to B ones and a bonus for neighbouring ones."""

import numpy as np

from rationalizer.ops.kernels.budget_cpu import gather_real, scatter_real
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.pair_budget_cpu import gather_edges

IMPOSSIBLE = -1e300


@jit
def _best_end(value, least, budget, offset):
    """Return the best value after the last step, and its state (number of ones, last bit)."""
    best, used, bit = -offset * budget if least == 0 else -np.inf, 0, 0
    for k in range(max(least, 1), budget + 1):
        bonus = offset * (k - budget)
        if value[0, k] + bonus > best:
            best, used, bit = value[0, k] + bonus, k, 0
        if value[1, k] + bonus > best:
            best, used, bit = value[1, k] + bonus, k, 1
    return best, used, bit


@jit
def budgeted_viterbi(s, r, least, budget, offset, y, back, value):
    """Maximize s·y + Σ r_i y_i y_{i+1} + offset·(Σy − budget) s.t. least ≤ Σy ≤ budget; write `y`, return the maximum.

    `offset` lets a caller subtract a constant from all scores, so that partial sums stay small and keep their digits,
    without a change of the argmax. States are (number of ones, last bit). Scratch: `back` (n, budget + 1) uint8,
    `value` (2, budget + 1). Ties go to fewer ones, then to sequences without the later words.
    """
    _forward(s, r, budget, back, value)
    best, used, bit = _best_end(value, least, budget, offset)
    _trace(s.shape[0], used, bit, back, y)
    return best


@jit
def _forward(s, r, budget, back, value):
    n = s.shape[0]
    for k in range(budget + 1):
        value[0, k] = value[1, k] = IMPOSSIBLE
    value[0, 0] = 0.0
    edge = 0.0
    for t in range(n):
        score = s[t]
        back[t, 0] = 0
        # Without branches, so that the compiler vectorizes the loop; in place, with the values of k − 1 in registers,
        # as they cannot be loaded while the stores of the last step, at other boundaries of vectors, are under way.
        fresh, joined = value[0, 0], value[1, 0] + edge
        for k in range(1, min(t + 1, budget) + 1):
            off, on = value[0, k], value[1, k]
            value[0, k] = max(on, off)
            value[1, k] = score + max(joined, fresh)
            back[t, k] = np.uint8(on > off) | (np.uint8(joined > fresh) << np.uint8(1))
            fresh, joined = off, on + edge
        if t < n - 1:
            edge = r[t]


@jit
def _trace(n, used, bit, back, y):
    """Write the sequence that ends with `used` ones and the bit `bit`."""
    for t in range(n - 1, -1, -1):
        y[t] = bit
        step = back[t, used]
        used -= bit
        bit = (step >> bit) & 1


@jit
def sequence_budget_maps_rows(first, last, scores, transition, mask, budget, z):
    """The best sequences for the budgets 1 … `budget`: the tables of the largest budget contain those of all others."""
    n = scores.shape[1]
    s, r, y = np.empty(n), np.empty(n), np.zeros(n, np.uint8)
    limit = min(n, budget)
    back = np.empty((n, limit + 1), np.uint8)
    value = np.empty((2, limit + 1))
    solution = np.empty(n)
    for row in range(first, last):
        count = gather_real(scores[row], mask[row], s)
        gather_edges(transition[row], mask[row], r)
        largest = min(count, budget)
        _forward(s[:count], r, largest, back, value)
        best = 0.0
        solution[:] = 0.0
        for k in range(1, budget + 1):
            if k <= largest:
                end, used, bit = _best_end(value, k, k, 0.0)
                if end > best:  # otherwise the sequence of the budget k − 1 is also the best one for k
                    best = end
                    _trace(count, used, bit, back, y)
                    for i in range(count):
                        solution[i] = y[i]
            scatter_real(solution, mask[row], z[row, k - 1])


@jit
def sequence_budget_map_rows(first, last, scores, transition, mask, least, budget, z):
    n = scores.shape[1]
    s, r, y = np.empty(n), np.empty(n), np.zeros(n, np.uint8)
    limit = 0
    for row in range(first, last):
        limit = max(limit, min(n, budget[row]))
    back = np.empty((n, limit + 1), np.uint8)
    value = np.empty((2, limit + 1))
    solution = np.empty(n)
    for row in range(first, last):
        count = gather_real(scores[row], mask[row], s)
        gather_edges(transition[row], mask[row], r)
        bounds = min(count, least[row]), min(count, budget[row])
        budgeted_viterbi(s[:count], r, bounds[0], bounds[1], 0.0, y, back, value)
        for i in range(count):
            solution[i] = y[i]
        scatter_real(solution, mask[row], z[row])
