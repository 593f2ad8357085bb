"""`spans` on CUDA tensors: every row is solved on the CPU, in the order of the stream (see `open_rows_cuda`)."""

from rationalizer.ops._inputs import lower_bounds
from rationalizer.ops.kernels.open_rows_cuda import new_support, solve_on_cpu
from rationalizer.ops.kernels.spans_open_rows_cpu import solve_spans


def spans(
    scores, transition, mask, budget, spans, unit, fixed, group, shortest, longest, per_group, max_iterations,
    tolerance, at_least=None,
):  # fmt: skip
    rows, n = scores.shape
    support = new_support(rows, n)
    inputs = (scores, transition, mask, budget, lower_bounds(budget, at_least), spans, unit, fixed.long(), group)
    outputs = (scores, budget, budget, scores[:, 0] if n else scores.sum(-1), mask.any(-1))
    numbers = (n, shortest, longest, per_group, max_iterations, float(tolerance))
    z, size, iterations, gap, converged = solve_on_cpu(solve_spans, inputs, outputs, *numbers, support=support)
    return z, size, support, converged, iterations, gap
