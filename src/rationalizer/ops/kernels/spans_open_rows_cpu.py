"""The solver of `spans` for `open_rows_cpu`."""

import numpy as np

from rationalizer.ops.kernels.bits_cpu import word_count
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.open_rows_cpu import (
    ARGUMENTS,
    FLAGS,
    OPEN,
    ROWS,
    bits,
    booleans,
    floats,
    integers,
    next_open_row,
)
from rationalizer.ops.kernels.spans_cpu import spans_rows

# Arguments: the addresses of three blocks of memory and of the sequences, and numbers.
FLOATS, INTEGERS, BOOLEANS, SUPPORT = range(ARGUMENTS, ARGUMENTS + 4)
WORDS, SHORTEST, LONGEST, PER_GROUP, MAX_ITERATIONS, TOLERANCE = range(ARGUMENTS + 4, ARGUMENTS + 10)

# What the blocks contain, in this order, for `rows` rows of n words:
#   floats: scores, z, transition (rows × n each, transitions without gaps), gap (rows)
#   integers: the support sizes, which are the flags, open rows, budget, at_least, spans, iterations (rows each),
#             unit, group, fixed (rows × n each)
#   booleans: mask (rows × n), converged (rows)


@jit
def _is_valid(scores, transition, mask, least, budget, spans, fixed, group):
    """Return whether the inputs of a row are what `_inputs` and `_span_constraints` require on the CPU."""
    if not 0 <= least <= budget or spans < 0:
        return False
    before = np.iinfo(np.int64).min
    for i in range(len(scores)):
        if mask[i] and (not np.isfinite(scores[i]) or not -1 <= fixed[i] <= 1 or group[i] < before):
            return False
        before = group[i] if mask[i] else before
    return np.isfinite(transition).all()


def solve_spans(call):  # type: ignore[no-untyped-def]
    """Solve rows until none is left. Rows with invalid inputs become NaN; infeasible ones 0, and not converged."""
    fields = integers(call, ARGUMENTS + 10)
    rows, n = fields[ROWS], fields[WORDS]
    row_bytes, matrix = 8 * rows, 8 * rows * n
    block = fields[FLOATS]
    scores, z = floats(block, (rows, n)), floats(block + matrix, (rows, n))
    transition = floats(block + 2 * matrix, (rows, max(n - 1, 0)))
    gap = floats(block + 3 * matrix, rows)
    block = fields[INTEGERS]
    budget, least = integers(block + 2 * row_bytes, rows), integers(block + 3 * row_bytes, rows)
    spans, iterations = integers(block + 4 * row_bytes, rows), integers(block + 5 * row_bytes, rows)
    block += 6 * row_bytes
    unit, group = integers(block, (rows, n)), integers(block + matrix, (rows, n))
    fixed = integers(block + 2 * matrix, (rows, n))
    mask, converged = booleans(fields[BOOLEANS], (rows, n)), booleans(fields[BOOLEANS] + rows * n, rows)
    support = bits(fields[SUPPORT], (rows, n + 1, word_count(n)))
    size, open_rows = integers(fields[FLAGS], rows), integers(fields[OPEN], rows)
    tolerance = floats(call + 8 * TOLERANCE, 1)[0]
    never_stop = np.zeros(1, np.uint8)
    while True:
        index = next_open_row(call)
        if index < 0:
            break
        row = open_rows[index]
        if _is_valid(
            scores[row], transition[row], mask[row], least[row], budget[row], spans[row], fixed[row], group[row]
        ):
            spans_rows(
                row, row + 1, never_stop, scores, transition, mask, least, budget, spans, unit, fixed, group,
                fields[SHORTEST], fields[LONGEST], fields[PER_GROUP], fields[MAX_ITERATIONS], tolerance, z, size,
                support, iterations, gap, converged,
            )  # fmt: skip
        else:
            size[row], iterations[row], gap[row], converged[row] = 0, 0, np.nan, False
            for i in range(n):
                z[row, i] = np.nan if mask[row, i] else 0.0
