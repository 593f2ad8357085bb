"""SparseMAP over sequences by an active-set method: exact and finite, for transitions of any sign.

Minimize ½‖Yp‖² − c·p over distributions p on sequences (the columns of Y, with scores c). The support is kept affinely
independent, so it has at most n + 1 sequences. The equality-constrained problem on the support is solved with a
Cholesky factor that is updated when a sequence is added or removed (`cholesky_cpu`). Sequences are stored as bits
(`bits_cpu`).

The best sequence at the current solution z often does not belong to the optimal support, since the linear objective
s − z moves a lot at first. If a relaxation has been solved, the method therefore keeps a center: the point c with the
smallest dual value max_y (s − c)·y + r·pairs(y) + ½‖c‖², an upper bound on the optimum. It first looks for the best
sequence close to the center on the way to z, and takes it if it improves z. Each failure moves the search away from the
center, and perhaps the center itself.
"""

import numpy as np
from numba import types

from rationalizer.ops.kernels.bits_cpu import is_set, mixture, normalize, overlap, pack
from rationalizer.ops.kernels.cholesky_cpu import (
    add_column,
    backward_solve,
    best_weights,
    build,
    distance_to_hull,
    remove_column,
)
from rationalizer.ops.kernels.lagrangian_cpu import search_with_multiplier
from rationalizer.ops.kernels.monotone_matching_map_cpu import Grid, best_alignment
from rationalizer.ops.kernels.numba_runtime import jit, overloading, reordering
from rationalizer.ops.kernels.sequence_budget_map_cpu import budgeted_viterbi
from rationalizer.ops.kernels.spans_map_cpu import constrained_viterbi

DEPENDENT = 1e-9  # squared distance from the affine hull below which a sequence counts as inside it
EPS = 2.3e-16
NEAREST, FARTHEST = 1e-6, 0.5  # where sequences are searched first: the share of the way from the center to z
NEARER, FARTHER = 0.3, 300.0  # how this share changes after a success and after a failure
MAX_DIFFERENCE = 1e6  # from the base score; larger differences would make the weights inaccurate


@jit
def sequence_score(s, r, words, offset, budget):
    """Return s·y + Σ r_i y_i y_{i+1} + offset·(Σy − budget), and the largest partial sum, for rounding error bounds."""
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
    return total + offset * (used - budget), largest


def _is_grid(structure):
    """Return whether the Numba type is that of a `Grid`; a constraint graph is a plain tuple."""
    return getattr(structure, "instance_class", None) is Grid


def best_sequence(s, r, least, budget, offset, y, back, value, structure):
    """Write the best sequence to `y` and return its score (−inf if none is feasible).

    The type of `structure` decides which dynamic program is compiled: None for sequences of `least` to `budget` ones, a
    `Grid` for alignments, a constraint graph for constrained selections.
    """
    if isinstance(structure, Grid):
        return best_alignment(s, structure, offset, y, back, value)
    if structure is not None:
        return constrained_viterbi(s, r, structure, offset, y, back[0], value)
    return budgeted_viterbi(s, r, least, budget, offset, y, back, value)


@overloading(best_sequence)
def _best_sequence(s, r, least, budget, offset, y, back, value, structure):
    def constrained(s, r, least, budget, offset, y, back, value, structure):
        return constrained_viterbi(s, r, structure, offset, y, back[0], value)

    def alignment(s, r, least, budget, offset, y, back, value, structure):
        return best_alignment(s, structure, offset, y, back, value)

    def budgeted(s, r, least, budget, offset, y, back, value, structure):
        return budgeted_viterbi(s, r, least, budget, offset, y, back, value)

    if isinstance(structure, types.NoneType):
        return budgeted
    return alignment if _is_grid(structure) else constrained


def improving_sequence(s, r, structure, offset, level, least, y, back):
    """Search for a sequence whose score exceeds `level` by more than `least`; write it to `y`.

    Faster than `best_sequence`. Returns False if there is no fast search for this structure, or if it found none.
    """
    return (
        not isinstance(structure, Grid)
        and structure is not None
        and search_with_multiplier(s, r, structure, offset, level, least, y, back[0], back[1])
    )


@overloading(improving_sequence)
def _improving_sequence(s, r, structure, offset, level, least, y, back):
    def search(s, r, structure, offset, level, least, y, back):
        return search_with_multiplier(s, r, structure, offset, level, least, y, back[0], back[1])

    def no_search(s, r, structure, offset, level, least, y, back):
        return False

    return no_search if isinstance(structure, types.NoneType) or _is_grid(structure) else search


