"""H:SeqBudget on CUDA: the closed form and its certificate in Triton, rows without a certificate on the CPU.

An active-set method with hundreds of small dependent steps does not suit a GPU. The rows without a certificate (usually
none) are queued for the CPU solver, whose second certificate proves many of them without an iteration; see
`open_rows_cuda`. The sequences that share a solution stay on the host, where the backward pass projects onto their
hull.
"""

import torch
import triton
import triton.language as tl

from rationalizer.ops.kernels.mixture_certificate_cuda import TILE, is_mixture_within_budget
from rationalizer.ops.kernels.open_rows_cuda import borrow, new_support, none_was_open
from rationalizer.ops.kernels.pair_budget_cuda import backward_row, pair_budget_backward, pair_budget_row
from rationalizer.ops.kernels.rows_cuda import (
    BLOCK,
    copy,
    fill,
    gather_edges,
    gather_real,
    plain,
    read_bounds,
    scatter_real,
)
from rationalizer.ops.kernels.sequence_budget_open_rows_cpu import project_gradients, solve_sequence_budget

UNCERTIFIED = tl.constexpr(-1)  # in `size`: the closed form is not certified


@triton.jit(do_not_specialize=["rows", "n"])
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
    floats,
    integers,
    booleans,
    rows,
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
            if BOUNDED:  # between the bounds, the CPU proves that the sequences have enough words
                bound = tl.where((threshold < 0.0) & (ones < least), least, limit)
                between = (threshold == 0.0) & (ones < least)
            fits = is_mixture_within_budget(solution, r, count, bound - ones, solution + n, BLOCK, TILE)
            status = tl.where(fits & ~between, 0, UNCERTIFIED)
    tl.store(tight + row, (threshold != 0.0).to(tl.uint8))
    tl.store(size + row, status)
    tl.store(integers + row, status)
    tl.store(converged + row, solvable.to(tl.uint8))
    tl.store(iterations + row, 0)
    tl.store(gap + row, tl.where(solvable, 0.0, float("nan")).to(tl.float64))
    scatter_real(solution, mask + row * n, n, solvable, z + row * n, BLOCK)
    if status != 0:  # the blocks are described in `sequence_budget_open_rows_cpu`
        copy(scores + row * n, floats + row * n, n, BLOCK)
        copy(transition + row * (n - 1), floats + 2 * rows * n + row * (n - 1), n - 1, BLOCK)
        copy(mask + row * n, booleans + row * n, n, BLOCK)
        tl.store(integers + 2 * rows + row, tl.load(budget + row))
        lower = 0 * tl.load(budget + row)
        if BOUNDED:
            lower = tl.load(at_least + row)
        tl.store(integers + 3 * rows + row, lower)
        tl.store(integers + 4 * rows + row, 0)
        tl.store(floats + 3 * rows * n + row, tl.full([], 0.0, tl.float64))
        tl.store(booleans + rows * n + row, 1)


@triton.jit(do_not_specialize=["rows", "n"])
def _read_solutions_kernel(
    floats, integers, booleans, z, size, converged, iterations, gap, rows, n, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    if tl.load(size + row) != 0:
        if tl.load(integers + row) != 0:  # otherwise the closed form is proven optimal after all
            copy(floats + (rows + row) * n, z + row * n, n, BLOCK)
        tl.store(gap + row, tl.load(floats + 3 * rows * n + row))
        tl.store(size + row, tl.load(integers + row))
        tl.store(iterations + row, tl.load(integers + 4 * rows + row))
        tl.store(converged + row, tl.load(booleans + rows * n + row))


def sequence_budget(scores, transition, mask, budget, max_iterations, tolerance, at_least=None):
    rows, n = scores.shape
    bounded = at_least is not None
    bound = at_least if bounded else budget
    scores, transition, mask, budget, bound = plain(scores, transition, mask, budget, bound)
    z, gap = torch.empty_like(scores), scores.new_empty(rows)
    tight, converged = (torch.empty(rows, dtype=torch.bool, device=scores.device) for _ in range(2))
    size, iterations = (torch.empty(rows, dtype=torch.int64, device=scores.device) for _ in range(2))
    support = new_support(rows, n)
    if not scores.numel():
        _ = tight.fill_(True), converged.fill_(True), size.zero_(), iterations.zero_(), gap.zero_()
    else:
        flags = tight.view(torch.uint8), converged.view(torch.uint8)
        work = scores.new_empty(rows, 13 * n + 6)
        with borrow(((3 * n + 1) * rows, 5 * rows, (n + 1) * rows), scores.device) as open_rows:
            blocks = (open_rows.floats, open_rows.integers, open_rows.booleans)
            _closed_form_kernel[(rows,)](
                scores, transition, mask, budget, bound, z, flags[0], size, flags[1], iterations, gap, work, *blocks,
                rows, n, bounded, BLOCK, TILE, num_warps=1,
            )  # fmt: skip
            open_rows.solve(solve_sequence_budget, rows, support, n, max_iterations, float(tolerance), report=True)
            _read_solutions_kernel[(rows,)](*blocks, z, size, flags[1], iterations, gap, rows, n, BLOCK, num_warps=1)
    return z, tight, size, support, converged, iterations, gap


@triton.jit(do_not_specialize=["rows", "n"])
def _backward_kernel(
    grad, z, transition, mask, tight, size, grad_s, grad_r, work, floats, integers, booleans, rows, n,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    status = tl.load(size + row)
    tl.store(integers + row, status)
    if status == 0:
        is_tight = tl.load(tight + row) != 0
        backward_row(row, grad, z, transition, mask, is_tight, grad_s, grad_r, work + row * 5 * n, n, BLOCK)
    else:
        copy(grad + row * n, floats + row * n, n, BLOCK)
        copy(mask + row * n, booleans + row * n, n, BLOCK)


@triton.jit(do_not_specialize=["rows", "n"])
def _read_gradients_kernel(floats, size, grad_s, grad_r, rows, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    if tl.load(size + row) != 0:
        copy(floats + (rows + row) * n, grad_s + row * n, n, BLOCK)
        copy(floats + 2 * rows * n + row * (n - 1), grad_r + row * (n - 1), n - 1, BLOCK)


def sequence_budget_backward(g, z, transition, mask, tight, size, support):
    """Return the gradients of scores and transitions. A bound is tight where `tight` is not 0."""
    if none_was_open(support):
        return pair_budget_backward(g, z, transition, mask, tight)
    rows, n = z.shape
    g, z, transition, mask, tight, size = plain(g, z, transition, mask, tight, size)
    grad_s, grad_r = torch.empty_like(z), torch.empty_like(transition)
    if z.numel():
        work = z.new_empty(rows, 5 * n)
        with borrow((3 * n * rows, 2 * rows, n * rows), z.device) as open_rows:
            floats = open_rows.floats
            _backward_kernel[(rows,)](
                g, z, transition, mask, tight, size, grad_s, grad_r, work, floats, open_rows.integers,
                open_rows.booleans, rows, n, BLOCK, num_warps=1,
            )  # fmt: skip
            open_rows.solve(project_gradients, rows, support.cpu(), n)
            _read_gradients_kernel[(rows,)](floats, size, grad_s, grad_r, rows, n, BLOCK, num_warps=1)
    return grad_s, grad_r
