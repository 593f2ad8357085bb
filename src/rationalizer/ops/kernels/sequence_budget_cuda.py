"""H:SeqBudget on CUDA: the closed form with its certificate in Triton, the rows it leaves open on the host.

A solver whose hundreds of small steps wait for one another is no work for a GPU. So the host waits to learn which rows
are open (usually none), and for these runs the CPU's kernel, whose certificates settle many without a step. Which rows
they were, and their sequences, stays on the host: the backward pass knows without waiting whether the closed form's
gradient is all there is.
"""

import numpy as np
import torch
import triton
import triton.language as tl

from rationalizer.ops.kernels.bits_cpu import word_count
from rationalizer.ops.kernels.numba_runtime import for_rows, for_slow_rows
from rationalizer.ops.kernels.packing_cuda import TILE, packable
from rationalizer.ops.kernels.pair_budget_cuda import pair_budget_backward, pair_budget_row
from rationalizer.ops.kernels.rows_cuda import BLOCK, fill, gather_edges, gather_real, plain, scatter_real
from rationalizer.ops.kernels.sequence_budget_cpu import sequence_budget_backward_rows, sequence_budget_open_rows

OPEN = tl.constexpr(-1)  # in `size`: the closed form is not certified


@triton.jit(do_not_specialize=["n"])
def _closed_form_kernel(
    scores,
    transition,
    mask,
    budget,
    z,
    tight,
    size,
    converged,
    iterations,
    gap,
    work,
    n,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    s = work + row * (13 * n + 6)
    r = s + n
    solution = r + n
    count, answered = gather_real(scores + row * n, mask + row * n, n, s, BLOCK)
    finite, negative = gather_edges(transition + row * (n - 1), mask + row * n, n, r, BLOCK)
    limit = tl.load(budget + row)
    answered = answered & finite & (limit >= 0)
    count = tl.where(answered, count, 0)
    limit = tl.minimum(tl.maximum(limit, 0), count).to(tl.int32)
    threshold = tl.full([], 0.0, tl.float64)
    mark = 0
    if limit == 0:
        fill(solution, 0, count, threshold, BLOCK)
    elif negative:
        fill(solution, 0, count, threshold, BLOCK)
        mark = OPEN
    else:
        threshold = pair_budget_row(s, r, count, limit, solution, solution + n, BLOCK)
        if limit < count:
            ones = tl.zeros([BLOCK], tl.int32)
            for start in range(0, count, BLOCK):
                i = start + tl.arange(0, BLOCK)
                ones += (tl.load(solution + i, mask=i < count, other=0.0) == 1.0).to(tl.int32)
            fits = packable(solution, r, count, limit - tl.sum(ones, 0), solution + n, BLOCK, TILE)
            mark = tl.where(fits, 0, OPEN)
    tl.store(tight + row, (threshold > 0.0).to(tl.uint8))
    tl.store(size + row, mark)
    tl.store(converged + row, answered.to(tl.uint8))
    tl.store(iterations + row, 0)
    tl.store(gap + row, tl.where(answered, 0.0, float("nan")).to(tl.float64))
    scatter_real(solution, mask + row * n, n, answered, z + row * n, BLOCK)


def _closed_form(scores, transition, mask, budget):
    rows, n = scores.shape
    scores, transition, mask, budget = plain(scores, transition, mask, budget)
    z, gap = torch.empty_like(scores), scores.new_zeros(rows)
    tight, converged = (torch.ones(rows, dtype=torch.bool, device=scores.device) for _ in range(2))
    size, iterations = (torch.zeros(rows, dtype=torch.int64, device=scores.device) for _ in range(2))
    if scores.numel():
        flags = tight.view(torch.uint8), converged.view(torch.uint8)
        work = scores.new_empty(rows, 13 * n + 6)
        _closed_form_kernel[(rows,)](
            scores, transition, mask, budget, z, flags[0], size, flags[1], iterations, gap, work, n, BLOCK, TILE,
            num_warps=1,
        )  # fmt: skip
    return z, tight, size, converged, iterations, gap


def _host(*tensors):
    return tuple(t.cpu().contiguous().numpy() for t in tensors)


def sequence_budget(scores, transition, mask, budget, max_iterations, tolerance):
    z, tight, size, converged, iterations, gap = _closed_form(scores, transition, mask, budget)
    size = size.cpu()
    rows, n = scores.shape
    # On the host only the pages that open_rows rows write to are ever backed by memory.
    support = torch.empty((rows, n + 1, word_count(n)), dtype=torch.int64)
    open_rows = np.flatnonzero(size.numpy() < 0)
    if open_rows.size:
        solved = tuple(t.cpu() for t in (z, iterations, gap, converged))
        at, *status = (t.numpy() for t in solved)
        for_slow_rows(
            sequence_budget_open_rows, open_rows.size, open_rows, *_host(scores, transition, mask, budget),
            max_iterations, tolerance, at, size.numpy(), support.numpy().view("uint64"), *status,
        )  # fmt: skip
        z, iterations, gap, converged = (t.to(scores.device) for t in solved)
    return z, tight, size, support, converged, iterations, gap


def sequence_budget_backward(g, z, transition, mask, tight, size, support):
    """`size` and `support` are on the host already, unless they come from a layer that is solved there as a whole."""
    size = size.cpu()
    if not size.any():
        return pair_budget_backward(g, z, transition, mask, tight.to(z.dtype))
    grad_s, grad_r = torch.empty(z.shape, dtype=z.dtype), torch.empty(transition.shape, dtype=z.dtype)
    inputs, packed = _host(g, z, transition, mask, tight, size), _host(support)[0].view("uint64")
    for_rows(sequence_budget_backward_rows, z.shape[0], 20 * z.numel(), *inputs, packed, grad_s.numpy(), grad_r.numpy())
    lost = z.isnan()  # rows without an answer have no gradient either
    grad_s, grad_r = grad_s.to(z.device), grad_r.to(z.device)
    return grad_s.masked_fill(lost, torch.nan), grad_r.masked_fill(lost[:, 1:] & lost[:, :-1], torch.nan)
