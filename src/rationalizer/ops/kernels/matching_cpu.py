"""Projection onto the (budgeted) matching polytope: Newton's method on the dual, started at the dual of the assignment.

With multipliers a (long side), b (short side) and c (total), Z = max(S − a − b − c, 0). Given y = (b, c), the
best a is a simplex threshold per long node, so the dual is minimized over y alone: it is convex, once
differentiable, piecewise quadratic, with bounds y ≥ floor (−∞ for sums that are equalities). Forbidden pairs have the
score −∞. Three properties make the method exact at every scale of S:

- The start is an optimal dual point of the linear program max <S, Z>. The projection is the solution of that
  linear program for S − Z with 0 ≤ Z ≤ 1, and duals of such programs move by at most (their size) × (the change),
  so the distance to the solution does not grow with S. S minus these multipliers is computed with compensated
  sums, and all later numbers are of moderate size.
- Levenberg–Marquardt steps: a ridge bounds the step in directions in which the current piece is flat, and each step
  solves its bounded quadratic model by an active-set method, so every accepted step descends.
- Near the end the steps have no ridge (dependent equations are dropped), the origin moves to the current
  point, and a step is accepted only if the violation of the optimality conditions falls to a tenth: the result is the
  solution of the linear system on its face.
"""

import numpy as np

from rationalizer.ops.kernels.matching_map_cpu import best_matching, gather_pair, pair_sizes, scatter_pair
from rationalizer.ops.kernels.numba_runtime import jit, reordering

TOLERANCE = 1e-12  # on sums of at most 1: a few rounding errors
NEAR = 1e-5  # below this violation the piece is usually right, and steps without a ridge are tried
FIRST_RIDGE = 1e-3
LEAST_RIDGE = 1e-7
DEPENDENT = 1e-9  # pivots are 0 or at least about 1/size²


@reordering
def highest(x):
    high = x[0]
    for value in x:
        high = value if value > high else high
    return high


@reordering
def mass_above(x, t):
    """Σ max(x − t, 0) and the number of entries above t."""
    total = 0.0
    count = 0
    for value in x:
        part = value - t
        total += part if part > 0.0 else 0.0
        count += 1 if part > 0.0 else 0
    return total, count


@jit
def threshold(x, target, floor, start):
    """Return the t ≥ floor with Σ max(x − t, 0) = target, or floor if the sum at floor is lower.

    Newton steps from `start`: the sum is convex and decreasing in t, so after one step t is left of the
    root and then only grows, until the set {x > t} no longer changes.
    """
    high = highest(x)
    if high <= floor:
        return floor
    t = max(start if start < high else high - target, floor)
    for _ in range(200):
        above, count = mass_above(x, t)
        excess = above - target
        step = t + excess / count
        if step <= floor:
            if t == floor:
                return floor
            step = floor
        if step == t or (excess >= 0.0 and excess <= 1e-16 * count * abs(t)):
            return step
        t = step
    return t


