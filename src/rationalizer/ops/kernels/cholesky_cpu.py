"""The Cholesky factor of G = YᵀY + 11ᵀ, Y a few sequences as columns, updated when a column is added or removed.

G = RᵀR, R upper triangular and stored by rows, so that every loop below runs along memory. G has integer entries, so
it is exact. Two right-hand sides are kept solved with R, the two rows of `sides`: R⁻ᵀ(score − base) and R⁻ᵀ1. The
best weights on the support then need only one backward solve.
"""

import numpy as np

from rationalizer.ops.kernels.bits_cpu import overlap
from rationalizer.ops.kernels.numba_runtime import jit, reordering


@jit
def forward_solve(factor, k, b):
    """Solve Rᵀx = b in place."""
    for i in range(k):
        x = b[i] / factor[i, i]
        b[i] = x
        for j in range(i + 1, k):
            b[j] -= factor[i, j] * x


@reordering
def _dot(factor, i, k, b):
    total = 0.0
    for j in range(i + 1, k):
        total += factor[i, j] * b[j]
    return total


@jit
def backward_solve(factor, k, b):
    """Solve Rx = b in place."""
    for i in range(k - 1, -1, -1):
        b[i] = (b[i] - _dot(factor, i, k, b)) / factor[i, i]


@jit
def distance_to_hull(factor, columns, k, line):
    """Return the squared distance of column k from the affine hull of the first k columns; write R⁻ᵀg to `line`."""
    for j in range(k):
        line[j] = overlap(columns[j], columns[k]) + 1.0
    forward_solve(factor, k, line)
    distance = overlap(columns[k], columns[k]) + 1.0
    for j in range(k):
        distance -= line[j] * line[j]
    return distance


@jit
def add_column(factor, sides, k, line, distance, score):
    """Add column k to the factor; `line` and `distance` are from `distance_to_hull`, `score` is minus the base."""
    for j in range(k):
        factor[j, k] = line[j]
        score -= sides[0, j] * line[j]
    unit = 1.0
    for j in range(k):
        unit -= sides[1, j] * line[j]
    root = np.sqrt(max(distance, 0.0))
    factor[k, k] = root
    sides[0, k] = score / root
    sides[1, k] = unit / root


@jit
def remove_column(factor, sides, k, j):
    """Remove column j of k by Givens rotations."""
    for i in range(k):
        for c in range(max(i - 1, j), k - 1):
            factor[i, c] = factor[i, c + 1]
    for c in range(j, k - 1):
        length = np.hypot(factor[c, c], factor[c + 1, c])
        cos, sin = factor[c, c] / length, factor[c + 1, c] / length
        for i in range(c, k - 1):
            a, b = factor[c, i], factor[c + 1, i]
            factor[c, i] = cos * a + sin * b
            factor[c + 1, i] = cos * b - sin * a
        for line in range(2):
            a, b = sides[line, c], sides[line, c + 1]
            sides[line, c] = cos * a + sin * b
            sides[line, c + 1] = cos * b - sin * a


@jit
def best_weights(factor, sides, k, total, target):
    """Write argmin ½pᵀGp − score·p s.t. Σp = total, with weights of any sign, to `target`.

    With total 1 these are the best weights on the affine hull of the support; with total 0, a direction in it.
    """
    shared, square = 0.0, 0.0
    for j in range(k):
        shared += sides[0, j] * sides[1, j]
        square += sides[1, j] * sides[1, j]
    level = (shared - total) / square
    for j in range(k):
        target[j] = sides[0, j] - level * sides[1, j]
    backward_solve(factor, k, target)


@jit
def build(factor, sides, columns, score, base, k, line):
    """Compute the factor from k independent columns, without the accumulated error of updates."""
    for j in range(k):
        distance = distance_to_hull(factor, columns, j, line)
        add_column(factor, sides, j, line, distance, score[j] - base)
