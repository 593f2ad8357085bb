"""The Jacobian of the matching layer: the projector onto the directions of the face of the solution."""

import numpy as np

from rationalizer.ops.kernels.matching_cpu import curvature, solve_free
from rationalizer.ops.kernels.matching_map_cpu import gather_pair, pair_sizes, scatter_pair
from rationalizer.ops.kernels.numba_runtime import jit

TIGHT = 1e-9  # a sum this close to its bound counts as equal to it


@jit
def subtract_row_means(z, g, weight, tight, out):
    """Write g − weight_j − weight_total, minus its mean in tight rows, to `out` on the support of z; 0 elsewhere."""
    long, short = z.shape
    for i in range(long):
        count = 0
        total = 0.0
        for j in range(short):
            out[i, j] = 0.0
            if z[i, j] > 0.0:
                out[i, j] = g[i, j] - weight[j] - weight[short]
                total += out[i, j]
                count += 1
        if tight[i] and count > 0:
            mean = total / count
            for j in range(short):
                if z[i, j] > 0.0:
                    out[i, j] -= mean


@jit
def project_face(z, g, least, limit, long_exact, short_exact, out):
    """Project `g` onto the directions that preserve the zeros of `z` and the sums that are at their bounds.

    Sums decide, not multipliers, which are not unique: a multiplier of 0 may belong to a sum that the others keep at
    its bound (all rows of a square matching with full columns).
    """
    long, short = z.shape
    h = np.empty((short + 1, short + 1))
    factor = np.empty((short + 1, short + 1))
    index = np.empty(short + 1, np.int64)
    tight = np.empty(long, np.bool_)
    sums = np.zeros(short + 1)
    rhs, weight = np.zeros(short + 1), np.zeros(short + 1)
    for i in range(long):
        total = 0.0
        for j in range(short):
            total += z[i, j]
            sums[j] += z[i, j]
        tight[i] = long_exact or total > 1.0 - TIGHT
        sums[short] += total
    fixed = np.empty(short + 1, np.bool_)
    for j in range(short):
        fixed[j] = short_exact or sums[j] > 1.0 - TIGHT
    fixed[short] = sums[short] > limit - TIGHT or (least > 0 and sums[short] < least + TIGHT)
    subtract_row_means(z, g, weight, tight, out)
    for i in range(long):
        for j in range(short):
            rhs[j] += out[i, j]
            rhs[short] += out[i, j]
    curvature(z, tight, h, index)
    solve_free(h, fixed, 0.0, rhs, weight, factor, index)
    subtract_row_means(z, g, weight, tight, out)


@jit
def matching_backward_rows(first, last, z, g, row_mask, column_mask, least, budget, rows_exact, columns_exact, out):
    for row in range(first, last):
        long, short, transposed = pair_sizes(row_mask[row], column_mask[row])
        pair = np.empty((long, short))
        gradient = np.empty((long, short))
        projected = np.empty((long, short))
        gather_pair(z[row], row_mask[row], column_mask[row], transposed, pair)
        gather_pair(g[row], row_mask[row], column_mask[row], transposed, gradient)
        long_exact, short_exact = rows_exact, columns_exact
        if transposed:
            long_exact, short_exact = columns_exact, rows_exact
        bounds = min(least[row], short), min(budget[row], short)
        project_face(pair, gradient, bounds[0], bounds[1], long_exact, short_exact, projected)
        scatter_pair(projected, row_mask[row], column_mask[row], transposed, out[row])