@jit
def plus(a, b):
    """Return a + b and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@jit
def reduce_scores(scores, a, b, c, out):
    """Compute scores − a_i − b_j − c, rounded once, because scores of 1e5 cancel to numbers of order one."""
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            value, e1 = plus(scores[i, j], -a[i])
            value, e2 = plus(value, -b[j])
            value, e3 = plus(value, -c)
            out[i, j] = value + (e1 + e2 + e3) if scores[i, j] > -np.inf else -np.inf


@jit
def dual(s, y, target, a_floor, a, z, tight, sums):
    """Return the dual objective at y, minimized over `a` (which holds a guess); write a, z, tight and the sums of z.

    sums[:short] are the sums of the short side, sums[short] is the total; the gradient of the objective is target −
    sums.
    """
    long, short = s.shape
    shift = y[short]
    sums[:] = 0.0
    value = 0.0
    for i in range(long):
        x = z[i]
        for j in range(short):
            x[j] = s[i, j] - y[j] - shift
        t = threshold(x, 1.0, a_floor[i], a[i])
        a[i] = t
        tight[i] = t > a_floor[i]
        value += t
        for j in range(short):
            x[j] = max(x[j] - t, 0.0)
            sums[j] += x[j]
            value += 0.5 * x[j] * x[j]
    for j in range(short):
        sums[short] += sums[j]
        value += target[j] * y[j]
    return value + target[short] * shift


@jit
def curvature(z, tight, h, support):
    """Write the Hessian of the dual in y on the current piece to the lower triangle of `h`."""
    long, short = z.shape
    h[:] = 0.0
    for i in range(long):
        count = 0
        for j in range(short):
            if z[i, j] > 0.0:
                support[count] = j
                count += 1
        if tight[i]:
            if count > 1:
                weight = 1.0 / count
                for one in range(count):
                    j = support[one]
                    h[j, j] += 1.0
                    for other in range(one + 1):
                        h[j, support[other]] -= weight
        else:
            for one in range(count):
                h[support[one], support[one]] += 1.0
                h[short, support[one]] += 1.0
            h[short, short] += count


@reordering
def dot(x, y, count):
    total = 0.0
    for k in range(count):
        total += x[k] * y[k]
    return total


@jit
def solve_free(h, free, ridge, rhs, x, factor, index):
    """Write (h + ridge)⁻¹ rhs on the free variables to `x`; dependent equations give 0, the rest is not written."""
    count = 0
    for j in range(rhs.shape[0]):
        if free[j]:
            index[count] = j
            count += 1
    for j in range(count):
        row = factor[j]
        for k in range(j):
            row[k] = (h[index[j], index[k]] - dot(row, factor[k], k)) * factor[k, k]
        pivot = h[index[j], index[j]] + ridge - dot(row, row, j)
        row[j] = 1.0 / np.sqrt(pivot) if pivot > DEPENDENT else 0.0  # the diagonal is stored inverted
        value = rhs[index[j]]
        for k in range(j):
            value -= row[k] * x[index[k]]
        x[index[j]] = value * row[j]
    for j in range(count - 1, -1, -1):
        value = x[index[j]] * factor[j, j]
        x[index[j]] = value
        for k in range(j):
            x[index[k]] -= factor[j, k] * value


@jit
def symmetric(h, j, k):
    return h[j, k] if j >= k else h[k, j]


@jit
def bounded_step(h, ridge, gradient, room, free, step, rhs, factor, index):
    """Minimize gradient·d + ½ d'(h + ridge)d s.t. d ≥ −room by an active-set method, from the guess `free`."""
    size = gradient.shape[0]
    for _ in range(10):
        for j in range(size):
            step[j] = 0.0 if free[j] else -room[j]
            rhs[j] = -gradient[j]
        for k in range(size):
            if step[k] < 0.0:
                for j in range(size):
                    rhs[j] -= symmetric(h, j, k) * step[k]
        solve_free(h, free, ridge, rhs, step, factor, index)
        settled = True
        for j in range(size):
            if free[j]:
                if step[j] < -room[j]:
                    free[j] = False
                    settled = False
            else:
                slope = gradient[j] + ridge * step[j]
                for k in range(size):
                    slope += symmetric(h, j, k) * step[k]
                if slope < 0.0:
                    free[j] = True
                    settled = False
        if settled:
            return


@jit
def optimality(sums, target, room, gradient, free):
    """Write the gradient of the dual and the set of free variables; return the largest violation.

    `room` is the distance to the lower bound. The sum of a multiplier at its bound may be below its target.
    """
    worst = 0.0
    for j in range(sums.shape[0]):
        gradient[j] = target[j] - sums[j]
        free[j] = room[j] > 0.0 or gradient[j] < 0.0
        if free[j]:
            worst = max(worst, abs(gradient[j]))
    return worst


@jit
def recentre(s, a, y, a_floor, y_floor):
    """Move the origin of the multipliers to (a, y): the remainders are small and keep their digits."""
    long, short = s.shape
    for i in range(long):
        for j in range(short):
            s[i, j] = s[i, j] - y[j] - y[short] - a[i]
        a_floor[i] -= a[i]
        a[i] = 0.0
    y_floor -= y
    y[:] = 0.0


@jit
def newton(s, target, size, a, y, a_floor, y_floor, max_iterations, z):
    """Minimize the dual from (a, y) over the first `size` entries of y; write z.

    Returns (iterations, violation). Changes s, a, y and the floors.
    """
    long, short = s.shape
    h = np.empty((short + 1, short + 1))
    factor = np.empty((size, size))
    index = np.empty(short + 1, np.int64)
    tight, trial_tight = np.empty(long, np.bool_), np.empty(long, np.bool_)
    free, trial_free = np.empty(size, np.bool_), np.empty(size, np.bool_)
    gradient, trial_gradient = np.empty(size), np.empty(size)
    room = np.empty(size)
    step, rhs = np.empty(size), np.empty(size)
    sums = np.empty(short + 1)
    trial_y = y.copy()
    trial_a = np.empty(long)
    trial_z = np.empty((long, short))

    value = dual(s, y, target, a_floor, a, z, tight, sums)
    room[:] = y[:size] - y_floor[:size]
    violation = optimality(sums[:size], target, room, gradient, free)
    ridge = FIRST_RIDGE
    centred = False
    polish = True
    moved = True
    iterations = 0
    while violation > 1e-15 and iterations < max_iterations and ridge < 1e12:
        iterations += 1
        if moved:
            curvature(z, tight, h, index)
        polishing = polish and violation < NEAR
        if polishing:
            if not centred:
                recentre(s, a, y, a_floor, y_floor)
                centred = True
            for j in range(size):
                step[j] = 0.0
                rhs[j] = -gradient[j]
            solve_free(h, free, 0.0, rhs, step, factor, index)
        else:
            room[:] = y[:size] - y_floor[:size]
            trial_free[:] = free
            bounded_step(h, ridge, gradient, room, trial_free, step, rhs, factor, index)
        for j in range(size):
            trial_y[j] = max(y[j] + step[j], y_floor[j])
            room[j] = trial_y[j] - y_floor[j]
        trial_a[:] = a
        trial_value = dual(s, trial_y, target, a_floor, trial_a, trial_z, trial_tight, sums)
        trial_violation = optimality(sums[:size], target, room, trial_gradient, trial_free)
        if polishing:
            moved = trial_violation <= 0.1 * violation
        else:
            before = 0.0
            after = 0.0
            for j in range(size):
                before += gradient[j] * (trial_y[j] - y[j])
                after += trial_gradient[j] * (trial_y[j] - y[j])
            # A slope that still points downhill proves descent even if the values differ by rounding only.
            moved = after <= 0.0 or trial_value <= value + 1e-4 * before
        if moved:
            y[:size] = trial_y[:size]
            a[:] = trial_a
            z[:] = trial_z
            value, violation = trial_value, trial_violation
            tight, trial_tight = trial_tight, tight
            free, trial_free = trial_free, free
            gradient, trial_gradient = trial_gradient, gradient
            polish = True
            if not polishing:
                ridge = max(0.1 * ridge, LEAST_RIDGE)
        elif polishing:
            if violation <= TOLERANCE:
                break
            polish = False
        else:
            ridge *= 8.0
    return iterations, violation


