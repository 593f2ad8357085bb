"""Budgeted Viterbi: the best binary sequence with at most B ones, neighbours rewarded."""

import numpy as np

from rationalizer.ops.kernels.budget_cpu import gather_real, scatter_real
from rationalizer.ops.kernels.pair_budget_cpu import gather_edges
from rationalizer.ops.kernels.runtime import jit

IMPOSSIBLE = -1e300


@jit
def budgeted_viterbi(s, r, budget, lift, y, back, value):
    """max s·y + Σ r_i y_i y_{i+1} + lift·(Σy − budget) s.t. Σy <= budget; returns it and writes its argument to `y`.

    `lift` lets a caller take a constant off all scores, so that partial sums stay small and digits are kept, without
    changing which sequence is best. States are (ones used, last bit). Scratch: `back` (n, budget + 1) uint8, `value`
    (4, budget + 1). Ties go to fewer ones, then to later tokens left out.
    """
    n = s.shape[0]
    zero, one, next_zero, next_one = value[0], value[1], value[2], value[3]
    zero[: budget + 1] = IMPOSSIBLE
    one[: budget + 1] = IMPOSSIBLE
    zero[0] = 0.0
    for t in range(n):
        edge = r[t - 1] if t > 0 else 0.0
        score = s[t]
        trace = back[t]
        top = min(t + 1, budget)
        next_zero[0] = 0.0
        next_one[0] = IMPOSSIBLE
        trace[0] = 0
        for k in range(1, top + 1):
            from_one = one[k] > zero[k]
            next_zero[k] = one[k] if from_one else zero[k]
            kept = one[k - 1] + edge
            extended = kept > zero[k - 1]
            next_one[k] = score + (kept if extended else zero[k - 1])
            trace[k] = np.uint8(from_one) | (np.uint8(extended) << np.uint8(1))
        for k in range(top + 1, budget + 1):
            next_zero[k] = IMPOSSIBLE
            next_one[k] = IMPOSSIBLE
        zero, next_zero = next_zero, zero
        one, next_one = next_one, one
    best, used, bit = -lift * budget, 0, 0
    for k in range(1, budget + 1):
        bonus = lift * (k - budget)
        if zero[k] + bonus > best:
            best, used, bit = zero[k] + bonus, k, 0
        if one[k] + bonus > best:
            best, used, bit = one[k] + bonus, k, 1
    for t in range(n - 1, -1, -1):
        y[t] = bit
        trace = back[t, used]
        if bit:
            used -= 1
            bit = (trace >> 1) & 1
        else:
            bit = trace & 1
    return best


@jit
def sequence_budget_map_rows(first, last, scores, transition, mask, budget, z):
    n = scores.shape[1]
    s, r, y = np.empty(n), np.empty(n), np.zeros(n, np.uint8)
    limit = 0
    for row in range(first, last):
        limit = max(limit, min(n, budget[row]))
    back = np.empty((n, limit + 1), np.uint8)
    value = np.empty((4, limit + 1))
    solution = np.empty(n)
    for row in range(first, last):
        count = gather_real(scores[row], mask[row], s)
        gather_edges(transition[row], mask[row], r)
        budgeted_viterbi(s[:count], r, min(count, budget[row]), 0.0, y, back, value)
        for i in range(count):
            solution[i] = y[i]
        scatter_real(solution, mask[row], z[row])
