"""SparseMAP over sequences by an active set: exact, finite, any sign of the transitions.

minimise ½‖Yp‖² − c·p over distributions p on sequences (the columns of Y, c their scores). The support is kept affinely
independent, so at most n + 1 sequences; the equality-constrained problem on it is solved with a Cholesky factor that is
updated, not recomputed, when a sequence enters or leaves (`factor_cpu`). Sequences are bits (`bits_cpu`).
"""

import numpy as np
from numba import types

from rationalizer.ops.kernels.bits_cpu import is_set, mixture, overlap, pack
from rationalizer.ops.kernels.cholesky_cpu import approach, backward_solve, best_weights, build, enter, leave
from rationalizer.ops.kernels.lagrangian_cpu import search_by_price
from rationalizer.ops.kernels.monotone_matching_map_cpu import Grid, best_alignment
from rationalizer.ops.kernels.numba_runtime import jit, overloading
from rationalizer.ops.kernels.sequence_budget_map_cpu import blockwise_viterbi, budgeted_viterbi
from rationalizer.ops.kernels.spans_map_cpu import constrained_viterbi

DEPENDENT = 1e-9  # squared distance from the affine hull below which a sequence counts as inside it
EPS = 2.3e-16
FAR = 1e6  # from the score that others are counted from: digits of the weights would go to the difference


@jit
def sequence_score(s, r, words, lift, budget):
    """s·y + Σ r_i y_i y_{i+1} + lift·(Σy − budget), and the largest partial sum, which bounds the rounding."""
    total = 0.0
    largest = 0.0
    used = 0
    before = False
    for i in range(s.shape[0]):
        now = is_set(words, i)
        if now:
            used += 1
            total += s[i]
            if before:
                total += r[i - 1]
            largest = max(largest, abs(total))
        before = now
    return total + lift * (used - budget), largest


def best_sequence(s, r, budget, lift, y, back, value, heads, blocks, rules):
    """The best sequence of at most `budget` tokens to `y`: of those that take or leave whole blocks where there are
    any, or of those under `rules` unless they are None; on a `Grid` the best alignment. The type of `rules` decides, so
    compiled code knows one way."""
    if isinstance(rules, Grid):
        best_alignment(s, rules, lift, y, back, value)
    elif rules is not None:
        constrained_viterbi(s, r, rules, lift, y, back[0], value)
    elif blocks > 0:
        blockwise_viterbi(s, r, heads, blocks, budget, lift, y, back, value)
    else:
        budgeted_viterbi(s, r, budget, lift, y, back, value)


@overloading(best_sequence)
def _best_sequence(s, r, budget, lift, y, back, value, heads, blocks, rules):
    def under_rules(s, r, budget, lift, y, back, value, heads, blocks, rules):
        constrained_viterbi(s, r, rules, lift, y, back[0], value)

    def on_grid(s, r, budget, lift, y, back, value, heads, blocks, rules):
        best_alignment(s, rules, lift, y, back, value)

    def in_budget(s, r, budget, lift, y, back, value, heads, blocks, rules):
        if blocks > 0:
            blockwise_viterbi(s, r, heads, blocks, budget, lift, y, back, value)
        else:
            budgeted_viterbi(s, r, budget, lift, y, back, value)

    if isinstance(rules, types.NoneType):
        return in_budget
    return on_grid if getattr(rules, "instance_class", None) is Grid else under_rules  # rules proper are a plain tuple


def good_sequence(s, r, rules, lift, level, least, y, back):
    """A sequence that is better than `level` by `least` at least, to `y`, sooner than the best is found; False where
    there is no such way, or it does not lead there."""
    return (
        not isinstance(rules, Grid)
        and rules is not None
        and search_by_price(s, r, rules, lift, level, least, y, back[0], back[1])
    )


