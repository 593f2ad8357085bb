"""A primal active-set method that continues from the exact solution over fewer configurations.

A new configuration changes the solution little: a few solves on faces cost far less than an interior point.
"""

import numpy as np

from rationalizer.graph.kernels.face_solve_cpu import AT_LOWER, AT_UPPER, FREE, residual, solve_on_face
from rationalizer.graph.kernels.linear_systems_cpu import InstanceProgram, make_system, times_transposed
from rationalizer.ops.kernels.numba_runtime import jit

_STEPS = 40


@jit
def solve_warm(p, row_first, tolerance, x, y, status):
    """Solve `p`, which must be convex in its entries, from the feasible point `x` with the face `status`.

    `x`, `y` and `status` receive the solution. Returns its residual; inf if it was not found in a few steps.
    """
    n = p.upper.shape[0]
    plain = n - p.owner.shape[0]
    bounded = _is_bounded(p)
    for j in range(plain):
        if not bounded[j] and p.upper[j] > 0.0:
            status[j] = FREE
    transposed = np.empty(n)
    slack = 0.01 * tolerance
    for _ in range(_STEPS):
        # Configurations of weight 0 are left out of the systems.
        free = np.flatnonzero(status[plain:] == FREE)
        kept = np.concatenate((np.arange(plain), plain + free))
        face = InstanceProgram(
            p.indptr, p.rows, p.coefficients, p.early, p.active, p.configurations[free], p.owner[free], p.copy_rows,
            p.copy_size, p.quadratic[kept], p.cost[kept], p.upper[kept], p.rhs,
        )  # fmt: skip
        start = x[kept]
        target, multipliers = start.copy(), y.copy()
        face_status = status[kept]
        system = make_system(face, row_first)
        solve_on_face(face, system, face.quadratic, face.cost, face.rhs, face_status, target, multipliers)
        step, blocking, bound = 1.0, -1, AT_LOWER
        for k in range(kept.shape[0]):
            j = kept[k]
            if face_status[k] == FREE and bounded[j] and p.upper[j] > 0.0:
                change = target[k] - start[k]
                if target[k] < -slack and start[k] + step * change < 0.0:
                    step, blocking, bound = max(-start[k] / change, 0.0), j, AT_LOWER
                elif target[k] > p.upper[j] + slack and start[k] + step * change > p.upper[j]:
                    step, blocking, bound = max((p.upper[j] - start[k]) / change, 0.0), j, AT_UPPER
        for k in range(kept.shape[0]):
            moved = start[k] + step * (target[k] - start[k])
            x[kept[k]] = min(max(moved, 0.0), p.upper[kept[k]]) if bounded[kept[k]] else moved
        if blocking >= 0:
            status[blocking] = bound
            x[blocking] = p.upper[blocking] if bound == AT_UPPER else 0.0
            continue
        y[:] = multipliers
        times_transposed(p, y, transposed)
        entering, worst = -1, -slack
        for j in range(n):
            if status[j] != FREE and p.upper[j] > 0.0:
                gain = (p.cost[j] - p.quadratic[j] * x[j] - transposed[j]) * status[j]
                if gain < worst:
                    entering, worst = j, gain
        if entering < 0:
            return residual(p, x, y)
        status[entering] = FREE
    return np.inf


@jit
def _is_bounded(p):
    """Return which coordinates can leave their bounds: mixtures of configurations never do, nor their copies."""
    rows, n = p.active.shape[0], p.upper.shape[0]
    copies = np.zeros(rows, np.bool_)
    for factor in range(p.copy_rows.shape[0]):
        for t in range(p.copy_size[factor]):
            copies[p.copy_rows[factor, t]] = p.active[p.copy_rows[factor, t]]
    bounded = np.ones(n, np.bool_)
    for v in range(p.indptr.shape[0] - 1):
        for a in range(p.indptr[v], p.indptr[v + 1]):
            if copies[p.rows[a]]:
                bounded[v] = False
    return bounded
