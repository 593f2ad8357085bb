"""`spans` on CUDA tensors: every row is solved on the CPU, in the order of the stream (see `open_rows_cuda`)."""

import torch

from rationalizer.ops._inputs import lower_bounds
from rationalizer.ops.kernels.open_rows_cpu import ANSWER, REQUEST
from rationalizer.ops.kernels.open_rows_cuda import give_back, new_support, take
from rationalizer.ops.kernels.spans_open_rows_cpu import solve_spans


def spans(
    scores, transition, mask, budget, spans, unit, fixed, group, shortest, longest, per_group, max_iterations,
    tolerance, at_least=None,
):  # fmt: skip
    rows, n = scores.shape
    support = new_support(rows, n)
    open_rows = take(((3 * n + 1) * rows, (6 + 3 * n) * rows, (n + 1) * rows), scores.device)
    open_rows.prepare(solve_spans, rows, support, n, shortest, longest, per_group, max_iterations, float(tolerance))
    matrix, ones = rows * n, torch.ones_like(budget)
    _send(open_rows.floats, (scores, 0), (transition, 2 * matrix))
    _send(
        open_rows.integers, (ones, 0), (budget, 2 * rows), (lower_bounds(budget, at_least), 3 * rows), (spans, 4 * rows)
    )
    _send(open_rows.integers, *((t, 6 * rows + i * matrix) for i, t in enumerate((unit, group, fixed))))
    _send(open_rows.booleans, (mask, 0))
    if rows:  # every row is open
        _send(open_rows.mailbox, (ones[:1], REQUEST))
        open_rows.wait()
        _send(open_rows.mailbox, (ones[:1] - 1, ANSWER))
    z, gap = _fetch(open_rows.floats, scores, (matrix, (rows, n)), (3 * matrix, (rows,)))
    size, iterations = _fetch(open_rows.integers, scores, (0, (rows,)), (5 * rows, (rows,)))
    (converged,) = _fetch(open_rows.booleans, scores, (matrix, (rows,)))
    give_back(open_rows)
    return z, size, support, converged.bool(), iterations, gap


def _send(block, *parts):
    """Copy each tensor to its place in a block of page-locked memory."""
    for tensor, place in parts:
        block[place : place + tensor.numel()].view(tensor.shape).copy_(tensor, non_blocking=True)


def _fetch(block, like, *parts):
    """Copy parts of a block, each given by its place and shape, to the device."""
    return [
        torch.empty(shape, dtype=block.dtype, device=like.device).copy_(
            block[place : place + shape.numel()].view(shape), non_blocking=True
        )
        for place, shape in ((place, torch.Size(shape)) for place, shape in parts)
    ]
