"""The gradient of H:SeqBudget in Triton: from the closed form where it was the answer, else from the sequences."""

import torch
import triton
import triton.language as tl

from rationalizer.ops.kernels.pair_budget_cuda import pair_budget_backward_row
from rationalizer.ops.kernels.rows_cuda import (
    BLOCK,
    fill,
    gather_edges,
    gather_real,
    plain,
    programs,
    scatter_edges,
    scatter_real,
)
from rationalizer.ops.kernels.support_cuda import TILE, affine_solve, approach, combine, enter, project


@triton.jit(noinline=True)
def _unpack(support, words, columns, n, count, k, tokens, BLOCK: tl.constexpr):
    """The k sequences as bytes; lists in `tokens` those that not all sequences agree on, and returns how many."""
    varying = 0
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        ones = tl.zeros([BLOCK], tl.int32)
        for j in range(k):
            word = tl.load(support + j * words + (i >> 6), mask=i < count, other=0)
            bit = ((word >> (i & 63)) & 1).to(tl.int32)
            tl.store(columns + j * n + i, bit.to(tl.uint8), mask=i < count)
            ones += bit
        varies = ((ones > 0) & (ones < k)).to(tl.int32)
        tl.store(tokens + varying + tl.cumsum(varies, 0) - 1, i, mask=varies > 0)
        varying += tl.sum(varies, 0)
    tl.debug_barrier()
    return varying


@triton.jit
def _support_backward(
    g, columns, n, count, k, capacity, tokens, m, vectors, inverse, w, h, grad_r, BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """h = J g and its counterpart for the transitions, J the projector onto the affine hull of k sequences.

    Only the m listed tokens tell the sequences apart; along the others the hull does not extend.
    """
    along = vectors
    weights = along + capacity
    unit = weights + capacity
    residual = unit + capacity
    u = residual + capacity
    moved = w + n
    for first in range(k):
        distance = approach(columns, n, tokens, m, inverse, capacity, first, u, residual, w, BLOCK, TILE)
        enter(inverse, capacity, first, u, distance, BLOCK, TILE)
    for start in range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        token = tl.load(tokens + i, mask=i < m, other=0)
        tl.store(w + i, tl.load(g + token, mask=i < m, other=0.0), mask=i < m)
    tl.debug_barrier()
    project(columns, n, tokens, m, w, k, 0.0, along, TILE)
    affine_solve(columns, n, tokens, m, inverse, capacity, along, k, 0.0, 2, weights, unit, residual, w, BLOCK, TILE)
    combine(columns, n, tokens, m, weights, k, moved, TILE)
    fill(h, 0, count, tl.full([], 0.0, tl.float64), BLOCK)
    for start in range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        token = tl.load(tokens + i, mask=i < m, other=0)
        tl.store(h + token, tl.load(moved + i, mask=i < m, other=0.0), mask=i < m)
    for start in range(0, count - 1, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total = tl.zeros([BLOCK], tl.float64)
        for j in range(k):
            place = columns + j * n + i
            both = tl.load(place, mask=i + 1 < count, other=0) * tl.load(place + 1, mask=i + 1 < count, other=0)
            total += tl.load(weights + j) * both.to(tl.float64)
        tl.store(grad_r + i, total, mask=i + 1 < count)
    tl.debug_barrier()


@triton.jit(do_not_specialize=["n", "rows", "capacity"])
def _backward_kernel(
    grad,
    z,
    transition,
    mask,
    tight,
    kept,
    support,
    grad_s,
    grad_r,
    floats,
    bytes_,
    tokens,
    n,
    rows,
    capacity,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    words = (n + 63) // 64
    g = floats + program * (7 * n + (5 + capacity) * capacity)
    real_z = g + n
    r = real_z + n
    h = r + n
    edges = h + n
    w = edges + n
    vectors = w + 2 * n
    inverse = vectors + 5 * capacity
    tokens = tokens + program * n
    columns = bytes_ + program * n * capacity
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = tl.cast(row, tl.int64)
        count, _ = gather_real(grad + at * n, mask + at * n, n, g, BLOCK)
        _, answered = gather_real(z + at * n, mask + at * n, n, real_z, BLOCK)
        k = tl.load(kept + at).to(tl.int32)
        gather_edges(transition + at * (n - 1), mask + at * n, n, r, BLOCK)
        if k == 0:
            pair_budget_backward_row(g, real_z, r, count, tl.load(tight + at) != 0, h, edges, BLOCK)
        else:
            varying = _unpack(support + at * capacity * words, words, columns, n, count, k, tokens, BLOCK)
            _support_backward(
                g, columns, n, count, k, capacity, tokens, varying, vectors, inverse, w, h, edges, BLOCK, TILE
            )
        scatter_real(h, mask + at * n, n, answered, grad_s + at * n, BLOCK)
        scatter_edges(edges, mask + at * n, n, count, answered, grad_r + at * (n - 1), BLOCK)
        tl.debug_barrier()


def sequence_budget_backward(g, z, transition, mask, tight, kept, support):
    rows, n = z.shape
    g, z, transition, mask, tight, kept, support = plain(g, z, transition, mask, tight, kept, support)
    grad_s, grad_r = torch.empty_like(z), torch.empty_like(transition)
    if z.numel():
        capacity = support.shape[1]
        floats, small = 7 * n + (5 + capacity) * capacity, n * capacity
        grid = programs(rows, 8 * floats + small)
        _backward_kernel[(grid,)](
            g, z, transition, mask, tight, kept, support, grad_s, grad_r, z.new_empty(grid, floats),
            z.new_empty((grid, small), dtype=torch.uint8), z.new_empty((grid, n), dtype=torch.int32), n, rows, capacity,
            BLOCK, TILE, num_warps=1,
        )  # fmt: skip
    return grad_s, grad_r
