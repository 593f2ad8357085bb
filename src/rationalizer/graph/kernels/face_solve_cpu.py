"""Solve a program exactly on a face: to turn an interior point into the exact solution, and to compute the Jacobian.

A face is given by a status per coordinate of x: AT_LOWER and AT_UPPER coordinates are fixed at a bound, FREE ones are
not. A row whose slack is FREE does not bind; if it is soft it is violated, in the direction of its multiplier.
"""

import numpy as np

from rationalizer.graph.kernels.linear_systems_cpu import (
    InstanceProgram,
    factorize_system,
    solve_system,
    times,
    times_transposed,
)
from rationalizer.ops.kernels.numba_runtime import jit

AT_LOWER, FREE, AT_UPPER = -1, 0, 1
# Proximal terms that make the systems regular; refinement removes their effect.
_PRIMAL_DAMPING = 1e-7
_ROW_DAMPING = 1e-9
_REFINEMENTS = 30
_AMBIGUOUS = 1e-6
_SAME = 1e-9


@jit
def solve_on_face(p, system, quadratic, cost, rhs, status, x, y):
    """Solve argmin ½ Σ quadratic x² − cost·x s.t. A x = rhs over the FREE coordinates, by iterative refinement.

    `x` and `y` (the multipliers) hold the start and receive the solution. If dependent configurations or rows allow
    several solutions, the result is one near the start. The multipliers of rows that do not bind stay as they are.
    Returns the largest residual of the linear equations.
    """
    rows, known, sums = p.active.shape[0], p.owner.shape[0], p.copy_rows.shape[0]
    n = quadratic.shape[0]
    eliminated = n - known
    entries = eliminated - rows
    indptr, row_of = p.indptr, p.rows
    inverse, weight = np.zeros(eliminated), np.full(known, np.inf)
    for j in range(n):
        if status[j] == FREE and (j < entries or j >= eliminated):
            if j < eliminated:
                inverse[j] = 1.0 / (quadratic[j] + (0.0 if quadratic[j] > 0.0 else _PRIMAL_DAMPING))
            else:
                weight[j - eliminated] = _PRIMAL_DAMPING
    # Rows that do not bind are left out: their multiplier is given, and their slack takes up the difference.
    active = p.active
    binding = active.copy()
    for i in range(rows):
        if status[entries + i] == FREE:
            binding[i] = False
            x[entries + i] = 0.0
    face = InstanceProgram(
        p.indptr, p.rows, p.coefficients, p.early, binding, p.violation_cost, p.configurations, p.owner, p.copy_rows,
        p.copy_size, p.quadratic, p.cost, p.upper, p.rhs,
    )  # fmt: skip
    # On a correct face the copy of a fixed variable carries no information. Damping keeps it from dominating.
    damping = np.full(rows + sums, _ROW_DAMPING)
    damping[: p.early] = 1.0
    for v in range(entries):
        if inverse[v] > 0.0:
            for a in range(indptr[v], indptr[v + 1]):
                damping[row_of[a]] = _ROW_DAMPING
    factorize_system(face, system, inverse, weight, damping)
    dual_side, primal_side = np.zeros(n), np.zeros(rows + sums)
    transposed, product = np.empty(n), np.empty(rows + sums)
    dx, dy = np.zeros(n), np.zeros(rows + sums)
    enough = 1e-15 * max(1.0, np.max(np.abs(rhs)) if rhs.size else 0.0)
    last = np.inf
    for _ in range(_REFINEMENTS):
        times_transposed(face, y, transposed)
        times(face, x, product)
        error = 0.0
        for j in range(n):
            dual_side[j] = 0.0
            if status[j] == FREE and (j < entries or j >= eliminated):
                dual_side[j] = cost[j] - quadratic[j] * x[j] - transposed[j]
                error = max(error, abs(dual_side[j]))
        for i in range(rows + sums):
            primal_side[i] = rhs[i] - product[i] if i >= rows or binding[i] else 0.0
            error = max(error, abs(primal_side[i]))
        if not error <= 0.5 * last:
            break
        last = error
        if error <= enough:
            break
        solve_system(face, system, inverse, weight, dual_side, primal_side, dx, dy)
        for j in range(n):
            x[j] += dx[j]
        for i in range(rows + sums):
            y[i] += dy[i]
    times(p, x, product)
    for i in range(rows):
        if active[i] and not binding[i]:
            x[entries + i] = rhs[i] - product[i]
    return last