@jit
def grow(array, size):
    """Return a copy with `size` rows."""
    grown = np.empty((size, *array.shape[1:]), array.dtype)
    grown[: array.shape[0]] = array
    return grown


@jit
def grow_square(array, lines, size):
    """Return a copy with `lines` rows of length `size`."""
    grown = np.empty((lines, size), array.dtype)
    grown[: array.shape[0], : array.shape[1]] = array
    return grown


@jit
def _drop(columns, score, p, factor, sides, k, j):
    """Remove sequence j of the k sequences; return k − 1."""
    remove_column(factor, sides, k, j)
    for i in range(j, k - 1):
        columns[i] = columns[i + 1]
        score[i] = score[i + 1]
        p[i] = p[i + 1]
    return k - 1


@jit
def _exchange(columns, score, p, factor, sides, k, line):
    """Move weight to column k, which lies in the affine hull of the others, without changing z (a simplex pivot).

    The sequence whose weight reaches 0 first is removed. `line` is from `distance_to_hull`. Returns the new k.
    """
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
def _optimize_weights(columns, score, p, factor, sides, k, base, line, target):
    """Optimize the weights `p` on the support and remove sequences whose weights would become negative.

    Returns the size of the support and the base score.
    """
    while True:
        if abs(score[0] - base) > MAX_DIFFERENCE:  # the sequences near the base have been removed
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
    normalize(p, k)  # the sum is 1 up to rounding, which large scores would amplify in the gap
    return k, base


@reordering
def _square(x):
    """Return ‖x‖²."""
    total = 0.0
    for value in x:
        total += value * value
    return total


@jit
def _search_near_center(s, r, z, center, dual_value, share, least, budget, offset, reduced, y, back, value, structure):
    """Write the best sequence at the given share of the way from the center to z to `y`.

    Returns the smaller one of two dual values: that at this point, which then becomes the center, and `dual_value`,
    that of the center. `reduced` is scratch.
    """
    n = z.shape[0]
    for i in range(n):
        reduced[i] = center[i] + share * (z[i] - center[i])
    size = _square(reduced)
    for i in range(n):
        reduced[i] = s[i] - reduced[i]
    new_value = best_sequence(reduced, r, least, budget, offset, y, back, value, structure) + 0.5 * size
    if new_value < dual_value:
        for i in range(n):
            center[i] = s[i] - reduced[i]
    return min(new_value, dual_value)


