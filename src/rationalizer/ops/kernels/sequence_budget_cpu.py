"""H:SeqBudget, exactly.

1. The closed form of PAIR + BUDGET is an upper bound; where its solution packs into sequences (`packing_cpu`) it is the
   answer.
2. Otherwise an active set, on a small problem: tokens that the closed form puts at 0 or 1 are held there. Afterwards a
   Lagrangian bound on the whole chain, O(n), proves for each held token that no sequence that flips it can do better;
   where the proof fails the token is released and the active set goes on. So the budgeted Viterbi runs on the few
   tokens in doubt only, and the result is still the optimum over all sequences.
"""

import numpy as np

from rationalizer.ops.kernels.active_set_cpu import active_set
from rationalizer.ops.kernels.bits_cpu import is_set, pack, word_count
from rationalizer.ops.kernels.budget_cpu import gather_real, scatter_real
from rationalizer.ops.kernels.factor_cpu import approach, best_weights, enter
from rationalizer.ops.kernels.laying_cpu import mixture_of_sequences
from rationalizer.ops.kernels.packing_cpu import packable
from rationalizer.ops.kernels.pair_budget_cpu import (
    gather_edges,
    pair_budget_backward_row,
    pair_budget_row,
    scatter_edges,
)
from rationalizer.ops.kernels.runtime import jit
from rationalizer.ops.kernels.sequence_budget_map_cpu import budgeted_viterbi

HELD_0, HELD_1, IN_DOUBT = 0, 1, 2


@jit
def _reduce(s, r, state, tokens, scores, edges):
    """The problem on the tokens in doubt, the others held; returns how many there are and how many are held at 1."""
    n = s.shape[0]
    count = 0
    held = 0
    for i in range(n):
        if state[i] == HELD_1:
            held += 1
        elif state[i] == IN_DOUBT:
            score = s[i]
            if i > 0 and state[i - 1] == HELD_1:
                score += r[i - 1]
            if i + 1 < n and state[i + 1] == HELD_1:
                score += r[i]
            if count > 0:
                edges[count - 1] = r[i - 1] if tokens[count - 1] == i - 1 else 0.0
            tokens[count], scores[count] = i, score
            count += 1
    return count, held


@jit
def _release(s, r, z, tau, budget, level, state, work):
    """Mark in `work[2]` the held tokens that might do better flipped; returns how many, and a bound on all sequences.

    A sequence with Σy <= B scores at most τB + (its score with τ off every token), whatever τ >= 0; the best such bound
    over all sequences that flip token i comes from one forward and one backward pass over the chain.
    """
    n = s.shape[0]
    ahead_0, ahead_1 = work[0], work[1]  # best score of tokens i + 1 ... given the bit at i
    ahead_0[n - 1] = ahead_1[n - 1] = 0.0
    for i in range(n - 2, -1, -1):
        u = s[i + 1] - z[i + 1] - tau
        ahead_0[i] = max(ahead_0[i + 1], u + ahead_1[i + 1])
        ahead_1[i] = max(ahead_0[i + 1], u + r[i] + ahead_1[i + 1])
    size = abs(level) + tau * budget
    allowed = level - tau * budget + 1e-13 + 1e-15 * size
    released = 0
    behind_0, behind_1 = 0.0, 0.0
    for i in range(n):
        u = s[i] - z[i] - tau
        if i == 0:
            behind_0, behind_1 = 0.0, u
        else:
            behind_0, behind_1 = max(behind_0, behind_1), u + max(behind_0, behind_1 + r[i - 1])
        flipped = behind_1 + ahead_1[i] if state[i] == HELD_0 else behind_0 + ahead_0[i]
        work[2, i] = state[i] != IN_DOUBT and flipped > allowed
        released += int(work[2, i])
    return released, max(behind_0, behind_1) + tau * budget


@jit
def _solve_in_doubt(s, r, z, tau, budget, state, support, max_iterations, start, p, kept):
    """Active set with held tokens, from the closed form in `z`; leaves the solution in `z`, sequences in `support`."""
    n = s.shape[0]
    words = word_count(n)
    tokens, scores, edges = np.empty(n, np.int64), np.empty(n), np.zeros(n)
    y, full = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    work = np.empty((3, n))
    iterations = 0
    while True:
        count, held = _reduce(s, r, state, tokens, scores, edges)
        limit = min(budget - held, count)
        back = np.empty((count, limit + 1), np.uint8)
        value = np.empty((4, limit + 1))
        if kept == 0:
            for j in range(count):
                work[0, j] = scores[j] - z[tokens[j]]
            budgeted_viterbi(work[0, :count], edges, limit, 0.0, y, back, value)
            columns = np.zeros((1, word_count(count)), np.uint64)
            pack(y[:count], columns[0])
            kept = 1
            p = np.ones(1)
        else:
            columns = np.zeros((kept, word_count(count)), np.uint64)
            for k in range(kept):
                for j in range(count):
                    y[j] = is_set(start[k], tokens[j])
                pack(y[:count], columns[k])
        small = np.empty(count)
        columns, p, kept, used, gap, converged, level = active_set(
            scores[:count],
            edges,
            limit,
            columns,
            p,
            kept,
            small,
            y[:count],
            back,
            value,
            max_iterations - iterations,
            0.0,
            np.zeros(1, np.uint8),
        )
        iterations += used
        for i in range(n):
            if state[i] != IN_DOUBT:
                z[i] = full[i] = state[i]
        for j in range(count):
            z[tokens[j]] = small[j]
        for k in range(kept):
            for j in range(count):
                full[tokens[j]] = is_set(columns[k], j)
            pack(full, support[k, :words])
        start = support
        for i in range(n):
            if state[i] == HELD_1:
                level += s[i] - z[i]
                if i + 1 < n and state[i + 1] == HELD_1:
                    level += r[i]
        if count == n:
            return kept, iterations, gap, converged
        released, bound = _release(s, r, z, tau, budget, level, state, work)
        if converged and released == 0:
            return kept, iterations, gap, True
        if not converged or iterations >= max_iterations:
            return kept, iterations, max(gap, bound - level), False
        everything = 2 * (count + released) > n
        for i in range(n):
            if everything or work[2, i] > 0.0:
                state[i] = IN_DOUBT


