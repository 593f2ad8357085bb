"""Solvers of matchings for `open_rows_cpu`: the solutions, and their gradients."""

import numpy as np

from rationalizer.ops.kernels.matching_backward_cpu import matching_backward_rows
from rationalizer.ops.kernels.matching_cpu import matching_rows
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.open_rows_cpu import ROWS, VALUES, booleans, floats, integers, next_open_row

SCORES, ROW_MASK, COLUMN_MASK, LEAST, BUDGET, Z, ITERATIONS, VIOLATION = range(VALUES, VALUES + 8)
HEIGHT, WIDTH, ROWS_EXACT, COLUMNS_EXACT, TOTAL_EXACT, MAX_ITERATIONS = range(VALUES + 8, VALUES + 14)

BACK_Z, BACK_G, BACK_ROW_MASK, BACK_COLUMN_MASK, BACK_LEAST, BACK_BUDGET, BACK_OUT = range(VALUES, VALUES + 7)
BACK_HEIGHT, BACK_WIDTH, BACK_ROWS_EXACT, BACK_COLUMNS_EXACT = range(VALUES + 7, VALUES + 11)


@jit
def _solve(
    k, scores, row_mask, column_mask, least, budget, rows_exact, columns_exact, total_exact, max_iterations, z,
    iterations, violation,
):  # fmt: skip
    """Return whether a matrix could be solved; it cannot if there is no memory."""
    try:
        matching_rows(
            k, k + 1, scores, row_mask, column_mask, least, budget, rows_exact, columns_exact, total_exact,
            max_iterations, z, iterations, violation,
        )  # fmt: skip
    except Exception:
        return False
    return True


@jit
def _project(k, z, g, row_mask, column_mask, least, budget, rows_exact, columns_exact, out):
    try:
        matching_backward_rows(k, k + 1, z, g, row_mask, column_mask, least, budget, rows_exact, columns_exact, out)
    except Exception:
        return False
    return True


def solve_matchings(call):
    """Solve matrices until none is left."""
    fields = integers(call, VALUES + 14)
    count, m, n = fields[ROWS], fields[HEIGHT], fields[WIDTH]
    scores, z = floats(fields[SCORES], (count, m, n)), floats(fields[Z], (count, m, n))
    row_mask, column_mask = booleans(fields[ROW_MASK], (count, m)), booleans(fields[COLUMN_MASK], (count, n))
    least, budget = integers(fields[LEAST], count), integers(fields[BUDGET], count)
    iterations, violation = integers(fields[ITERATIONS], count), floats(fields[VIOLATION], count)
    while True:
        k = next_open_row(call)  # all matrices are open
        if k < 0:
            break
        if not _solve(
            k, scores, row_mask, column_mask, least, budget, fields[ROWS_EXACT] != 0, fields[COLUMNS_EXACT] != 0,
            fields[TOTAL_EXACT] != 0, fields[MAX_ITERATIONS], z, iterations, violation,
        ):  # fmt: skip
            z[k], violation[k] = np.nan, np.nan


def project_matchings(call):
    """Compute the gradients of matrices until none is left."""
    fields = integers(call, VALUES + 11)
    count, m, n = fields[ROWS], fields[BACK_HEIGHT], fields[BACK_WIDTH]
    z, g, out = (
        floats(fields[BACK_Z], (count, m, n)), floats(fields[BACK_G], (count, m, n)),
        floats(fields[BACK_OUT], (count, m, n)),
    )  # fmt: skip
    row_mask, column_mask = booleans(fields[BACK_ROW_MASK], (count, m)), booleans(fields[BACK_COLUMN_MASK], (count, n))
    least, budget = integers(fields[BACK_LEAST], count), integers(fields[BACK_BUDGET], count)
    while True:
        k = next_open_row(call)
        if k < 0:
            break
        if not _project(
            k, z, g, row_mask, column_mask, least, budget, fields[BACK_ROWS_EXACT] != 0,
            fields[BACK_COLUMNS_EXACT] != 0, out,
        ):  # fmt: skip
            out[k] = np.nan
