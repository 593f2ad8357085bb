"""A primal active-set method that continues from the exact solution over fewer configurations.

A new configuration changes the solution little: a few solves on faces cost far less than an interior point.
"""

import numpy as np

from rationalizer.graph.kernels.face_solve_cpu import (
    AT_LOWER,
    AT_UPPER,
    FREE,
    free_multiplier,
    residual,
    solve_on_face,
)
from rationalizer.graph.kernels.linear_systems_cpu import InstanceProgram, make_system, times, times_transposed
from rationalizer.ops.kernels.numba_runtime import jit

_STEPS = 40


@jit
def solve_warm(p, row_first, tolerance, x, y, status):
    """Solve `p`, which must be convex in its entries, from the feasible point `x` with the face `status`.

    `x`, `y` and `status` receive the solution. Returns its residual; inf if it was not found in a few steps.
    """
    n = p.upper.shape[0]
    plain = n - p.owner.shape[0]
    active, violation_cost, quadratic, cost, upper = p.active, p.violation_cost, p.quadratic, p.cost, p.upper
    bounded = _is_bounded(p)
    for j in range(plain):
        if not bounded[j] and upper[j] > 0.0:
            status[j] = FREE
    rows = p.active.shape[0]
    slacks = plain - rows
    transposed, product = np.empty(n), np.empty(y.shape[0])
    times(p, x, product)
    for i in range(rows):
        if active[i] and status[slacks + i] == FREE:
            x[slacks + i] = p.rhs[i] - product[i]
    slack = 0.01 * tolerance
    for _ in range(_STEPS):
        # Configurations of weight 0 are left out of the systems.
        free = np.flatnonzero(status[plain:] == FREE)
        kept = np.concatenate((np.arange(plain), plain + free))
        face = InstanceProgram(
            p.indptr, p.rows, p.coefficients, p.early, p.active, p.violation_cost, p.configurations[free],
            p.owner[free], p.copy_rows, p.copy_size, p.quadratic[kept], p.cost[kept], p.upper[kept], p.rhs,
        )  # fmt: skip
        start = x[kept]
        target, multipliers = start.copy(), y.copy()
        face_status = status[kept]
        system = make_system(face, row_first)
        solve_on_face(face, system, face.quadratic, face.cost, face.rhs, face_status, target, multipliers)
        step, blocking, bound = 1.0, -1, AT_LOWER
        for k in range(kept.shape[0]):
            j = kept[k]
            if face_status[k] == FREE and bounded[j] and upper[j] > 0.0:
                change = target[k] - start[k]
                if target[k] < -slack and start[k] + step * change < 0.0:
                    step, blocking, bound = max(-start[k] / change, 0.0), j, AT_LOWER
                elif target[k] > upper[j] + slack and start[k] + step * change > upper[j]:
                    step, blocking, bound = max((upper[j] - start[k]) / change, 0.0), j, AT_UPPER
        for i in range(rows):
            j = slacks + i
            if status[j] == FREE and violation_cost[i] < np.inf:
                change = target[j] - start[j]
                side = 1.0 if y[i] > 0.0 else -1.0
                if side * target[j] > slack and side * (start[j] + step * change) > 0.0:
                    step, blocking, bound = max(-start[j] / change, 0.0), j, AT_LOWER
        for k in range(kept.shape[0]):
            moved = start[k] + step * (target[k] - start[k])
            x[kept[k]] = min(max(moved, 0.0), p.upper[kept[k]]) if bounded[kept[k]] else moved
        if blocking >= 0:
            status[blocking] = bound
            x[blocking] = upper[blocking] if bound == AT_UPPER else 0.0
            continue
        y[:] = multipliers
        times_transposed(p, y, transposed)
        entering, worst = -1, -slack
        for j in range(n):
            if status[j] != FREE and upper[j] > 0.0:
                gain = (cost[j] - quadratic[j] * x[j] - transposed[j]) * status[j]
                if gain < worst:
                    entering, worst = j, gain
        for i in range(rows):
            if status[slacks + i] != FREE and violation_cost[i] < np.inf and violation_cost[i] - abs(y[i]) < worst:
                entering, worst = slacks + i, violation_cost[i] - abs(y[i])
        if entering < 0:
            return residual(p, x, y)
        status[entering] = FREE
        if slacks <= entering < plain:
            y[entering - slacks] = free_multiplier(violation_cost[entering - slacks], y[entering - slacks])
    return np.inf


@jit
def _is_bounded(p):
    """Return which coordinates can leave their bounds: mixtures of configurations never do, nor their copies.

    The slacks of soft rows are not bounded.
    """
    rows, n = p.active.shape[0], p.upper.shape[0]
    indptr, row_of, active, violation_cost = p.indptr, p.rows, p.active, p.violation_cost
    copy_rows, copy_size = p.copy_rows, p.copy_size
    copies = np.zeros(rows, np.bool_)
    for factor in range(p.copy_rows.shape[0]):
        for t in range(copy_size[factor]):
            copies[copy_rows[factor, t]] = active[copy_rows[factor, t]]
    bounded = np.ones(n, np.bool_)
    for v in range(p.indptr.shape[0] - 1):
        for a in range(indptr[v], indptr[v + 1]):
            if copies[row_of[a]]:
                bounded[v] = False
    for i in range(rows):
        bounded[p.indptr.shape[0] - 1 + i] = violation_cost[i] == np.inf
    return bounded