@jit
def matching_pair(scores, limit, long_exact, short_exact, total_exact, max_iterations, z):
    """Write the projection of `scores` (long, short) to `z`, NaN if infeasible; return (iterations, violation)."""
    long, short = scores.shape
    if short == 0 or limit == 0:
        z[:] = 0.0
        return 0, 0.0
    a, y = np.empty(long), np.empty(short + 1)
    mate, partner = np.empty(long, np.int64), np.empty(short, np.int64)
    budgeted = limit < short
    short_exact |= total_exact and not budgeted  # as many pairs as nodes: each node has one
    least = limit if long_exact or short_exact or total_exact else 0
    level = best_matching(scores, least, limit, a, y[:short], mate, partner)
    if np.isnan(level):
        z[:] = np.nan
        return 0, np.inf
    target = np.ones(short + 1)
    target[short] = limit
    y[short] = 0.0
    if not long_exact:  # otherwise (a, y) is dual feasible, and the level may have any sign
        a -= level
        if budgeted:
            y[short] = level
        else:
            y[:short] += level
    s = np.empty((long, short))
    reduce_scores(scores, a, y[:short], y[short], s)
    a_floor = np.full(long, -np.inf) if long_exact else -a
    y_floor = -y
    if short_exact:
        y_floor[:short] = -np.inf
    if total_exact:
        y_floor[short] = -np.inf
    # With the duals of the linear program all reduced scores are at most 0, where there is no curvature: minimize over
    # the total, then over the short side, then (in `newton`) over the long one.
    a[:] = 0.0
    y[:] = 0.0
    if budgeted:
        y[short] = threshold(s.ravel(), float(limit), y_floor[short], 0.0)
    for j in range(short):
        y[j] = threshold(s[:, j] - y[short], 1.0, y_floor[j], 0.0)
    size = short + 1 if budgeted else short
    iterations, violation = newton(s, target, size, a, y, a_floor, y_floor, max_iterations, z)
    for i in range(long):
        for j in range(short):
            if z[i, j] < TOLERANCE:  # rounding: the entry is not in the support
                z[i, j] = 0.0
    return iterations, violation


@jit
def matching_rows(
    first,
    last,
    scores,
    row_mask,
    column_mask,
    least,
    budget,
    rows_exact,
    columns_exact,
    total_exact,
    max_iterations,
    z,
    iterations,
    violation,
):
    """Solve each matrix without the lower bound, then, if there are too few pairs, with exactly `least` of them: as the
    problem is convex, a bound that is violated without it binds."""
    for row in range(first, last):
        long, short, transposed = pair_sizes(row_mask[row], column_mask[row])
        pair = np.empty((long, short))
        solution = np.empty((long, short))
        gather_pair(scores[row], row_mask[row], column_mask[row], transposed, pair)
        long_exact, short_exact = rows_exact, columns_exact
        if transposed:
            long_exact, short_exact = columns_exact, rows_exact
        iterations[row], violation[row] = matching_pair(
            pair, min(budget[row], short), long_exact, short_exact, total_exact, max_iterations, solution
        )
        low = min(least[row], short)
        if low > 0 and not (long_exact or short_exact or total_exact) and np.sum(solution) < low - TOLERANCE:
            steps, violation[row] = matching_pair(pair, low, False, False, True, max_iterations, solution)
            iterations[row] += steps
        scatter_pair(solution, row_mask[row], column_mask[row], transposed, z[row])
