"""H:SeqBudget, exactly.

1. The closed form of PAIR + BUDGET is an upper bound; where its solution packs into sequences (`packing_cpu`) it is the
   answer. So it is where `peeling_cpu` finds an explicit mixture that breaks no pair.
2. Otherwise an active set, started from that mixture, on a small problem: tokens that the closed form puts at 0 or 1
   are held there. Afterwards a Lagrangian bound on the whole chain, O(n), proves for each held token that no sequence
   that flips it can do better; where the proof fails the token is released and the active set goes on. So the budgeted
   Viterbi runs on the few tokens in doubt only, and the result is still the optimum over all sequences.
3. With tied scores the sequences that make up z need not span the face that z lies on, onto which the Jacobian
   projects; `face_cpu` adds those that are missing.
"""

import numpy as np

from rationalizer.ops.kernels.active_set_cpu import active_set
from rationalizer.ops.kernels.bits_cpu import is_set, pack, word_count
from rationalizer.ops.kernels.budget_cpu import gather_real, scatter_real
from rationalizer.ops.kernels.face_cpu import complete_face, project_onto_support, tied_blocks
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.packing_cpu import packable
from rationalizer.ops.kernels.pair_budget_cpu import (
    gather_edges,
    pair_budget_backward_row,
    pair_budget_row,
    scatter_edges,
)
from rationalizer.ops.kernels.peeling_cpu import mixture_of_sequences
from rationalizer.ops.kernels.sequence_budget_map_cpu import budgeted_viterbi