@jit
def active_set(
    s, r, least, budget, columns, p, k, z, y, back, value, max_iterations, bound, squared_tolerance, stop, structure
):
    """Solve from a start of k ≥ 1 sequences and their weights; write the solution to `z`.

    `structure` is as in `best_sequence`. `bound` is an upper bound on the optimum: inf, or the dual value of a
    relaxation at its solution, which is expected in `z`.

    Stops when ‖z − z*‖² ≤ `squared_tolerance` is proven, when the duality gap is a rounding error, and when `stop[0]`
    is set. The duality gap is an upper bound on ‖z − z*‖²; twice the distance of the objective from `bound` is another.
    Returns (columns, p, k, iterations, gap, converged, λ); all sequences y of the support have score − z·y = λ.
    """
    n = s.shape[0]
    capacity = max(16, 2 * k)
    columns, p = grow(columns[:k], capacity + 1), grow(p[:k], capacity + 1)
    score = np.empty(capacity + 1)
    factor, sides = np.empty((capacity + 1, capacity + 1)), np.empty((2, capacity + 1))
    line, target = np.empty(capacity + 1), np.empty(capacity + 1)
    # Subtract from all scores the mean score per word of a good sequence: partial sums then stay near 0.
    offset = sequence_score(s, r, columns[0], 0.0, 0)[0] / max(overlap(columns[0], columns[0]), 1.0)
    shifted, center, reduced, scratch = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        shifted[i], center[i] = s[i] - offset, z[i]
    bound -= offset * budget
    dual_value, share = bound, NEAREST
    base = sequence_score(shifted, r, columns[0], offset, budget)[0]  # see `best_weights`
    initial = k
    k = 0
    for j in range(initial):
        columns[k] = columns[j]
        p[k] = p[j]
        distance = distance_to_hull(factor, columns, k, line)
        if distance > DEPENDENT and k <= n:
            score[k] = sequence_score(shifted, r, columns[k], offset, budget)[0]
            add_column(factor, sides, k, line, distance, score[k] - base)
            k += 1
    normalize(p, k)

    iterations, stalled = 0, 0
    gap, level, best = np.inf, 0.0, np.inf
    converged = False
    while iterations < max_iterations and stop[0] == 0:
        iterations += 1
        k, base = _optimize_weights(columns, score, p, factor, sides, k, base, line, target)
        mixture(columns, p, k, z)
        size, mean_score = _square(z), 0.0
        for i in range(n):
            reduced[i] = shifted[i] - z[i]
        for j in range(k):
            mean_score += p[j] * score[j]
        objective = 0.5 * size - mean_score
        level = mean_score - size
        if k == capacity:
            capacity *= 2
            columns, p, score = grow(columns, capacity + 1), grow(p, capacity + 1), grow(score, capacity + 1)
            factor, sides = grow_square(factor, capacity + 1, capacity + 1), grow_square(sides, 2, capacity + 1)
            line, target = np.empty(capacity + 1), np.empty(capacity + 1)
        least_gain = max(1e-9 * (1.0 + abs(level)), squared_tolerance)
        found = False
        if iterations < max_iterations:  # the gap after the last iteration must be that of the best sequence
            found = improving_sequence(reduced, r, structure, offset, level, least_gain, y, back)
            near = not found and dual_value < np.inf
            if near:
                dual_value = _search_near_center(
                    shifted, r, z, center, dual_value, share, least, budget, offset, scratch, y, back, value, structure
                )
            if found or near:
                pack(y, columns[k])
                best_score, rounding = sequence_score(reduced, r, columns[k], offset, budget)
                gap = best_score - level
                found = gap > least_gain + 1e-9 * rounding
            if near:
                share = max(NEARER * share, NEAREST) if found else min(FARTHER * share, FARTHEST)
        if not found:
            best_sequence(reduced, r, least, budget, offset, y, back, value, structure)
            pack(y, columns[k])
            best_score, rounding = sequence_score(reduced, r, columns[k], offset, budget)
            gap = best_score - level
            if best_score + 0.5 * size < dual_value < np.inf:
                center[:] = z
                dual_value = best_score + 0.5 * size
        if gap <= 1e-9 * (1.0 + rounding):
            # All sequences of the support have the score λ up to rounding; their average has the smallest error.
            level = 0.0
            for j in range(k):
                each, largest = sequence_score(reduced, r, columns[j], offset, budget)
                level += p[j] * each
                rounding = max(rounding, largest)
            gap = best_score - level
        tolerance = 1e-13 + 8.0 * EPS * rounding
        stalled = 0 if objective < best - 1e-16 * abs(best) else stalled + 1
        best = min(best, objective)
        missing = max(bound + objective, 0.0) + 8.0 * EPS * abs(bound)
        small_gap = gap <= max(tolerance, squared_tolerance) or (stalled >= 10 and gap <= 1e3 * tolerance)
        if small_gap or 2.0 * missing <= squared_tolerance:
            converged = True
            gap = min(gap, missing) if squared_tolerance > 0.0 else gap
            break
        if stalled >= 100:
            break
        entering = sequence_score(shifted, r, columns[k], offset, budget)[0]
        distance = distance_to_hull(factor, columns, k, line)
        p[k] = 0.0
        if distance <= DEPENDENT or k > n:  # n + 1 independent sequences span the whole space, whatever rounding says
            # The sequence is inside the affine hull: a different mixture has the same z and a better score.
            k = _exchange(columns, score, p, factor, sides, k, line)
            distance = distance_to_hull(factor, columns, k, line)
        add_column(factor, sides, k, line, distance, entering - base)
        score[k] = entering
        k += 1
    if converged:
        build(factor, sides, columns, score, base, k, line)
        best_weights(factor, sides, k, 1.0, target)
        for j in range(k):
            p[j] = max(target[j], 0.0)
        normalize(p, k)
        mixture(columns, p, k, z)
    for i in range(n):
        z[i] = min(max(z[i], 0.0), 1.0)  # sums of weights may leave [0, 1] by rounding
    return columns, p, k, iterations, max(gap, 0.0), converged, level + offset * budget