@overloading(good_sequence)
def _good_sequence(s, r, rules, lift, level, least, y, back):
    def by_price(s, r, rules, lift, level, least, y, back):
        return search_by_price(s, r, rules, lift, level, least, y, back[0], back[1])

    def nothing(s, r, rules, lift, level, least, y, back):
        return False

    plain = isinstance(rules, types.NoneType) or getattr(rules, "instance_class", None) is Grid
    return nothing if plain else by_price


@jit
def grow(array, size):
    """A copy with room for `size` lines."""
    grown = np.empty((size, *array.shape[1:]), array.dtype)
    grown[: array.shape[0]] = array
    return grown


@jit
def grow_square(array, lines, size):
    """A copy with room for `lines` lines of `size`."""
    grown = np.empty((lines, size), array.dtype)
    grown[: array.shape[0], : array.shape[1]] = array
    return grown


@jit
def _drop(columns, score, p, factor, sides, k, j):
    leave(factor, sides, k, j)
    for i in range(j, k - 1):
        columns[i] = columns[i + 1]
        score[i] = score[i + 1]
        p[i] = p[i + 1]
    return k - 1


@jit
def _exchange(columns, score, p, factor, sides, k, line):
    """Put column k, which lies in the affine hull of the others, into the mixture without changing z; the sequence
    that runs out first on the way leaves (a simplex pivot). `line` is what `approach` left. Returns the new k."""
    backward_solve(factor, k, line)
    step, blocking = np.inf, -1
    for j in range(k):
        if line[j] > 1e-9 and p[j] < step * line[j]:
            step, blocking = p[j] / line[j], j
    for j in range(k):
        p[j] -= step * line[j]
    entering = columns[k].copy()
    k = _drop(columns, score, p, factor, sides, k, blocking)
    columns[k] = entering
    p[k] = step
    return k


@jit
def _settle(columns, score, p, factor, sides, k, base, line, target):
    """Move to the optimum of the support; sequences whose weight would turn negative leave. Returns how many stay, and
    what scores are now counted from."""
    while True:
        if abs(score[0] - base) > FAR:  # the sequences that set the scale have left
            base = score[0]
            build(factor, sides, columns, score, base, k, line)
        best_weights(factor, sides, k, 1.0, target)
        step, blocking = 1.0, -1
        for j in range(k):
            if target[j] < 0.0 and p[j] < step * (p[j] - target[j]):
                step, blocking = p[j] / (p[j] - target[j]), j
        for j in range(k):
            p[j] += step * (target[j] - p[j])
        if blocking < 0:
            break
        k = _drop(columns, score, p, factor, sides, k, blocking)
    p[:k] /= np.sum(p[:k])  # 1 up to rounding, which large scores would blow up in the gap
    return k, base


