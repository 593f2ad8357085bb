"""A primal–dual interior-point method (Mehrotra's predictor–corrector) for one instance.

Rows are elastic: each may be violated, by `over` or `under`. Soft rows have a cost of their own for this; for others
it is far above any score. So every program has an interior, and in an infeasible one violations of these remain.
"""

import numpy as np

from rationalizer.graph.kernels.linear_systems_cpu import factorize_system, solve_system, times, times_transposed
from rationalizer.ops.kernels.numba_runtime import jit

SOLVED, STALLED, INFEASIBLE = 0, 1, 2
_MAX_ITERATIONS = 150
_TO_BOUNDARY = 0.999
_NEAR = 1e-7
# In units of the largest score. Multipliers of 0/1 programs stay far below it.
_VIOLATION_COST = 1e4
_START, _SOFT_START = 1e-4, 0.5
_VIOLATED = 1e-5
RELATIVE_ERROR = 1e-3  # relative to the complementarity: sufficient accuracy of a step


@jit
def _limit_step(step, value, change):
    return -value / change if value + step * change < 0.0 else step


@jit
def _solve_refined(p, system, inverse, weight, damping, dual_side, primal_side, enough, dx, dy):
    """Call `solve_system` with refinement to the residual `enough`: D spans many orders of magnitude."""
    rows = p.active.shape[0]
    n, m = dx.shape[0], dy.shape[0]
    eliminated = inverse.shape[0]
    active = p.active
    solve_system(p, system, inverse, weight, dual_side, primal_side, dx, dy)
    more_x, more_y = np.empty(n), np.empty(m)
    transposed, product = np.empty(n), np.empty(m)
    dual_left, primal_left = np.zeros(n), np.zeros(m)
    for _ in range(2):
        times(p, dx, product)
        left, off, size = 0.0, 0.0, 1e-300
        for i in range(m):
            if i >= rows or active[i]:
                primal_left[i] = primal_side[i] - product[i] + damping[i] * dy[i]
                left = max(left, abs(primal_left[i]))
                size = max(size, abs(product[i]))
        if n > eliminated:
            times_transposed(p, dy, transposed)
            for j in range(eliminated, n):
                d = weight[j - eliminated]
                if d != np.inf:
                    dual_left[j] = dual_side[j] - d * dx[j] - transposed[j]
                    off = max(off, abs(dual_left[j]))
        if left <= 1e-12 * size or max(left, off) <= enough:
            return
        solve_system(p, system, inverse, weight, dual_left, primal_left, more_x, more_y)
        for j in range(n):
            dx[j] += more_x[j]
        for i in range(m):
            dy[i] += more_y[i]