@jit
def free_multiplier(violation_cost, y):
    """Return the multiplier of a row that does not bind; a soft row is violated in the direction of `y`."""
    if violation_cost == np.inf:
        return 0.0
    return violation_cost if y > 0.0 else -violation_cost


@jit
def residual(p, x, y):
    """Return the largest violation of the optimality conditions x = clip(x + slope, 0, upper) and A x = rhs.

    The latter is y = clip(y + A x − rhs, −violation_cost, violation_cost) in soft rows.
    """
    rows = p.active.shape[0]
    n = p.upper.shape[0]
    slacks = n - p.owner.shape[0] - rows
    transposed, product = np.empty(n), np.empty(y.shape[0])
    times_transposed(p, y, transposed)
    times(p, x, product)
    active, violation_cost = p.active, p.violation_cost
    quadratic, cost, upper, rhs = p.quadratic, p.cost, p.upper, p.rhs
    worst = 0.0
    if not np.all(np.isfinite(transposed)) or not np.all(np.isfinite(product)):
        return np.inf
    for i in range(y.shape[0]):
        if i >= rows or active[i]:
            off = product[i] - rhs[i]
            if i < rows and violation_cost[i] < np.inf:
                off -= x[slacks + i]
                off = min(max(off, -violation_cost[i] - y[i]), violation_cost[i] - y[i])
            worst = max(worst, abs(off))
    for j in range(n):
        if upper[j] > 0.0:
            slope = cost[j] - quadratic[j] * x[j] - transposed[j]
            moved = min(max(x[j] + slope, 0.0), upper[j])
            worst = max(worst, abs(moved - x[j]))
    return worst


@jit
def guess_face(p, x, room, lower_dual, upper_dual, violations, status):
    """Write to `status` the face that the interior point approaches.

    For each bound, the interior point drives either the distance or the multiplier to 0. A coordinate is at the bound
    if its distance is the smaller of the two. Likewise a soft row binds if its violations are smaller than their
    multipliers.
    """
    upper, violation_cost = p.upper, p.violation_cost
    for j in range(x.shape[0]):
        status[j] = AT_LOWER
        if upper[j] > 0.0:
            if x[j] < lower_dual[j]:
                status[j] = AT_LOWER
            elif room[j] < upper_dual[j]:
                status[j] = AT_UPPER
            else:
                status[j] = FREE
    rows = p.active.shape[0]
    slacks = x.shape[0] - p.owner.shape[0] - rows
    for i in range(rows):
        if violation_cost[i] < np.inf:
            over, under, high, low = violations[0, i], violations[1, i], violations[2, i], violations[3, i]
            status[slacks + i] = FREE if over > high or under > low else AT_LOWER


