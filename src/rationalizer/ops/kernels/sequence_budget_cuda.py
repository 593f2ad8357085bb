"""H:SeqBudget on CUDA: the closed form and its certificate in Triton, rows without a certificate on the host.

An active-set method with hundreds of small dependent steps does not suit a GPU. The host waits for the list of
uncertified rows (usually none) and solves them with the CPU kernel, whose second certificate proves many of them
without an iteration. Support sizes and sequences stay on the host, so the backward pass knows without waiting whether
all rows have the closed form.
"""

import numpy as np
import torch
import triton
import triton.language as tl

from rationalizer.ops._inputs import lower_bounds
from rationalizer.ops.kernels.bits_cpu import word_count
from rationalizer.ops.kernels.mixture_certificate_cuda import TILE, is_mixture_within_budget
from rationalizer.ops.kernels.numba_runtime import for_rows, for_slow_rows, unsigned
from rationalizer.ops.kernels.pair_budget_cuda import pair_budget_backward, pair_budget_row
from rationalizer.ops.kernels.rows_cuda import BLOCK, fill, gather_edges, gather_real, plain, read_bounds, scatter_real
from rationalizer.ops.kernels.sequence_budget_backward_cpu import sequence_budget_backward_rows
from rationalizer.ops.kernels.sequence_budget_cpu import sequence_budget_uncertified_rows

UNCERTIFIED = tl.constexpr(-1)  # in `size`: the closed form is not certified


@triton.jit(do_not_specialize=["n"])
def _closed_form_kernel(
    scores,
    transition,
    mask,
    budget,
    at_least,
    z,
    tight,
    size,
    converged,
    iterations,
    gap,
    work,
    n,
    BOUNDED: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    s = work + row * (13 * n + 6)
    r = s + n
    solution = r + n
    count, solvable = gather_real(scores + row * n, mask + row * n, n, s, BLOCK)
    finite, negative = gather_edges(transition + row * (n - 1), mask + row * n, n, r, BLOCK)
    limit = tl.load(budget + row)
    count, least, solvable = read_bounds(at_least + row, limit, count, solvable & finite, BOUNDED)
    limit = tl.minimum(tl.maximum(limit, 0), count).to(tl.int32)
    least = least.to(tl.int32)
    threshold = tl.full([], 0.0, tl.float64)
    status = 0
    if limit == 0:
        fill(solution, 0, count, threshold, BLOCK)
    elif negative:
        fill(solution, 0, count, threshold, BLOCK)
        status = UNCERTIFIED
    else:
        threshold = pair_budget_row(s, r, count, least, limit, solution, solution + n, BLOCK)
        if BOUNDED | (limit < count):
            ones = tl.zeros([BLOCK], tl.int32)
            for start in range(0, count, BLOCK):
                i = start + tl.arange(0, BLOCK)
                ones += (tl.load(solution + i, mask=i < count, other=0.0) == 1.0).to(tl.int32)
            ones = tl.sum(ones, 0)
            bound = limit
            between = False
            if BOUNDED:  # between the bounds, the host proves that the sequences have enough words
                bound = tl.where((threshold < 0.0) & (ones < least), least, limit)
                between = (threshold == 0.0) & (ones < least)
            fits = is_mixture_within_budget(solution, r, count, bound - ones, solution + n, BLOCK, TILE)
            status = tl.where(fits & ~between, 0, UNCERTIFIED)
    tl.store(tight + row, (threshold != 0.0).to(tl.uint8))
    tl.store(size + row, status)
    tl.store(converged + row, solvable.to(tl.uint8))
    tl.store(iterations + row, 0)
    tl.store(gap + row, tl.where(solvable, 0.0, float("nan")).to(tl.float64))
    scatter_real(solution, mask + row * n, n, solvable, z + row * n, BLOCK)


def _closed_form(scores, transition, mask, budget, at_least):
    rows, n = scores.shape
    bounded = at_least is not None
    bound = at_least if bounded else budget
    scores, transition, mask, budget, bound = plain(scores, transition, mask, budget, bound)
    z, gap = torch.empty_like(scores), scores.new_zeros(rows)
    tight, converged = (torch.ones(rows, dtype=torch.bool, device=scores.device) for _ in range(2))
    size, iterations = (torch.zeros(rows, dtype=torch.int64, device=scores.device) for _ in range(2))
    if scores.numel():
        flags = tight.view(torch.uint8), converged.view(torch.uint8)
        work = scores.new_empty(rows, 13 * n + 6)
        _closed_form_kernel[(rows,)](
            scores, transition, mask, budget, bound, z, flags[0], size, flags[1], iterations, gap, work, n, bounded,
            BLOCK, TILE, num_warps=1,
        )  # fmt: skip
    return z, tight, size, converged, iterations, gap


def sequence_budget(scores, transition, mask, budget, max_iterations, tolerance, at_least=None):
    z, tight, size, converged, iterations, gap = _closed_form(scores, transition, mask, budget, at_least)
    size = size.cpu()
    rows, n = scores.shape
    # On the host only the pages that uncertified rows write use memory.
    support = torch.empty((rows, n + 1, word_count(n)), dtype=torch.int64)
    uncertified_rows = np.flatnonzero(size.numpy() < 0)
    if uncertified_rows.size:
        solution, *status = (t.cpu() for t in (z, iterations, gap, converged))
        inputs = (scores, transition, mask, lower_bounds(budget, at_least), budget, max_iterations, tolerance)
        outputs = (solution, size, unsigned(support), *status)
        for_slow_rows(sequence_budget_uncertified_rows, uncertified_rows.size, uncertified_rows, *inputs, *outputs)
        z, iterations, gap, converged = (t.to(scores.device) for t in (solution, *status))
    return z, tight, size, support, converged, iterations, gap


def sequence_budget_backward(g, z, transition, mask, tight, size, support):
    """Return the gradients of scores and transitions.

    `size` and `support` are on the host, unless they come from an op that is solved on the host as a whole.
    """
    size = size.cpu()
    if not size.any():
        return pair_budget_backward(g, z, transition, mask, tight.to(z.dtype))
    gradients = torch.empty(z.shape, dtype=z.dtype), torch.empty(transition.shape, dtype=z.dtype)
    inputs = (g, z, transition, mask, tight, size, unsigned(support))
    for_rows(sequence_budget_backward_rows, z.shape[0], 20 * z.numel(), *inputs, *gradients)
    grad_s, grad_r = (gradient.to(z.device) for gradient in gradients)
    unsolvable = z.isnan()  # rows without a solution have no gradient either
    edges = unsolvable[:, 1:] & unsolvable[:, :-1]
    return grad_s.masked_fill(unsolvable, torch.nan), grad_r.masked_fill(edges, torch.nan)