@jit
def active_set(
    s, r, budget, columns, p, k, z, y, back, value, heads, blocks, max_iterations, bound, enough, stop, rules
):  # fmt: skip
    """Optimise from the given sequences and weights (k >= 1 of them); `z` receives the solution.

    Under `rules` (`spans_map_cpu`), unless they are None; `blocks` are then 0.

    `bound` is one on the optimum. Stops where ‖z − z*‖² <= `enough`, which the gap bounds, and so does twice the
    distance to `bound`; where the gap is rounding; and as soon as `stop[0]` is set. Returns (columns, p, k, iterations,
    gap, converged, λ), λ the score minus z·y that the support's sequences share.
    """
    n = s.shape[0]
    capacity = max(16, 2 * k)
    columns, p = grow(columns[:k], capacity + 1), grow(p[:k], capacity + 1)
    score = np.empty(capacity + 1)
    factor, sides = np.empty((capacity + 1, capacity + 1)), np.empty((2, capacity + 1))
    line, target = np.empty(capacity + 1), np.empty(capacity + 1)
    # Scores are counted from what a good sequence earns per token: partial sums then stay near 0 (see the Viterbi).
    lift = sequence_score(s, r, columns[0], 0.0, 0)[0] / max(overlap(columns[0], columns[0]), 1.0)
    lifted, reduced = s - lift, np.empty(n)
    base = sequence_score(lifted, r, columns[0], lift, budget)[0]  # and from what one earns: see `best_weights`
    given = k
    k = 0
    for j in range(given):
        columns[k] = columns[j]
        p[k] = p[j]
        distance = approach(factor, columns, k, line)
        if distance > DEPENDENT and k <= n:
            score[k] = sequence_score(lifted, r, columns[k], lift, budget)[0]
            enter(factor, sides, k, line, distance, score[k] - base)
            k += 1
    p[:k] /= np.sum(p[:k])

    iterations, stalled = 0, 0
    gap, level, best = np.inf, 0.0, np.inf
    converged = False
    while iterations < max_iterations and stop[0] == 0:
        iterations += 1
        k, base = _settle(columns, score, p, factor, sides, k, base, line, target)
        mixture(columns, p, k, z)
        size, earned = 0.0, 0.0
        for i in range(n):
            reduced[i] = lifted[i] - z[i]
            size += z[i] * z[i]
        for j in range(k):
            earned += p[j] * score[j]
        objective = 0.5 * size - earned
        level = earned - size
        quick = good_sequence(reduced, r, rules, lift, level, max(1e-9 * (1.0 + abs(level)), enough), y, back)
        if not quick:
            best_sequence(reduced, r, budget, lift, y, back, value, heads, blocks, rules)
        if k == capacity:
            capacity *= 2
            columns, p, score = grow(columns, capacity + 1), grow(p, capacity + 1), grow(score, capacity + 1)
            factor, sides = grow_square(factor, capacity + 1, capacity + 1), grow_square(sides, 2, capacity + 1)
            line, target = np.empty(capacity + 1), np.empty(capacity + 1)
        pack(y, columns[k])
        found, rounding = sequence_score(reduced, r, columns[k], lift, budget)
        gap = found - level
        if (quick or blocks > 0) and gap <= max(1e-9 * (1.0 + rounding), enough):
            blocks = 0  # whole blocks have nothing more to give
            best_sequence(reduced, r, budget, lift, y, back, value, heads, blocks, rules)
            pack(y, columns[k])
            found, rounding = sequence_score(reduced, r, columns[k], lift, budget)
            gap = found - level
        if gap <= 1e-9 * (1.0 + rounding):
            # The support's sequences all score λ up to rounding; their average has the least of it.
            level = 0.0
            for j in range(k):
                each, largest = sequence_score(reduced, r, columns[j], lift, budget)
                level += p[j] * each
                rounding = max(rounding, largest)
            gap = found - level
        tolerance = 1e-13 + 8.0 * EPS * rounding
        stalled = 0 if objective < best - 1e-16 * abs(best) else stalled + 1
        best = min(best, objective)
        missing = max(bound - lift * budget + objective, 0.0) + 8.0 * EPS * abs(bound)
        if gap <= max(tolerance, enough) or 2.0 * missing <= enough or (stalled >= 10 and gap <= 1e3 * tolerance):
            converged = True
            gap = min(gap, missing) if enough > 0.0 else gap
            break
        if stalled >= 100:
            break
        entering = sequence_score(lifted, r, columns[k], lift, budget)[0]
        distance = approach(factor, columns, k, line)
        p[k] = 0.0
        if distance <= DEPENDENT or k > n:  # n + 1 sequences span everything, whatever the rounding says
            # Inside the affine hull: the same z can be had with a better score.
            k = _exchange(columns, score, p, factor, sides, k, line)
            distance = approach(factor, columns, k, line)
        enter(factor, sides, k, line, distance, entering - base)
        score[k] = entering
        k += 1
    if converged:
        build(factor, sides, columns, score, base, k, line)
        best_weights(factor, sides, k, 1.0, target)
        p[:k] = np.maximum(target[:k], 0.0)
        p[:k] /= np.sum(p[:k])
        mixture(columns, p, k, z)
    for i in range(n):
        z[i] = min(max(z[i], 0.0), 1.0)  # sums of weights may round out of [0, 1]
    return columns, p, k, iterations, max(gap, 0.0), converged, level + lift * budget
