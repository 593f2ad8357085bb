"""The exact solution of H:SeqBudget.

1. The closed form of PAIR + BUDGET is a relaxation of the problem. Its solution z is optimal for H:SeqBudget if z is a
   mixture of sequences within the budget. Two certificates can prove this: a test by histograms
   (`mixture_certificate_cpu`) and the mixture of maximum entropy (`maximum_entropy_cpu`).
2. Otherwise an active-set method starts from the best sequence at s − z. It first fixes the words for which z is 0
   or 1. A Lagrangian bound on the whole chain, in O(n), then proves for each fixed word that no sequence with the other
   value has a better score. If the proof fails, the word is freed and the method continues. The budgeted Viterbi
   algorithm therefore runs on the few free words only, but the result is the optimum over all sequences.
3. With a lower bound on the number of words, the closed form has a multiplier of either sign. If one of the bounds
   binds, all sequences of the mixture have exactly that number of words, and the certificates above apply. If none
   binds, slack words (see `mixture_certificate_cpu`) represent both bounds.
4. At ties, the sequences in the support of z may not span the face of z, onto which the Jacobian projects.
   `face_projection_cpu` adds the missing ones.
"""

import numpy as np

from rationalizer.ops.kernels.active_set_cpu import active_set
from rationalizer.ops.kernels.bits_cpu import is_set, pack, word_count
from rationalizer.ops.kernels.budget_cpu import gather_real, has_negative, is_finite, scatter_real
from rationalizer.ops.kernels.face_projection_cpu import complete_face, has_tied_plateaus
from rationalizer.ops.kernels.maximum_entropy_cpu import distance_to_mixture
from rationalizer.ops.kernels.mixture_certificate_cpu import is_mixture_within_budget
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.pair_budget_cpu import gather_edges, pair_budget_row
from rationalizer.ops.kernels.sequence_budget_map_cpu import budgeted_viterbi

FIXED_0, FIXED_1, FREE = 0, 1, 2
NUDGE = 1e-7  # the largest change of a height in `_is_mixture_between`


@jit
def _reduce(s, r, state, words, scores, edges):
    """Write the problem on the free words to `words`, `scores` and `edges`.

    Returns the number of free words and the number of words fixed at 1.
    """
    n = s.shape[0]
    count = 0
    fixed_ones = 0
    for i in range(n):
        if state[i] == FIXED_1:
            fixed_ones += 1
        elif state[i] == FREE:
            score = s[i]
            if i > 0 and state[i - 1] == FIXED_1:
                score += r[i - 1]
            if i + 1 < n and state[i + 1] == FIXED_1:
                score += r[i]
            if count > 0:
                edges[count - 1] = r[i - 1] if words[count - 1] == i - 1 else 0.0
            words[count], scores[count] = i, score
            count += 1
    return count, fixed_ones


@jit
def _find_wrongly_fixed(s, r, z, tau, bound, level, state, work):
    """Mark in `work[2]` the fixed words that might have the other value in a sequence with a score above `level`.

    For any τ, the score of a sequence with τΣy ≤ τB is at most τB plus its score with τ subtracted from every word.
    B is `bound`: the upper bound on Σy if τ ≥ 0, the lower one if τ < 0.
    One forward and one backward pass compute, for every word i, the largest such bound over all sequences with the
    other value at i. Returns the number of marked words and an upper bound on the scores of all sequences.
    """
    n = s.shape[0]
    ahead_0, ahead_1 = work[0], work[1]  # the best score of words i + 1, i + 2, … if word i is 0, and if it is 1
    ahead_0[n - 1] = ahead_1[n - 1] = 0.0
    for i in range(n - 2, -1, -1):
        u = s[i + 1] - z[i + 1] - tau
        ahead_0[i] = max(ahead_0[i + 1], u + ahead_1[i + 1])
        ahead_1[i] = max(ahead_0[i + 1], u + r[i] + ahead_1[i + 1])
    size = abs(level) + abs(tau) * bound
    allowed = level - tau * bound + 1e-13 + 1e-15 * size
    freed = 0
    behind_0, behind_1 = 0.0, 0.0
    for i in range(n):
        u = s[i] - z[i] - tau
        if i == 0:
            behind_0, behind_1 = 0.0, u
        else:
            behind_0, behind_1 = max(behind_0, behind_1), u + max(behind_0, behind_1 + r[i - 1])
        flipped = behind_1 + ahead_1[i] if state[i] == FIXED_0 else behind_0 + ahead_0[i]
        work[2, i] = state[i] != FREE and flipped > allowed
        freed += int(work[2, i])
    return freed, max(behind_0, behind_1) + tau * bound


@jit
def _closed_form_value(s, r, z, state):
    """Return the objective of the relaxation: its total, and the part of the words fixed at 1."""
    total, fixed_value = 0.0, 0.0
    for i in range(s.shape[0]):
        pair = r[i - 1] * min(z[i - 1], z[i]) if i > 0 else 0.0
        gain = (s[i] - 0.5 * z[i]) * z[i] + pair
        total += gain
        if state[i] == FIXED_1:
            fixed_value += s[i] - 0.5 + (r[i - 1] if i > 0 and state[i - 1] == FIXED_1 else 0.0)
    return total, fixed_value


