"""The program of one instance, and the linear systems of its solvers.

    minimise ½ Σ quadratic_j x_j² − cost·x + Σ violation_cost_i |A x − rhs|_i   s.t.   0 <= x <= upper

Rows of infinite violation cost must hold. The others are soft and have no slack; their multipliers are between
−violation_cost and violation_cost.

Loops read the fields of a program from local variables: reading an array from a tuple counts references, which takes
longer than the rest of a loop.

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
    "indptr rows coefficients early active violation_cost configurations owner copy_rows copy_size quadratic cost "
    "upper rhs",
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
    early, owner, copy_rows, copy_size = p.early, p.owner, p.copy_rows, p.copy_size
    n = rows + known + sums
    first = np.arange(n)
    for i in range(rows):
        first[_position(i, early, known)] = _position(row_first[i], early, known)
    for k in range(known):
        factor = owner[k]
        column = early + k
        for t in range(copy_size[factor]):
            position = _position(copy_rows[factor, t], early, known)
            first[column] = min(first[column], position)
            if position > column:
                first[position] = min(first[position], column)
        total = _position(rows + factor, early, known)
        first[total] = min(first[total], column)
    start = np.zeros(n + 1, np.int64)
    for i in range(n):
        start[i + 1] = start[i] + i - first[i] + 1
    positive = np.ones(n, np.bool_)
    positive[early : early + known] = False
    return System(first, start, np.empty(start[n]), np.empty(n), positive)


@jit
def _position(row, early, known):
    """Return the index of a row in the system, in which the weights follow the early rows."""
    return row if row < early else row + known


@jit
def _entry(first, start, i, j):
    """Return the index of matrix entry (i, j) in `values`."""
    low, high = min(i, j), max(i, j)
    return start[high] + low - first[high]


@jit
def factorize_system(p, system, inverse, weight, damping):
    """Compute and factorize the matrix of `make_system`.

    `inverse` is D⁻¹ of entries and slacks, 0 for fixed ones. `weight` is the diagonal D of the weights, inf for fixed
    ones. `damping` ≥ 0, one value per row, is added to the diagonal of the rows.
    """
    first, start, values = system.first, system.start, system.values
    indptr, row_of, coefficients, early, active = p.indptr, p.rows, p.coefficients, p.early, p.active
    configurations, owner, copy_rows, copy_size = p.configurations, p.owner, p.copy_rows, p.copy_size
    rows, known = active.shape[0], owner.shape[0]
    entries = indptr.shape[0] - 1
    values[:] = 0.0
    for v in range(entries):
        d = inverse[v]
        if d == 0.0:
            continue
        for a in range(indptr[v], indptr[v + 1]):
            i = row_of[a]
            if not active[i]:
                continue
            scaled = d * coefficients[a]
            i = _position(i, early, known)
            for b in range(indptr[v], a + 1):
                if active[row_of[b]]:
                    values[_entry(first, start, i, _position(row_of[b], early, known))] += scaled * coefficients[b]
    for i in range(rows):
        diagonal = inverse[entries + i] + damping[i] if active[i] else 1.0
        values[start[_position(i, early, known) + 1] - 1] += diagonal
    for k in range(known):
        column = early + k
        factor = owner[k]
        if weight[k] == np.inf:
            values[start[column + 1] - 1] = -1.0
            continue
        values[start[column + 1] - 1] = -weight[k]
        for t in range(copy_size[factor]):
            row = copy_rows[factor, t]
            if active[row]:
                values[_entry(first, start, _position(row, early, known), column)] = configurations[k, t]
        values[_entry(first, start, _position(rows + factor, early, known), column)] = -1.0
    for f in range(copy_rows.shape[0]):
        values[start[_position(rows + f, early, known) + 1] - 1] += damping[rows + f]
    factorize(first, start, values, system.pivots, system.positive)


@jit
def solve_system(p, system, inverse, weight, dual_side, primal_side, dx, dy):
    """Solve D dx + Aᵀ dy = dual_side, A dx − damping · dy = primal_side, after `factorize_system`."""
    early, active = p.early, p.active
    rows, known, sums = active.shape[0], p.owner.shape[0], p.copy_rows.shape[0]
    eliminated = p.indptr.shape[0] - 1 + rows
    side = np.zeros(rows + known + sums)
    for j in range(eliminated):
        dx[j] = inverse[j] * dual_side[j]
    dx[eliminated:] = 0.0
    product = np.empty(rows + sums)
    times(p, dx, product)
    for i in range(rows + sums):
        if i >= rows or active[i]:
            side[_position(i, early, known)] = product[i] - primal_side[i]
    for k in range(known):
        side[early + k] = 0.0 if weight[k] == np.inf else -dual_side[eliminated + k]
    solve(system.first, system.start, system.values, system.pivots, side)
    for i in range(rows + sums):
        dy[i] = side[_position(i, early, known)]
    transposed = np.empty(eliminated + known)
    times_transposed(p, dy, transposed)
    for j in range(eliminated):
        dx[j] = inverse[j] * (dual_side[j] - transposed[j])
    dx[eliminated:] = side[early : early + known]


@jit
def times(p, x, out):
    """Write A x to `out`, with 0 in inactive rows."""
    indptr, row_of, coefficients, active = p.indptr, p.rows, p.coefficients, p.active
    configurations, owner, copy_rows, copy_size = p.configurations, p.owner, p.copy_rows, p.copy_size
    rows, known = active.shape[0], owner.shape[0]
    entries = indptr.shape[0] - 1
    out[:] = 0.0
    for v in range(entries):
        if x[v] != 0.0:
            for a in range(indptr[v], indptr[v + 1]):
                out[row_of[a]] += coefficients[a] * x[v]
    for i in range(rows):
        out[i] += x[entries + i]
    for k in range(known):
        weight = x[entries + rows + k]
        if weight != 0.0:
            factor = owner[k]
            for t in range(copy_size[factor]):
                out[copy_rows[factor, t]] -= configurations[k, t] * weight
            out[rows + factor] += weight
    for i in range(rows):
        if not active[i]:
            out[i] = 0.0


@jit
def times_transposed(p, y, out):
    """Write Aᵀ y to `out`; y must be 0 in inactive rows."""
    indptr, row_of, coefficients = p.indptr, p.rows, p.coefficients
    configurations, owner, copy_rows, copy_size = p.configurations, p.owner, p.copy_rows, p.copy_size
    rows, known = p.active.shape[0], owner.shape[0]
    entries = indptr.shape[0] - 1
    for v in range(entries):
        total = 0.0
        for a in range(indptr[v], indptr[v + 1]):
            total += coefficients[a] * y[row_of[a]]
        out[v] = total
    for i in range(rows):
        out[entries + i] = y[i]
    for k in range(known):
        factor = owner[k]
        total = y[rows + factor]
        for t in range(copy_size[factor]):
            total -= configurations[k, t] * y[copy_rows[factor, t]]
        out[entries + rows + k] = total