@jit
def sequence_budget_rows(
    first,
    last,
    scores,
    transition,
    mask,
    budget,
    max_iterations,
    z,
    tight,
    kept,
    support,
    iterations,
    gap,
    converged,
):
    """`kept` 0 says that the closed form was the answer; otherwise so many sequences are in `support`."""
    n = scores.shape[1]
    s, r, x, solution = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    work = np.empty((5, 2 * n + 2))
    state = np.empty(n, np.uint8)
    for row in range(first, last):
        count = gather_real(scores[row], mask[row], s)
        gather_edges(transition[row], mask[row], r)
        limit = min(budget[row], count)
        row_s, row_r, row_z = s[:count], r[: max(count - 1, 0)], solution[:count]
        negative = False
        for edge in row_r:
            negative |= edge < 0.0
        tight[row] = False
        kept[row] = iterations[row] = 0
        gap[row] = 0.0
        converged[row] = True
        tau = 0.0
        given = 0
        start, p = support[row, :1], np.ones(1)
        certified = limit == 0
        if certified:
            row_z[:] = 0.0
        elif negative:
            row_z[:] = 0.0
            state[:count] = IN_DOUBT
        else:
            tau = pair_budget_row(row_s, row_r, limit, row_z, x[:count], work)
            tight[row] = tau > 0.0
            ones = 0
            for i in range(count):
                state[i] = HELD_1 if row_z[i] == 1.0 else (HELD_0 if row_z[i] == 0.0 else IN_DOUBT)
                ones += row_z[i] == 1.0
            certified = limit == count or packable(row_z, row_r, limit - ones, work, x)
            if not certified:
                start = np.empty((6 * count + 8, word_count(count)), np.uint64)
                p = np.empty(6 * count + 8)
                given, lost = mixture_of_sequences(row_z, row_r, limit, start, p, np.empty(count, np.int64))
                certified = given > 0 and lost == 0.0
        if not certified:
            kept[row], iterations[row], gap[row], converged[row] = _solve_in_doubt(
                row_s, row_r, row_z, tau, limit, state[:count], support[row], max_iterations, start, p, given
            )
        scatter_real(solution, mask[row], z[row])


@jit
def _support_backward(g, columns, k, h, grad_r):
    """h = J g and its counterpart for the transitions, J the projector onto the affine hull of k sequences."""
    n = g.shape[0]
    factor, sides = np.empty((k, k)), np.empty((2, k))
    line, weights = np.empty(k), np.empty(k)
    base = 0.0
    for j in range(k):
        along = 0.0
        for i in range(n):
            if is_set(columns[j], i):
                along += g[i]
        if j == 0:
            base = along
        distance = approach(factor, columns, j, line)
        enter(factor, sides, j, line, distance, along - base)
    best_weights(factor, sides, k, 0.0, weights)
    h[:] = 0.0
    grad_r[:] = 0.0
    for j in range(k):
        before = False
        for i in range(n):
            now = is_set(columns[j], i)
            if now:
                h[i] += weights[j]
                if before:
                    grad_r[i - 1] += weights[j]
            before = now


@jit
def sequence_budget_backward_rows(first, last, grad, z, transition, mask, tight, kept, support, grad_s, grad_r):
    n = z.shape[1]
    g, real_z, r, h, edges = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for row in range(first, last):
        count = gather_real(grad[row], mask[row], g)
        if kept[row] == 0:
            gather_real(z[row], mask[row], real_z)
            gather_edges(transition[row], mask[row], r)
            pair_budget_backward_row(g[:count], real_z[:count], r, tight[row], h[:count], edges)
        else:
            columns = support[row, : kept[row], : word_count(count)]
            _support_backward(g[:count], columns, kept[row], h[:count], edges)
        scatter_real(h, mask[row], grad_s[row])
        scatter_edges(edges, mask[row], grad_r[row])