@jit
def _solve_with_fixed_words(
    s, r, z, tau, least, budget, state, support, value_bound, max_iterations, squared_tolerance, stop
):
    """Solve by the active-set method with fixed words, starting from the closed form in `z`.

    Writes the solution to `z` and its sequences to `support`; returns (number of sequences, iterations, gap,
    converged).
    """
    n = s.shape[0]
    length = word_count(n)
    words, scores, edges = np.empty(n, np.int64), np.empty(n), np.zeros(n)
    y, full = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    work = np.empty((3, n))
    p, size, iterations = np.ones(1), 0, 0
    while True:
        count, fixed_ones = _reduce(s, r, state, words, scores, edges)
        low, limit = max(least - fixed_ones, 0), min(budget - fixed_ones, count)
        back = np.empty((count, limit + 1), np.uint8)
        value = np.empty((2, limit + 1))
        columns = np.zeros((max(size, 1), word_count(count)), np.uint64)
        if size == 0:
            for j in range(count):
                work[0, j] = scores[j] - z[words[j]]
            budgeted_viterbi(work[0, :count], edges, low, limit, 0.0, y, back, value)
            pack(y[:count], columns[0])
            size = 1
        else:
            for k in range(size):
                for j in range(count):
                    y[j] = is_set(support[k], words[j])
                pack(y[:count], columns[k])
        reduced = np.empty(count)
        for j in range(count):
            reduced[j] = z[words[j]]
        _, fixed_value = _closed_form_value(s, r, z, state)
        columns, p, size, used, gap, converged, level = active_set(
            scores[:count], edges, low, limit, columns, p, size, reduced, y[:count], back, value,
            max_iterations - iterations, value_bound - fixed_value, squared_tolerance, stop, None,
        )  # fmt: skip
        iterations += used
        for i in range(n):
            if state[i] != FREE:
                z[i] = full[i] = state[i]
        for j in range(count):
            z[words[j]] = reduced[j]
        reduced_level = level
        for i in range(n):
            if state[i] == FIXED_1:
                level += s[i] - z[i]
                if i + 1 < n and state[i + 1] == FIXED_1:
                    level += r[i]
        freed, bound = 0, level
        if count < n:
            binding = budget if tau >= 0.0 else least
            freed, bound = _find_wrongly_fixed(s, r, z, tau, binding, level + squared_tolerance, state, work)
        done = (converged and freed == 0) or not converged or iterations >= max_iterations
        if done and converged and freed == 0 and squared_tolerance == 0.0:
            columns, size = complete_face(
                scores[:count], edges, low, limit, columns, size, reduced, reduced_level, y[:count], back, value, None
            )
        for k in range(size):
            for j in range(count):
                full[words[j]] = is_set(columns[k], j)
            pack(full, support[k, :length])
        if done:
            solved = converged and freed == 0
            return size, iterations, gap if solved or count == n else max(gap, bound - level), solved
        free_all = 2 * (count + freed) > n
        for i in range(n):
            if free_all or work[2, i] > 0.0:
                state[i] = FREE


@jit
def _is_mixture_between(z, r, ones, least, limit, work, x):
    """Return whether `z` is proven to be a mixture of sequences with `least` to `limit` words; no bound may bind.

    Also proves that all points near z on the same plateaus are such mixtures: otherwise the face of z has fewer
    directions than that of PAIR + BUDGET. By convexity it suffices to move the plateaus in one random direction and in
    the opposite one.
    """
    n = z.shape[0]
    slack_words = limit - least
    for sign in (NUDGE, -NUDGE):
        random, step, total = 1, 0.0, 0.0
        for i in range(n):
            x[i] = z[i]
            if 0.0 < z[i] < 1.0:
                linked = i > 0 and r[i - 1] > 0.0 and 0.0 < z[i - 1] < 1.0
                if not (linked and z[i] == z[i - 1]):
                    if min(z[i], 1.0 - z[i]) <= NUDGE or (linked and abs(z[i] - z[i - 1]) <= 2.0 * NUDGE):
                        return False
                    random = (random * 1103515245 + 12345) & 0x7FFFFFFF
                    step = sign * (random / 0x3FFFFFFF - 1.0)
                x[i] += step
            total += x[i]
        slack = (limit - total) / slack_words
        if not 0.0 < slack < 1.0:
            return False
        if not is_mixture_within_budget(x, r, limit - ones, slack_words, slack, work, work[3]):
            return False
    return True


@jit
def _is_certified(z, r, tau, ones, least, limit, work, x):
    """Return whether the closed form is proven optimal, and its face that of PAIR + BUDGET."""
    if ones >= least:  # so that every sequence of any mixture has enough words
        if limit == z.shape[0]:
            return True
        least = 0
    elif tau == 0.0:
        return _is_mixture_between(z, r, ones, least, limit, work, x)
    bound = limit if tau >= 0.0 else least
    return is_mixture_within_budget(z, r, bound - ones, 0, 0.0, work, x) and (tau == 0.0 or not has_tied_plateaus(z, r))


