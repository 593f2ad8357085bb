"""PAIR factors along a chain and one BUDGET factor in Triton: budget projection ∘ total-variation prox."""

import torch
import triton
import triton.language as tl

from rationalizer.ops.kernels.budget_cuda import budget_row
from rationalizer.ops.kernels.rows_cuda import (
    BLOCK,
    fill,
    gather_edges,
    gather_real,
    plain,
    read_bounds,
    scatter_edges,
    scatter_real,
)
from rationalizer.ops.kernels.total_variation_cuda import average_plateaus, ends_plateau, total_variation_row


@triton.jit
def _exact_heights(s, r, x, n, heights, BLOCK: tl.constexpr):
    """The heights of the plateaus of `x`, summed after shifts and weights have cancelled (see `pair_budget_cpu`)."""
    start = 0
    base = tl.load(s, mask=n > 0, other=0.0)
    total = tl.full([], 0.0, tl.float64)
    for i in range(n):
        inner = i + 1 < n
        here = tl.load(x + i)
        ahead = tl.load(x + i + 1, mask=inner, other=float("-inf"))
        edge = tl.load(r + i, mask=inner, other=0.0)
        ends = ends_plateau(x, r, i, n)
        total += tl.load(s + i) - base
        total += tl.where((ahead > here) | ~ends, edge, 0.0)
        if ends:
            fill(heights, start, i + 1, base + total / (i + 1 - start), BLOCK)
            start = i + 1
            base = tl.load(s + i + 1, mask=inner, other=0.0)
            total = tl.where(here > ahead, edge, 0.0)
    tl.debug_barrier()


@triton.jit
def pair_budget_row(s, r, n, least, budget, z, work, BLOCK: tl.constexpr):
    """Solve one row; returns τ. `work` holds 10n + 6 floats."""
    x = work
    weight = x + n
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        behind = 0.5 * tl.load(r + i - 1, mask=(i > 0) & (i < n), other=0.0)
        ahead = 0.5 * tl.load(r + i, mask=i + 1 < n, other=0.0)
        tl.store(z + i, tl.load(s + i, mask=i < n, other=0.0) + behind + ahead, mask=i < n)
        tl.store(weight + i, ahead, mask=i < n)
    tl.debug_barrier()
    total_variation_row(z, weight, n, x, weight + n)
    _exact_heights(s, r, x, n, weight, BLOCK)
    return budget_row(weight, n, least, budget, z, BLOCK)


@triton.jit
def pair_budget_backward_row(g, z, r, n, tight, h, grad_r, BLOCK: tl.constexpr):
    """Compute h = J g with J the projector onto the face of z; grad_r of an edge is h at the lower of its two words."""
    average_plateaus(z, r, g, n, h, BLOCK)
    total = tl.zeros([BLOCK], tl.float64)
    free = tl.zeros([BLOCK], tl.int32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = tl.load(z + i, mask=i < n, other=0.0)
        inside = (value > 0.0) & (value < 1.0)
        total += tl.load(g + i, mask=inside, other=0.0)
        free += inside.to(tl.int32)
    mean = tl.where(tight, tl.sum(total, 0) / tl.maximum(tl.sum(free, 0), 1), 0.0)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = tl.load(z + i, mask=i < n, other=0.0)
        inside = (value > 0.0) & (value < 1.0)
        tl.store(h + i, tl.where(inside, tl.load(h + i, mask=inside, other=0.0) - mean, 0.0), mask=i < n)
    tl.debug_barrier()
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        inner = i + 1 < n
        here = tl.load(z + i, mask=inner, other=0.0)
        ahead = tl.load(z + i + 1, mask=inner, other=0.0)
        tl.store(grad_r + i, tl.load(h + i + (here > ahead).to(tl.int32), mask=inner, other=0.0), mask=inner)


@triton.jit(do_not_specialize=["n"])
def _forward_kernel(
    scores, transition, mask, budget, at_least, z, tau, work, n, BOUNDED: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    s = work + row * (13 * n + 6)
    r = s + n
    solution = r + n
    count, solvable = gather_real(scores + row * n, mask + row * n, n, s, BLOCK)
    finite, negative = gather_edges(transition + row * (n - 1), mask + row * n, n, r, BLOCK)
    limit = tl.load(budget + row)
    count, least, solvable = read_bounds(at_least + row, limit, count, solvable & finite & ~negative, BOUNDED)
    threshold = pair_budget_row(s, r, count, least, limit, solution, solution + n, BLOCK)
    tl.store(tau + row, threshold)
    scatter_real(solution, mask + row * n, n, solvable, z + row * n, BLOCK)


@triton.jit
def backward_row(row, grad, z, transition, mask, tight, grad_s, grad_r, work, n, BLOCK: tl.constexpr):
    """Compute the gradients of one row of the batch. `work` holds 5n floats."""
    g = work
    real_z = g + n
    r = real_z + n
    h = r + n
    edges = h + n
    count, _ = gather_real(grad + row * n, mask + row * n, n, g, BLOCK)
    _, solvable = gather_real(z + row * n, mask + row * n, n, real_z, BLOCK)
    gather_edges(transition + row * (n - 1), mask + row * n, n, r, BLOCK)
    pair_budget_backward_row(g, real_z, r, count, tight, h, edges, BLOCK)
    scatter_real(h, mask + row * n, n, solvable, grad_s + row * n, BLOCK)
    scatter_edges(edges, mask + row * n, n, count, solvable, grad_r + row * (n - 1), BLOCK)


@triton.jit(do_not_specialize=["n"])
def _backward_kernel(grad, z, transition, mask, tau, grad_s, grad_r, work, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    tight = tl.load(tau + row) != 0.0
    backward_row(row, grad, z, transition, mask, tight, grad_s, grad_r, work + row * 5 * n, n, BLOCK)


def pair_budget(scores, transition, mask, budget, at_least=None):
    rows, n = scores.shape
    bounded = at_least is not None
    bound = at_least if bounded else budget
    scores, transition, mask, budget, bound = plain(scores, transition, mask, budget, bound)
    z, tau = torch.empty_like(scores), scores.new_zeros(rows)
    if scores.numel():
        work = scores.new_empty(rows, 13 * n + 6)
        _forward_kernel[(rows,)](scores, transition, mask, budget, bound, z, tau, work, n, bounded, BLOCK, num_warps=1)
    return z, tau


def pair_budget_backward(g, z, transition, mask, tau):
    rows, n = z.shape
    g, z, transition, mask, tau = plain(g, z, transition, mask, tau)
    grad_s, grad_r = torch.empty_like(z), torch.empty_like(transition)
    if z.numel():
        work = z.new_empty(rows, 5 * n)
        _backward_kernel[(rows,)](g, z, transition, mask, tau, grad_s, grad_r, work, n, BLOCK, num_warps=1)
    return grad_s, grad_r
