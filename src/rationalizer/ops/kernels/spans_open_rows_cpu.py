"""The solver of `spans` for `open_rows_cpu`."""

import numpy as np

from rationalizer.ops.kernels.bits_cpu import word_count
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.open_rows_cpu import (
    ROWS,
    SUPPORT,
    VALUES,
    bits,
    booleans,
    floats,
    integers,
    next_open_row,
)
from rationalizer.ops.kernels.spans_cpu import spans_rows

SCORES, TRANSITION, MASK, BUDGET, LEAST, SPANS, UNIT, FIXED, GROUP = range(VALUES, VALUES + 9)
Z, SIZE, ITERATIONS, GAP, CONVERGED = range(VALUES + 9, VALUES + 14)
WORDS, SHORTEST, LONGEST, PER_GROUP, MAX_ITERATIONS, TOLERANCE = range(VALUES + 14, VALUES + 20)


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


@jit
def _solve(
    row, stop, scores, transition, mask, least, budget, spans, unit, fixed, group, shortest, longest, per_group,
    max_iterations, tolerance, z, size, support, iterations, gap, converged,
):  # fmt: skip
    """Return whether a row could be solved; it cannot if its dynamic program is too large."""
    try:
        spans_rows(
            row, row + 1, stop, scores, transition, mask, least, budget, spans, unit, fixed, group, shortest, longest,
            per_group, max_iterations, tolerance, z, size, support, iterations, gap, converged,
        )  # fmt: skip
    except Exception:
        return False
    return True


def solve_spans(call):
    """Solve rows until none is left. Invalid and too large ones become NaN; infeasible ones 0; both not converged."""
    fields = integers(call, VALUES + 19)
    rows, n = fields[ROWS], fields[WORDS]
    scores, transition = floats(fields[SCORES], (rows, n)), floats(fields[TRANSITION], (rows, max(n - 1, 0)))
    mask, fixed = booleans(fields[MASK], (rows, n)), integers(fields[FIXED], (rows, n))
    unit, group = integers(fields[UNIT], (rows, n)), integers(fields[GROUP], (rows, n))
    budget, least, spans = (
        integers(fields[BUDGET], rows), integers(fields[LEAST], rows), integers(fields[SPANS], rows)
    )  # fmt: skip
    z, gap, converged = floats(fields[Z], (rows, n)), floats(fields[GAP], rows), booleans(fields[CONVERGED], rows)
    size, iterations = integers(fields[SIZE], rows), integers(fields[ITERATIONS], rows)
    support = bits(fields[SUPPORT], (rows, n + 1, word_count(n)))
    tolerance = floats(call + 8 * TOLERANCE, 1)[0]
    never_stop = np.zeros(1, np.uint8)
    while True:
        row = next_open_row(call)  # all rows are open
        if row < 0:
            break
        if not _is_valid(
            scores[row], transition[row], mask[row], least[row], budget[row], spans[row], fixed[row], group[row]
        ) or not _solve(
            row, never_stop, scores, transition, mask, least, budget, spans, unit, fixed, group, fields[SHORTEST],
            fields[LONGEST], fields[PER_GROUP], fields[MAX_ITERATIONS], tolerance, z, size, support, iterations, gap,
            converged,
        ):  # fmt: skip
            size[row], iterations[row], gap[row], converged[row] = 0, 0, np.nan, False
            z[row] = np.where(mask[row], np.nan, 0.0)