HELD_0, HELD_1, IN_DOUBT = 0, 1, 2
LONG = 512  # from so many tokens on the Viterbi is what an iteration costs


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
    """Mark in `work[2]` the held tokens that might do better than `level` flipped; returns how many, and a bound on all
    sequences.

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
def _closed_form_value(s, r, z, state):
    """What the relaxation earns: in all, and by the tokens held at 1 alone."""
    total, held = 0.0, 0.0
    for i in range(s.shape[0]):
        pair = r[i - 1] * min(z[i - 1], z[i]) if i > 0 else 0.0
        gain = (s[i] - 0.5 * z[i]) * z[i] + pair
        total += gain
        if state[i] == HELD_1:
            held += s[i] - 0.5 + (r[i - 1] if i > 0 and state[i - 1] == HELD_1 else 0.0)
    return total, held


@jit
def _blocks(z, tokens, edges, count, limit):
    """The plateaus of the closed form, as the first token of each and how many there are; 0 where they are no help.

    Sequences that take or leave them whole are cheaper to price, and in long rows bring the active set most of the way.
    """
    heads = np.empty(count + 1, np.int64)
    blocks = 0
    for j in range(count):
        joined = j > 0 and tokens[j] == tokens[j - 1] + 1 and edges[j - 1] > 0.0 and z[tokens[j]] == z[tokens[j - 1]]
        if not joined or 8 * (j - heads[blocks - 1]) >= limit:
            heads[blocks] = j
            blocks += 1
    heads[blocks] = count
    return heads, blocks if count >= LONG and 4 * blocks < 3 * count else 0


@jit
def _solve_in_doubt(s, r, z, tau, budget, state, support, start, p, kept, value_bound, max_iterations, enough, stop):
    """Active set with held tokens, from the `kept` sequences in `start` with weights `p`, or from the closed form in
    `z` where there are none; leaves the solution in `z`, sequences in `support`."""
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
        columns = np.zeros((max(kept, 1), word_count(count)), np.uint64)
        if kept == 0:
            for j in range(count):
                work[0, j] = scores[j] - z[tokens[j]]
            budgeted_viterbi(work[0, :count], edges, limit, 0.0, y, back, value)
            pack(y[:count], columns[0])
            kept = 1
            p = np.ones(1)
        else:
            for k in range(kept):
                for j in range(count):
                    y[j] = is_set(start[k], tokens[j])
                pack(y[:count], columns[k])
        small = np.empty(count)
        heads, blocks = _blocks(z, tokens, edges, count, limit)
        _, held_value = _closed_form_value(s, r, z, state)
        columns, p, kept, used, gap, converged, level = active_set(
            scores[:count], edges, limit, columns, p, kept, small, y[:count], back, value, heads, blocks,
            max_iterations - iterations, value_bound - held_value, enough, stop, None,
        )  # fmt: skip
        iterations += used
        for i in range(n):
            if state[i] != IN_DOUBT:
                z[i] = full[i] = state[i]
        for j in range(count):
            z[tokens[j]] = small[j]
        lambda_small = level
        for i in range(n):
            if state[i] == HELD_1:
                level += s[i] - z[i]
                if i + 1 < n and state[i + 1] == HELD_1:
                    level += r[i]
        released, bound = 0, level
        if count < n:
            released, bound = _release(s, r, z, tau, budget, level + enough, state, work)
        done = (converged and released == 0) or not converged or iterations >= max_iterations
        if done and converged and released == 0 and enough == 0.0:
            columns, kept = complete_face(
                scores[:count], edges, limit, columns, kept, small, lambda_small, y[:count], back, value, None
            )
        for k in range(kept):
            for j in range(count):
                full[tokens[j]] = is_set(columns[k], j)
            pack(full, support[k, :words])
        if done:
            settled = converged and released == 0
            return kept, iterations, gap if settled or count == n else max(gap, bound - level), settled
        start = support
        everything = 2 * (count + released) > n
        for i in range(n):
            if everything or work[2, i] > 0.0:
                state[i] = IN_DOUBT


@jit
def _closed_form(s, r, limit, z, x, work, state):
    """The closed form to `z`, who is held where to `state`; returns τ and whether it is known to be the answer."""
    count = s.shape[0]
    for edge in r:
        if edge < 0.0:
            z[:] = 0.0
            state[:] = IN_DOUBT
            return 0.0, limit == 0
    if limit == 0:
        z[:] = 0.0
        return 0.0, True
    tau = pair_budget_row(s, r, limit, z, x, work)
    ones = 0
    for i in range(count):
        state[i] = HELD_1 if z[i] == 1.0 else (HELD_0 if z[i] == 0.0 else IN_DOUBT)
        ones += z[i] == 1.0
    certified = limit == count or packable(z, r, limit - ones, work, x)
    return tau, certified and (tau == 0.0 or limit == count or not tied_blocks(z, r))


@jit
def sequence_budget_rows(first, last, scores, transition, mask, budget, z, tight, kept, iterations, gap, converged):
    """The rows that the closed form answers; `kept` is −1 for the others."""
    n = scores.shape[1]
    s, r, x, solution = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    work = np.empty((5, 2 * n + 2))
    state = np.empty(n, np.uint8)
    for row in range(first, last):
        count = gather_real(scores[row], mask[row], s)
        gather_edges(transition[row], mask[row], r)
        edges = r[: max(count - 1, 0)]
        limit = min(budget[row], count)
        tau, certified = _closed_form(s[:count], edges, limit, solution[:count], x[:count], work, state[:count])
        tight[row] = tau > 0.0
        kept[row] = 0 if certified else -1
        iterations[row] = 0
        gap[row] = 0.0
        converged[row] = True
        scatter_real(solution, mask[row], z[row])


@jit
def sequence_budget_open_rows(
    first, last, stop, hard, scores, transition, mask, budget, max_iterations, tolerance, z, kept, support, iterations,
    gap, converged,
):  # fmt: skip
    """The rows `hard[first:last]`, which the closed form did not answer. `kept` 0 says that it was the answer all the
    same; otherwise so many sequences are in `support`."""
    n = scores.shape[1]
    s, r, x, solution = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    work = np.empty((5, 2 * n + 2))
    state = np.empty(n, np.uint8)
    enough = tolerance * tolerance
    for place in range(first, last):
        row = hard[place]
        count = gather_real(scores[row], mask[row], s)
        gather_edges(transition[row], mask[row], r)
        row_s, row_r, row_z, row_state = s[:count], r[: max(count - 1, 0)], solution[:count], state[:count]
        limit = min(budget[row], count)
        tau, _ = _closed_form(row_s, row_r, limit, row_z, x[:count], work, row_state)
        start, p, given, lost = np.empty((1, 1), np.uint64), np.ones(1), 0, np.inf
        bound = np.inf
        if np.all(row_r >= 0.0):
            start, p, given, lost = mixture_of_sequences(row_z, row_r, limit, enough, stop)
            bound, _ = _closed_form_value(row_s, row_r, row_z, row_state)
        if lost <= enough and not (tau > 0.0 and tied_blocks(row_z, row_r)):
            kept[row], gap[row] = 0, lost
        else:
            # Finitely many steps would do, but not a number of them that anyone would wait for.
            most = min(max_iterations, 1000 + 20 * count)
            kept[row], iterations[row], gap[row], converged[row] = _solve_in_doubt(
                row_s, row_r, row_z, tau, limit, row_state, support[row], start, p, given, bound, most, enough, stop
            )
            if not np.all(np.isfinite(row_z)):
                # Beyond the range of floats; one sequence is feasible, and nothing is claimed of it.
                y = np.zeros(count, np.uint8)
                budgeted_viterbi(
                    row_s, row_r, limit, 0.0, y, np.empty((count, limit + 1), np.uint8), np.empty((4, limit + 1))
                )
                row_z[:] = y
                pack(y, support[row, 0, : word_count(count)])
                kept[row], gap[row], converged[row] = 1, np.inf, False
            scatter_real(solution, mask[row], z[row])


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
            project_onto_support(g[:count], columns, kept[row], h[:count], edges)
        scatter_real(h, mask[row], grad_s[row])
        scatter_edges(edges, mask[row], grad_r[row])
