"""Solvers of H:SeqBudget for `open_rows_cpu`: the open rows of a call, and their gradients."""

import numpy as np

from rationalizer.ops.kernels.bits_cpu import word_count
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.open_rows_cpu import (
    BOOLEANS,
    FLAGS,
    FLOATS,
    INTEGERS,
    OPEN,
    ROWS,
    SUPPORT,
    VALUES,
    bits,
    booleans,
    floats,
    integers,
    next_open_row,
)
from rationalizer.ops.kernels.sequence_budget_backward_cpu import project_row_onto_support
from rationalizer.ops.kernels.sequence_budget_cpu import sequence_budget_uncertified_rows

WORDS, MAX_ITERATIONS, TOLERANCE = range(VALUES, VALUES + 3)  # the last two are of the first solver

# What the blocks contain, in this order; `n` is the number of words, `rows` that of rows.
#   solve_sequence_budget: floats: scores, z, transition (rows × n each, transitions without gaps), gap (rows)
#                          integers: the support sizes, which are the flags, open rows, budget, least, iterations (rows)
#                          booleans: mask (rows × n), converged (rows)
#   project_gradients:     floats: gradient, of the scores, of the transitions (rows × n each)
#                          integers: the support sizes, which are the flags, open rows (rows)
#                          booleans: mask (rows × n)


@jit
def _solve(
    index, stop, open_rows, scores, transition, mask, least, budget, max_iterations, tolerance, z, size, support,
    iterations, gap, converged,
):  # fmt: skip
    """Return whether a row could be solved; it cannot if there is no memory."""
    try:
        sequence_budget_uncertified_rows(
            index, index + 1, stop, open_rows, scores, transition, mask, least, budget, max_iterations, tolerance, z,
            size, support, iterations, gap, converged,
        )  # fmt: skip
    except Exception:
        return False
    return True


@jit
def _project(gradient, mask, size, support, of_scores, of_transitions, g, h, edges):
    """Return whether there is a gradient."""
    if size < 0:
        return False
    try:
        project_row_onto_support(gradient, mask, size, support, of_scores, of_transitions, g, h, edges)
    except Exception:
        return False
    return True


def solve_sequence_budget(call):
    """Solve open rows until none is left. A row that fails becomes NaN, with a support size of −1."""
    fields = integers(call, VALUES + 2)
    rows, n = fields[ROWS], fields[WORDS]
    row, matrix = 8 * rows, 8 * rows * n
    block = fields[FLOATS]
    scores, z = floats(block, (rows, n)), floats(block + matrix, (rows, n))
    transition = floats(block + 2 * matrix, (rows, max(n - 1, 0)))
    gap = floats(block + 3 * matrix, rows)
    block = fields[INTEGERS]
    budget, least = integers(block + 2 * row, rows), integers(block + 3 * row, rows)
    iterations = integers(block + 4 * row, rows)
    mask, converged = booleans(fields[BOOLEANS], (rows, n)), booleans(fields[BOOLEANS] + rows * n, rows)
    support = bits(fields[SUPPORT], (rows, n + 1, word_count(n)))
    size, open_rows = integers(fields[FLAGS], rows), integers(fields[OPEN], rows)
    tolerance = floats(call + 8 * TOLERANCE, 1)[0]
    never_stop = np.zeros(1, np.uint8)
    while True:
        index = next_open_row(call)
        if index < 0:
            break
        if not _solve(
            index, never_stop, open_rows, scores, transition, mask, least, budget, fields[MAX_ITERATIONS], tolerance, z,
            size, support, iterations, gap, converged,
        ):  # fmt: skip
            failed = open_rows[index]
            size[failed], gap[failed], converged[failed] = -1, np.nan, False
            z[failed] = np.where(mask[failed], np.nan, 0.0)


def project_gradients(call):
    """Compute the gradients of open rows until none is left."""
    fields = integers(call, VALUES + 1)
    rows, n = fields[ROWS], fields[WORDS]
    matrix = 8 * rows * n
    block = fields[FLOATS]
    gradient, of_scores = floats(block, (rows, n)), floats(block + matrix, (rows, n))
    of_transitions = floats(block + 2 * matrix, (rows, max(n - 1, 0)))
    mask, size = booleans(fields[BOOLEANS], (rows, n)), integers(fields[FLAGS], rows)
    support, open_rows = bits(fields[SUPPORT], (rows, n + 1, word_count(n))), integers(fields[OPEN], rows)
    g, h, edges = np.empty(n), np.empty(n), np.empty(n)
    while True:
        index = next_open_row(call)
        if index < 0:
            break
        row = open_rows[index]
        if not _project(
            gradient[row], mask[row], size[row], support[row], of_scores[row], of_transitions[row], g, h, edges
        ):
            of_scores[row] = np.where(mask[row], np.nan, 0.0)
            of_transitions[row] = np.nan
