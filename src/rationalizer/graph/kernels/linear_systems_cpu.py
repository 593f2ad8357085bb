"""The program of one instance, and the linear systems of its solvers.

    minimise ½ Σ quadratic_j x_j² − cost·x   s.t.   A x = rhs,  0 <= x <= upper

x = (entries, slacks, weights):
- entries are the variables of the graph and the auxiliary variables of factors; their columns of A are sparse;
- there is one slack per row, whose column has a 1 in that row;
- there is one weight per known configuration of a structured factor. Its column has −configuration in the copy rows of
  the factor (variable − Σ weight · configuration = 0) and a 1 in the sum row of the factor (Σ weight = 1).

The order of the rows is: the first `early` rows, which copy a variable for the first time; the other rows; sum rows.
"""

from collections import namedtuple

import numpy as np

from rationalizer.graph.kernels.skyline_cholesky_cpu import factorize, solve
from rationalizer.ops.kernels.numba_runtime import jit

InstanceProgram = namedtuple(
    "InstanceProgram",
    "indptr rows coefficients early active configurations owner copy_rows copy_size quadratic cost upper rhs",
)
System = namedtuple("System", "first start values pivots positive")


@jit
def make_system(p, row_first):
    """Allocate the matrix [[A_d D⁻¹ A_dᵀ, −A_w], [−A_wᵀ, −D_w]], in which entries and slacks (d) are eliminated.

    The weights (w) are kept. The order is early rows, weights, other rows. Early rows are coupled to other rows only by
    weights, so a structured factor costs O(size · known²); eliminating its weights would cost O(size³). Other rows come
    last because they may depend on early ones until the weights are eliminated (two copies of one variable, or a
    constraint on copied variables).
    """
    rows, known, sums = p.active.shape[0], p.owner.shape[0], p.copy_rows.shape[0]
    n = rows + known + sums
    first = np.arange(n)
    for i in range(rows):
        neighbour = row_first[i]
        first[_position(p, i)] = _position(p, neighbour)
    for k in range(known):
        factor = p.owner[k]
        column = p.early + k
        for t in range(p.copy_size[factor]):
            position = _position(p, p.copy_rows[factor, t])
            first[column] = min(first[column], position)
            if position > column:
                first[position] = min(first[position], column)
        total = _position(p, rows + factor)
        first[total] = min(first[total], column)
    start = np.zeros(n + 1, np.int64)
    for i in range(n):
        start[i + 1] = start[i] + i - first[i] + 1
    positive = np.ones(n, np.bool_)
    positive[p.early : p.early + known] = False
    return System(first, start, np.empty(start[n]), np.empty(n), positive)


@jit
def _position(p, row):
    """Return the index of a row in the system, in which the weights follow the early rows."""
    return row if row < p.early else row + p.owner.shape[0]


@jit
def _entry(system, i, j):
    """Return the index of matrix entry (i, j) in `values`."""
    low, high = min(i, j), max(i, j)
    return system.start[high] + low - system.first[high]


@jit
def factorize_system(p, system, inverse, weight, damping):
    """Compute and factorize the matrix of `make_system`.

    `inverse` is D⁻¹ of entries and slacks, 0 for fixed ones. `weight` is the diagonal D of the weights, inf for fixed
    ones. `damping` ≥ 0, one value per row, is added to the diagonal of the rows.
    """
    values = system.values
    rows = p.active.shape[0]
    entries = p.indptr.shape[0] - 1
    values[:] = 0.0
    for v in range(entries):
        d = inverse[v]
        if d == 0.0:
            continue
        for a in range(p.indptr[v], p.indptr[v + 1]):
            i = p.rows[a]
            if not p.active[i]:
                continue
            scaled = d * p.coefficients[a]
            i = _position(p, i)
            for b in range(p.indptr[v], a + 1):
                if p.active[p.rows[b]]:
                    values[_entry(system, i, _position(p, p.rows[b]))] += scaled * p.coefficients[b]
    for i in range(rows):
        diagonal = inverse[entries + i] + damping[i] if p.active[i] else 1.0
        values[system.start[_position(p, i) + 1] - 1] += diagonal
    for k in range(p.owner.shape[0]):
        column = p.early + k
        factor = p.owner[k]
        if weight[k] == np.inf:
            values[system.start[column + 1] - 1] = -1.0
            continue
        values[system.start[column + 1] - 1] = -weight[k]
        for t in range(p.copy_size[factor]):
            row = p.copy_rows[factor, t]
            if p.active[row]:
                values[_entry(system, _position(p, row), column)] = p.configurations[k, t]
        values[_entry(system, _position(p, rows + factor), column)] = -1.0
    for f in range(p.copy_rows.shape[0]):
        values[system.start[_position(p, rows + f) + 1] - 1] += damping[rows + f]
    factorize(system.first, system.start, values, system.pivots, system.positive)


@jit
def solve_system(p, system, inverse, weight, dual_side, primal_side, dx, dy):
    """Solve D dx + Aᵀ dy = dual_side, A dx − damping · dy = primal_side, after `factorize_system`."""
    rows, known, sums = p.active.shape[0], p.owner.shape[0], p.copy_rows.shape[0]
    eliminated = p.indptr.shape[0] - 1 + rows
    side = np.zeros(rows + known + sums)
    for j in range(eliminated):
        dx[j] = inverse[j] * dual_side[j]
    dx[eliminated:] = 0.0
    product = np.empty(rows + sums)
    times(p, dx, product)
    for i in range(rows + sums):
        if i >= rows or p.active[i]:
            side[_position(p, i)] = product[i] - primal_side[i]
    for k in range(known):
        side[p.early + k] = 0.0 if weight[k] == np.inf else -dual_side[eliminated + k]
    solve(system.first, system.start, system.values, system.pivots, side)
    for i in range(rows + sums):
        dy[i] = side[_position(p, i)]
    transposed = np.empty(eliminated + known)
    times_transposed(p, dy, transposed)
    for j in range(eliminated):
        dx[j] = inverse[j] * (dual_side[j] - transposed[j])
    dx[eliminated:] = side[p.early : p.early + known]


@jit
def times(p, x, out):
    """Write A x to `out`, with 0 in inactive rows."""
    rows, known = p.active.shape[0], p.owner.shape[0]
    entries = p.indptr.shape[0] - 1
    out[:] = 0.0
    for v in range(entries):
        if x[v] != 0.0:
            for a in range(p.indptr[v], p.indptr[v + 1]):
                out[p.rows[a]] += p.coefficients[a] * x[v]
    for i in range(rows):
        out[i] += x[entries + i]
    for k in range(known):
        weight = x[entries + rows + k]
        if weight != 0.0:
            factor = p.owner[k]
            for t in range(p.copy_size[factor]):
                out[p.copy_rows[factor, t]] -= p.configurations[k, t] * weight
            out[rows + factor] += weight
    for i in range(rows):
        if not p.active[i]:
            out[i] = 0.0


@jit
def times_transposed(p, y, out):
    """Write Aᵀ y to `out`; y must be 0 in inactive rows."""
    rows, known = p.active.shape[0], p.owner.shape[0]
    entries = p.indptr.shape[0] - 1
    for v in range(entries):
        total = 0.0
        for a in range(p.indptr[v], p.indptr[v + 1]):
            total += p.coefficients[a] * y[p.rows[a]]
        out[v] = total
    for i in range(rows):
        out[entries + i] = y[i]
    for k in range(known):
        factor = p.owner[k]
        total = y[rows + factor]
        for t in range(p.copy_size[factor]):
            total -= p.configurations[k, t] * y[p.copy_rows[factor, t]]
        out[entries + rows + k] = total