@jit
def interior_point(p, system, gap, accuracy, cold_start, x, room, y, lower_dual, upper_dual, violations):
    """Solve to complementarity `gap`, and the linear equations to `accuracy`. Returns (outcome, steps).

    Costs and `quadratic` must be scaled to about 1.

    `x` ends strictly between its bounds, and `room` is upper − x without cancellation. `y` holds the multipliers of the
    rows, `lower_dual` and `upper_dual` those of the bounds, `violations` the shortfall and the excess of each row, and
    the multipliers of both, which are cost + y and cost − y without cancellation. Without `cold_start` it continues
    from their values.
    """
    rows, known, sums = p.active.shape[0], p.owner.shape[0], p.copy_rows.shape[0]
    n, m = p.upper.shape[0], rows + sums
    eliminated = n - known
    indptr, row_of, active, violation_cost = p.indptr, p.rows, p.active, p.violation_cost
    quadratic, cost, upper, rhs = p.quadratic, p.cost, p.upper, p.rhs
    inverse, weight = np.zeros(eliminated), np.full(known, np.inf)
    transposed, product = np.empty(n), np.empty(m)
    dual_error, primal_error = np.zeros(n), np.zeros(m)
    dual_side, primal_side = np.zeros(n), np.zeros(m)
    dx, dl, du, dy = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(m)
    bend_l, bend_u = np.zeros(n), np.zeros(n)  # the second-order terms of the corrector
    over, under, high, low = violations[0], violations[1], violations[2], violations[3]
    d_over, d_under = np.zeros(m), np.zeros(m)
    bend_over, bend_under, damping = np.zeros(m), np.zeros(m), np.zeros(m)
    # Reciprocals of x, room, high and low: a division takes as long as all other work on an entry.
    inverse_x, inverse_room, inverse_high, inverse_low = np.zeros(n), np.zeros(n), np.zeros(m), np.zeros(m)
    # Copies of fixed variables carry little information; undamped they would dominate the weights.
    copies_fixed = np.zeros(m, np.bool_)
    copies_fixed[: p.early] = True
    for v in range(eliminated - rows):
        if upper[v] > 0.0:
            for a in range(indptr[v], indptr[v + 1]):
                copies_fixed[row_of[a]] = False
    pairs = 2 * (np.count_nonzero(p.active) + np.count_nonzero(p.upper > 0.0))
    if cold_start:
        y[:] = 0.0
        violations[:2] = 0.0
        violations[2:] = _VIOLATION_COST
        for i in range(rows):
            if active[i]:
                soft = violation_cost[i] < np.inf
                over[i] = under[i] = _SOFT_START if soft else _START
                if soft:
                    high[i] = low[i] = violation_cost[i]
        for j in range(n):
            x[j], room[j], lower_dual[j], upper_dual[j] = 0.0, 0.0, 0.0, 0.0
            if upper[j] > 0.0:
                x[j] = room[j] = 0.5 * upper[j]
                slope = cost[j] - quadratic[j] * x[j]
                lower_dual[j] = 1.0 + max(0.0, -slope)
                upper_dual[j] = 1.0 + max(0.0, slope)
    if pairs == 0:
        return SOLVED, 0
    best, waited, iteration = np.inf, 0, 0
    best_x, best_room, best_lower, best_upper = x.copy(), room.copy(), lower_dual.copy(), upper_dual.copy()
    best_y, best_violations = y.copy(), violations.copy()
    outcome, step = STALLED, 1.0
    while iteration < _MAX_ITERATIONS:
        times_transposed(p, y, transposed)
        times(p, x, product)
        mu, error, size = 0.0, 0.0, 1.0
        for i in range(m):
            if i >= rows or active[i]:
                primal_error[i] = rhs[i] - product[i] - over[i] + under[i]
                mu += over[i] * high[i] + under[i] * low[i]
                error = max(error, abs(primal_error[i]))
                size = max(size, abs(y[i]))
        for j in range(n):
            if upper[j] > 0.0:
                slope = cost[j] - quadratic[j] * x[j] - transposed[j]
                dual_error[j] = slope + lower_dual[j] - upper_dual[j]
                mu += x[j] * lower_dual[j] + room[j] * upper_dual[j]
                error = max(error, abs(dual_error[j]))
        mu /= pairs
        if error <= accuracy * size and mu <= gap:
            outcome = SOLVED
            break
        # Near the end rounding may spoil a step; then the best point so far is the solution.
        if error + mu < _NEAR:
            waited = 0 if error + mu < 0.7 * best else waited + 1
        elif best < _NEAR or step < 1e-6:
            waited += 1
        if error + mu < min(best, _NEAR):
            best = error + mu
            for saved, values in ((best_x, x), (best_room, room), (best_lower, lower_dual), (best_upper, upper_dual)):
                saved[:] = values
            best_y[:] = y
            best_violations[:] = violations
        if waited >= (3 if best < _NEAR else 12) or not np.isfinite(error + mu):
            break
        for j in range(n):
            if upper[j] > 0.0:
                inverse_x[j], inverse_room[j] = 1.0 / x[j], 1.0 / room[j]
                d = quadratic[j] + lower_dual[j] * inverse_x[j] + upper_dual[j] * inverse_room[j]
                if j < eliminated:
                    inverse[j] = 1.0 / d
                else:
                    weight[j - eliminated] = d
        for i in range(rows):
            if active[i]:
                inverse_high[i], inverse_low[i] = 1.0 / high[i], 1.0 / low[i]
                damping[i] = over[i] * inverse_high[i] + under[i] * inverse_low[i]
                if copies_fixed[i]:
                    damping[i] += 1e-6
        factorize_system(p, system, inverse, weight, damping)
        target = 0.0
        for phase in range(2):
            for j in range(n):
                if upper[j] > 0.0:
                    dual_side[j] = dual_error[j] + (target - bend_l[j] * phase) * inverse_x[j] - lower_dual[j]
                    dual_side[j] -= (target - bend_u[j] * phase) * inverse_room[j] - upper_dual[j]
            for i in range(m):
                primal_side[i] = primal_error[i]
                if i < rows and active[i]:
                    primal_side[i] -= (target - bend_over[i] * phase) * inverse_high[i] - over[i]
                    primal_side[i] += (target - bend_under[i] * phase) * inverse_low[i] - under[i]
            _solve_refined(p, system, inverse, weight, damping, dual_side, primal_side, RELATIVE_ERROR * mu, dx, dy)
            step = 1.0 / _TO_BOUNDARY
            for j in range(n):
                if upper[j] > 0.0:
                    dl[j] = (target - bend_l[j] * phase - lower_dual[j] * dx[j]) * inverse_x[j] - lower_dual[j]
                    du[j] = (target - bend_u[j] * phase + upper_dual[j] * dx[j]) * inverse_room[j] - upper_dual[j]
                    step = _limit_step(_limit_step(step, x[j], dx[j]), room[j], -dx[j])
                    step = _limit_step(_limit_step(step, lower_dual[j], dl[j]), upper_dual[j], du[j])
            for i in range(rows):
                if active[i]:
                    d_over[i] = (target - bend_over[i] * phase - over[i] * dy[i]) * inverse_high[i] - over[i]
                    d_under[i] = (target - bend_under[i] * phase + under[i] * dy[i]) * inverse_low[i] - under[i]
                    step = _limit_step(_limit_step(step, over[i], d_over[i]), under[i], d_under[i])
                    step = _limit_step(_limit_step(step, high[i], dy[i]), low[i], -dy[i])
            step *= _TO_BOUNDARY
            if phase == 0:
                predicted = 0.0
                for j in range(n):
                    if upper[j] > 0.0:
                        predicted += (x[j] + step * dx[j]) * (lower_dual[j] + step * dl[j])
                        predicted += (room[j] - step * dx[j]) * (upper_dual[j] + step * du[j])
                        bend_l[j] = dx[j] * dl[j]
                        bend_u[j] = -dx[j] * du[j]
                for i in range(rows):
                    if active[i]:
                        predicted += (over[i] + step * d_over[i]) * (high[i] + step * dy[i])
                        predicted += (under[i] + step * d_under[i]) * (low[i] - step * dy[i])
                        bend_over[i] = d_over[i] * dy[i]
                        bend_under[i] = -d_under[i] * dy[i]
                target = mu * (predicted / pairs / mu) ** 3
        if not np.all(np.isfinite(dx)) or not np.all(np.isfinite(dy)):
            break
        for j in range(n):
            x[j] += step * dx[j]
            room[j] -= step * dx[j]
            lower_dual[j] += step * dl[j]
            upper_dual[j] += step * du[j]
        for i in range(m):
            y[i] += step * dy[i]
            high[i] += step * dy[i]
            low[i] -= step * dy[i]
            over[i] += step * d_over[i]
            under[i] += step * d_under[i]
        iteration += 1
    if outcome == STALLED and best < _NEAR:
        x[:], room[:], lower_dual[:], upper_dual[:] = best_x, best_room, best_lower, best_upper
        y[:] = best_y
        violations[:] = best_violations
    for i in range(rows):
        if violation_cost[i] == np.inf and (over[i] > _VIOLATED or under[i] > _VIOLATED):
            outcome = INFEASIBLE
    return outcome, iteration
