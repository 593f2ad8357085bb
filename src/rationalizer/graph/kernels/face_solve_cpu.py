"""Exact solutions on a face: the polish of an interior point, and the projection that is the layer's Jacobian.

A face is a status per coordinate of x: AT_LOWER and AT_UPPER are fixed, FREE is not. A row whose slack is FREE does
not bind.
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


@jit
def solve_on_face(p, system, quadratic, cost, rhs, status, x, y):
    """argmin ½ Σ quadratic x² − cost·x s.t. A x = rhs over FREE coordinates; starts from and overwrites `x` and `y`.

    Of several solutions (weights of dependent configurations, multipliers of dependent rows) it finds one near the
    start. Returns the largest residual of the linear equations.
    """
    rows, known, sums = p.active.shape[0], p.owner.shape[0], p.copy_rows.shape[0]
    n = quadratic.shape[0]
    eliminated = n - known
    entries = eliminated - rows
    inverse, weight = np.zeros(eliminated), np.full(known, np.inf)
    for j in range(n):
        if status[j] == FREE and (j < entries or j >= eliminated):
            if j < eliminated:
                inverse[j] = 1.0 / (quadratic[j] + (0.0 if quadratic[j] > 0.0 else _PRIMAL_DAMPING))
            else:
                weight[j - eliminated] = _PRIMAL_DAMPING
    # Rows that do not bind leave the system: their multiplier is 0, and their slack absorbs the difference.
    binding = p.active.copy()
    for i in range(rows):
        if status[entries + i] == FREE:
            binding[i] = False
            y[i] = 0.0
            x[entries + i] = 0.0
    face = InstanceProgram(
        p.indptr, p.rows, p.coefficients, p.early, binding, p.configurations, p.owner, p.copy_rows, p.copy_size,
        p.quadratic, p.cost, p.upper, p.rhs,
    )  # fmt: skip
    # The copy of a fixed variable carries no information on a correct face; damping keeps it from dominating.
    damping = np.full(rows + sums, _ROW_DAMPING)
    damping[: p.early] = 1.0
    for v in range(entries):
        if inverse[v] > 0.0:
            for a in range(p.indptr[v], p.indptr[v + 1]):
                damping[p.rows[a]] = _ROW_DAMPING
    factorize_system(face, system, inverse, weight, damping)
    dual_side, primal_side = np.zeros(n), np.zeros(rows + sums)
    transposed, product = np.empty(n), np.empty(rows + sums)
    dx, dy = np.zeros(n), np.zeros(rows + sums)
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
        if error <= 1e-15 or not error <= 0.5 * last:
            break
        last = error
        solve_system(face, system, inverse, weight, dual_side, primal_side, dx, dy)
        for j in range(n):
            x[j] += dx[j]
        for i in range(rows + sums):
            y[i] += dy[i]
    times(p, x, product)
    for i in range(rows):
        if p.active[i] and not binding[i]:
            x[entries + i] = rhs[i] - product[i]
    return last


@jit
def residual(p, x, y):
    """The violation of the optimality conditions: of the rows, and of x = clip(x + slope, 0, upper)."""
    rows = p.active.shape[0]
    n = p.upper.shape[0]
    transposed, product = np.empty(n), np.empty(y.shape[0])
    times_transposed(p, y, transposed)
    times(p, x, product)
    worst = 0.0
    if not np.all(np.isfinite(transposed)) or not np.all(np.isfinite(product)):
        return np.inf
    for i in range(y.shape[0]):
        if i >= rows or p.active[i]:
            worst = max(worst, abs(p.rhs[i] - product[i]))
    for j in range(n):
        if p.upper[j] > 0.0:
            slope = p.cost[j] - p.quadratic[j] * x[j] - transposed[j]
            moved = min(max(x[j] + slope, 0.0), p.upper[j])
            worst = max(worst, abs(moved - x[j]))
    return worst


@jit
def guess_face(p, x, room, lower_dual, upper_dual, status):
    """The interior point drives either the distance to a bound or its multiplier to 0: the smaller one decides."""
    for j in range(x.shape[0]):
        status[j] = AT_LOWER
        if p.upper[j] > 0.0:
            if x[j] < lower_dual[j]:
                status[j] = AT_LOWER
            elif room[j] < upper_dual[j]:
                status[j] = AT_UPPER
            else:
                status[j] = FREE


@jit
def polish(p, system, tolerance, attempts, x, y, status):
    """Solve exactly on the face `status`, correcting the face if the solution leaves it. Returns the residual.

    `x`, `y` and `status` become the best found; with a residual above `tolerance` they are not optimal.
    """
    n = p.upper.shape[0]
    best = np.inf
    trial_x, trial_y, trial = x.copy(), y.copy(), status.copy()
    transposed = np.empty(n)
    for _ in range(attempts):
        for j in range(n):
            if trial[j] == AT_LOWER:
                trial_x[j] = 0.0
            elif trial[j] == AT_UPPER:
                trial_x[j] = p.upper[j]
        solve_on_face(p, system, p.quadratic, p.cost, p.rhs, trial, trial_x, trial_y)
        times_transposed(p, trial_y, transposed)
        # Rounding leaves coordinates slightly outside; on the face they are at the bound.
        solution = trial_x.copy()
        used = trial.copy()
        changed = False
        for j in range(n):
            if p.upper[j] <= 0.0:
                continue
            if trial[j] == FREE:
                solution[j] = min(max(trial_x[j], 0.0), p.upper[j])
                if trial_x[j] < -0.01 * tolerance:
                    trial[j], changed = AT_LOWER, True
                elif trial_x[j] > p.upper[j] + 0.01 * tolerance:
                    trial[j], changed = AT_UPPER, True
            else:
                slope = p.cost[j] - p.quadratic[j] * trial_x[j] - transposed[j]
                if slope * trial[j] < -0.01 * tolerance:
                    trial[j], changed = FREE, True
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
def is_unambiguous(p, x, y, status):
    """Whether no coordinate is near a change of `status`: at a bound with almost no slope towards it, or free but
    almost at one. An interior point that runs to the end decides ambiguous ones as the whole optimal face does."""
    n = p.upper.shape[0]
    transposed = np.empty(n)
    times_transposed(p, y, transposed)
    for j in range(n):
        if p.upper[j] > 0.0:
            slope = p.cost[j] - p.quadratic[j] * x[j] - transposed[j]
            margin = min(x[j], p.upper[j] - x[j]) if status[j] == FREE else slope * status[j]
            if margin < _AMBIGUOUS:
                return False
    return True


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