@jit
def _closed_form(s, r, least, limit, z, x, work, state):
    """Write the closed form to `z` and the fixed words to `state`; return τ and whether z is proven optimal."""
    count = s.shape[0]
    if has_negative(r) or limit == 0:
        for i in range(count):
            z[i], state[i] = 0.0, FREE
        return 0.0, limit == 0
    tau = pair_budget_row(s, r, least, limit, z, x, work)
    ones = 0
    for i in range(count):
        one, free = z[i] == 1.0, (z[i] > 0.0) & (z[i] < 1.0)
        state[i] = FIXED_0 + FIXED_1 * np.uint8(one) + FREE * np.uint8(free)  # a branch would be random
        ones += one
    return tau, _is_certified(z, r, tau, ones, least, limit, work, x)


@jit
def _binding(z, tau, least, limit):
    """Return bounds on the ones of all sequences whose mixture is the closed form, and whether neither bound binds."""
    ones = 0
    for height in z:
        ones += height == 1.0
    if tau == 0.0:
        return least, limit, ones < least
    bound = least if tau < 0.0 and ones < least else limit
    return bound, bound, False


@jit
def sequence_budget_rows(
    first, last, scores, transition, mask, least, budget, z, tight, support_size, iterations, gap, converged
):
    """Solve the rows whose closed form has a certificate; set `support_size` to −1 in the uncertified rows."""
    n = scores.shape[1]
    s, r, x, solution = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    work = np.empty((5, 2 * n + 2))
    state = np.empty(n, np.uint8)
    for row in range(first, last):
        count = gather_real(scores[row], mask[row], s)
        gather_edges(transition[row], mask[row], r)
        edges = r[: max(count - 1, 0)]
        limit = min(budget[row], count)
        low = min(least[row], count)
        tau, certified = _closed_form(s[:count], edges, low, limit, solution[:count], x[:count], work, state[:count])
        tight[row] = tau != 0.0
        support_size[row] = 0 if certified else -1
        iterations[row] = 0
        gap[row] = 0.0
        converged[row] = True
        scatter_real(solution, mask[row], z[row])


@jit
def sequence_budget_uncertified_rows(
    first, last, stop, uncertified_rows, scores, transition, mask, least, budget, max_iterations, tolerance, z,
    support_size, support, iterations, gap, converged,
):  # fmt: skip
    """Solve the rows `uncertified_rows[first:last]`, whose closed form has no certificate yet.

    `support_size` becomes 0 if the closed form is proven optimal, otherwise the number of sequences in `support`.
    """
    n = scores.shape[1]
    s, r, x, solution = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    work = np.empty((5, 2 * n + 2))
    state = np.empty(n, np.uint8)
    squared_tolerance = tolerance * tolerance
    for index in range(first, last):
        row = uncertified_rows[index]
        count = gather_real(scores[row], mask[row], s)
        gather_edges(transition[row], mask[row], r)
        row_s, row_r, row_z, row_state = s[:count], r[: max(count - 1, 0)], solution[:count], state[:count]
        low, limit = min(least[row], count), min(budget[row], count)
        tau, certified = _closed_form(row_s, row_r, low, limit, row_z, x[:count], work, row_state)
        if low > 0 and certified:  # the CUDA kernel leaves these to the host
            support_size[row] = 0
            continue
        bound, distance = np.inf, np.inf
        if not has_negative(row_r):
            bound, _ = _closed_form_value(row_s, row_r, row_z, row_state)
            lowest, highest, between = _binding(row_z, tau, low, limit)
            unknown_face = (between and tolerance == 0.0) or (tau != 0.0 and has_tied_plateaus(row_z, row_r))
            if not unknown_face:
                distance = distance_to_mixture(row_z, row_r, lowest, highest, tolerance, stop)
        if distance < np.inf:
            support_size[row], gap[row] = 0, distance * distance
        else:
            # The method is finite, but its worst case takes far too long.
            max_steps = min(max_iterations, 1000 + 20 * count)
            support_size[row], iterations[row], gap[row], converged[row] = _solve_with_fixed_words(
                row_s, row_r, row_z, tau, low, limit, row_state, support[row], bound, max_steps, squared_tolerance,
                stop,
            )  # fmt: skip
            if not is_finite(row_z):
                # Overflow: return one feasible sequence, as not converged.
                y = np.zeros(count, np.uint8)
                budgeted_viterbi(
                    row_s, row_r, low, limit, 0.0, y, np.empty((count, limit + 1), np.uint8), np.empty((2, limit + 1))
                )
                for i in range(count):
                    row_z[i] = y[i]
                pack(y, support[row, 0, : word_count(count)])
                support_size[row], gap[row], converged[row] = 1, np.inf, False
            scatter_real(solution, mask[row], z[row])
