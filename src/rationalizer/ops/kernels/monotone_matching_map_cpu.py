"""The best alignment without crossing pairs: the dynamic program of sequence alignment, with a counter if needed."""

from collections import namedtuple

import numpy as np

from rationalizer.ops.kernels.numba_runtime import jit

SKIP_ROW, SKIP_COLUMN, PAIR = 0, 1, 2

Grid = namedtuple(
    "Grid",
    [
        "rows",
        "columns",
        "cell",  # (allowed pairs,) the flat index of each in the grid
        "budget",  # at most min(rows, columns)
        "exact",  # whether the number of pairs must equal the budget
        "table",  # alignment_scratch, (rows, columns)
    ],
)


@jit
def gather_grid(row_mask, column_mask, allowed, budget, exact):
    """Return the grid of the unmasked rows and columns of one matrix."""
    row, column = np.cumsum(row_mask) - 1, np.cumsum(column_mask) - 1
    rows, columns = np.sum(row_mask), np.sum(column_mask)
    cell = np.empty(np.sum(allowed), np.int64)
    count = 0
    for i in range(row_mask.shape[0]):
        for j in range(column_mask.shape[0]):
            if allowed[i, j]:
                cell[count] = row[i] * columns + column[j]
                count += 1
    return Grid(rows, columns, cell, min(budget, rows, columns), exact, np.empty((rows, columns)))


@jit
def alignment_scratch(grid):
    """Scratch (`back`, `value`) for `best_alignment`."""
    states = grid.budget + 1 if _counts(grid) else 1
    return np.empty((grid.rows, grid.columns, states), np.uint8), np.empty((2, grid.columns + 1, states))


@jit
def _counts(grid):
    """Return whether pairs must be counted: a budget that cannot bind needs no counter."""
    return grid.exact or grid.budget < min(grid.rows, grid.columns)


@jit
def best_alignment(s, grid, offset, y, back, value):
    """Maximize s·y + offset·(Σy − budget) over pairs that do not cross, at most one per row and column; write `y`.

    value[j, k] is the best score of the rows so far and the first j columns with k pairs. Ties go to fewer pairs.
    Returns the maximum; -inf if `exact` and there is no alignment with `budget` pairs.
    """
    table = grid.table
    table[:] = -np.inf
    flat = table.ravel()
    step = 1 if _counts(grid) else 0
    for index in range(s.shape[0]):
        flat[grid.cell[index]] = s[index] if step else s[index] + offset
    last = value.shape[2] - 1
    value[:] = -np.inf
    value[0, :, 0] = 0.0
    value[1, 0, 0] = 0.0
    for i in range(grid.rows):
        above, here = i & 1, 1 - (i & 1)
        for j in range(grid.columns):
            score = table[i, j]
            for k in range(step):
                value[here, j + 1, k] = max(value[above, j + 1, k], value[here, j, k])
                back[i, j, k] = np.uint8(value[here, j, k] > value[above, j + 1, k])
            for k in range(step, last + 1):  # without branches, so that the compiler vectorizes it
                up, left, pair = value[above, j + 1, k], value[here, j, k], value[above, j, k - step] + score
                without = max(up, left)
                value[here, j + 1, k] = max(pair, without)
                back[i, j, k] = np.uint8(PAIR) if pair > without else np.uint8(left > up)
    ends = value[grid.rows & 1, grid.columns]
    used = last
    if step and not grid.exact:
        used = 0
        for k in range(1, last + 1):
            if ends[k] + offset * (k - used) > ends[used]:
                used = k
    best = ends[used] + offset * ((used if step else 0) - grid.budget)
    table[:] = 0.0
    i, j = grid.rows - 1, grid.columns - 1
    while i >= 0 and j >= 0 and best > -np.inf:
        move = back[i, j, used]
        if move == PAIR:
            table[i, j] = 1.0
            used -= step
        i -= move != SKIP_COLUMN
        j -= move != SKIP_ROW
    for index in range(s.shape[0]):
        y[index] = np.uint8(flat[grid.cell[index]])
    return best


@jit
def monotone_matching_map_rows(first, last, scores, row_mask, column_mask, allowed, budget, exact, z):
    """Infeasible matrices become NaN."""
    for row in range(first, last):
        grid = gather_grid(row_mask[row], column_mask[row], allowed[row], budget[row], exact)
        count = grid.cell.shape[0]
        s, y = np.empty(count), np.zeros(count, np.uint8)
        gather_pairs(scores[row], allowed[row], s)
        back, value = alignment_scratch(grid)
        feasible = best_alignment(s, grid, 0.0, y, back, value) > -np.inf
        for index in range(count):
            s[index] = y[index]
        scatter_pairs(s, allowed[row], z[row])
        if not feasible:
            z[row] = np.nan


@jit
def gather_pairs(values, allowed, out):
    index = 0
    for i in range(allowed.shape[0]):
        for j in range(allowed.shape[1]):
            if allowed[i, j]:
                out[index] = values[i, j]
                index += 1


@jit
def scatter_pairs(values, allowed, out):
    index = 0
    for i in range(allowed.shape[0]):
        for j in range(allowed.shape[1]):
            out[i, j] = 0.0
            if allowed[i, j]:
                out[i, j] = values[index]
                index += 1