@jit
def solve_exactly(p, system, tolerance, attempts, x, y, status):
    """Solve on the face `status` and correct the face while the solution leaves it, at most `attempts` times.

    `x`, `y` and `status` receive the best attempt. Returns its residual; above `tolerance` it is not optimal.
    """
    rows, n = p.active.shape[0], p.upper.shape[0]
    slacks = n - p.owner.shape[0] - rows
    upper, cost, quadratic, violation_cost = p.upper, p.cost, p.quadratic, p.violation_cost
    best = np.inf
    trial_x, trial_y, trial = x.copy(), y.copy(), status.copy()
    transposed = np.empty(n)
    for _ in range(attempts):
        for j in range(n):
            if trial[j] == AT_LOWER:
                trial_x[j] = 0.0
            elif trial[j] == AT_UPPER:
                trial_x[j] = upper[j]
        for i in range(rows):
            if trial[slacks + i] == FREE:
                trial_y[i] = free_multiplier(violation_cost[i], trial_y[i])
        solve_on_face(p, system, p.quadratic, p.cost, p.rhs, trial, trial_x, trial_y)
        times_transposed(p, trial_y, transposed)
        # Rounding can leave free coordinates slightly out of bounds; the solution has them at the bound.
        solution = trial_x.copy()
        used = trial.copy()
        changed = False
        for j in range(n):
            if upper[j] <= 0.0:
                continue
            if trial[j] == FREE:
                solution[j] = min(max(trial_x[j], 0.0), upper[j])
                if trial_x[j] < -0.01 * tolerance:
                    trial[j], changed = AT_LOWER, True
                elif trial_x[j] > upper[j] + 0.01 * tolerance:
                    trial[j], changed = AT_UPPER, True
            else:
                slope = cost[j] - quadratic[j] * trial_x[j] - transposed[j]
                if slope * trial[j] < -0.01 * tolerance:
                    trial[j], changed = FREE, True
        for i in range(rows):
            if violation_cost[i] < np.inf:
                j = slacks + i
                if trial[j] != FREE and abs(trial_y[i]) > violation_cost[i] + 0.01 * tolerance:
                    trial[j], changed = FREE, True
                elif trial[j] == FREE and trial_x[j] * trial_y[i] > 0.01 * tolerance * violation_cost[i]:
                    trial[j], changed = AT_LOWER, True
        error = residual(p, solution, trial_y)
        if error < best:
            best = error
            x[:] = solution
            y[:] = trial_y
            status[:] = used
        if not changed or error <= 0.01 * tolerance:
            break
    return best


@jit
def is_settled(p, system, x, y, status):
    """Return whether `status` is the face of the solution, as far as it determines the Jacobian.

    A coordinate is ambiguous if it is at a bound with almost no slope towards it, or free but almost at a bound. That
    is harmless if the projections of the entries onto the faces with all ambiguous coordinates free, and with all of
    them fixed, are equal; they are compared on one generic vector. Otherwise an interior point that runs until
    convergence decides by the relative interior of the optimal face, as it does for linear programs.
    """
    rows, n = p.active.shape[0], p.upper.shape[0]
    entries = n - rows - p.owner.shape[0]
    upper, cost, quadratic, violation_cost = p.upper, p.cost, p.quadratic, p.violation_cost
    transposed = np.empty(n)
    times_transposed(p, y, transposed)
    free, fixed = status.copy(), status.copy()
    ambiguous = False
    for j in range(n):
        if upper[j] > 0.0:
            slope = cost[j] - quadratic[j] * x[j] - transposed[j]
            margin = min(x[j], upper[j] - x[j]) if status[j] == FREE else slope * status[j]
            if margin < _AMBIGUOUS:
                ambiguous = True
                free[j] = FREE
                fixed[j] = AT_LOWER if x[j] < 0.5 * upper[j] else AT_UPPER
    for i in range(rows):
        if violation_cost[i] < np.inf:
            j = entries + i
            if (abs(x[j]) if status[j] == FREE else violation_cost[i] - abs(y[i])) < _AMBIGUOUS:
                ambiguous = True
                free[j], fixed[j] = FREE, AT_LOWER
    if not ambiguous:
        return True
    if not np.any(p.quadratic > 0.0):
        return False
    generic, sides = np.zeros(n), np.zeros(y.shape[0])
    for j in range(entries):
        if quadratic[j] > 0.0:
            generic[j] = np.cos(1.0 + 12.9898 * j)
    projections = np.zeros((2, n))
    for row, face in enumerate((free, fixed)):
        solve_on_face(p, system, p.quadratic, generic, sides, face, projections[row], np.zeros(y.shape[0]))
    return np.max(np.abs(projections[0, :entries] - projections[1, :entries]) * quadratic[:entries]) < _SAME


@jit
def make_orthogonal(points, direction):
    """Make `direction` orthogonal to the differences of `points` (k, n): Gram–Schmidt, twice for accuracy."""
    k, n = points.shape
    basis = np.empty((max(k, 1), n))
    count = 0
    for i in range(1, k + 1):
        vector = points[i] - points[0] if i < k else direction
        for _ in range(2):
            for j in range(count):
                product = 0.0
                for t in range(n):
                    product += basis[j, t] * vector[t]
                for t in range(n):
                    vector[t] -= product * basis[j, t]
        size = np.sqrt(np.sum(vector * vector))
        if i < k and size > 1e-9:
            basis[count] = vector / size
            count += 1
