"""The gradient of H:SeqBudget in Triton: from the closed form where it was the answer, else from the sequences."""

import torch
import triton
import triton.language as tl

from rationalizer.ops.kernels.pair_budget_cuda import pair_budget_backward_row
from rationalizer.ops.kernels.rows_cuda import (
    BLOCK,
    gather_edges,
    gather_real,
    plain,
    programs,
    scatter_edges,
    scatter_real,
)
from rationalizer.ops.kernels.support_cuda import TILE, affine_solve, approach, combine, enter, project


@triton.jit
def _support_backward(
    g, columns, n, count, k, capacity, tokens, along, vectors, inverse, w, h, grad_r, BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """h = J g and its counterpart for the transitions, J the projector onto the affine hull of k sequences."""
    weights = vectors
    unit = weights + capacity
    residual = unit + capacity
    u = residual + capacity
    for first in range(k):
        distance = approach(columns, n, tokens, count, inverse, capacity, first, u, residual, w, BLOCK, TILE)
        enter(inverse, capacity, first, u, distance, BLOCK, TILE)
    project(columns, n, tokens, count, g, k, 0.0, along, TILE)
    affine_solve(
        columns, n, tokens, count, inverse, capacity, along, k, 0.0, 2, weights, unit, residual, w, BLOCK, TILE
    )
    combine(columns, n, tokens, count, weights, k, h, TILE)
    for begin in range(0, count - 1, TILE):
        i = begin + tl.arange(0, TILE)
        total = tl.zeros([TILE], tl.float64)
        for start in range(0, k, TILE):
            j = start + tl.arange(0, TILE)
            known = (j[:, None] < k) & (i[None, :] + 1 < count)
            place = columns + j[:, None] * n + i[None, :]
            both = tl.load(place, mask=known, other=0) * tl.load(place + 1, mask=known, other=0)
            total += tl.sum(tl.load(weights + j, mask=j < k, other=0.0)[:, None] * both.to(tl.float64), 0)
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
    g = floats + program * (6 * n + (5 + capacity) * capacity)
    real_z = g + n
    r = real_z + n
    h = r + n
    edges = h + n
    w = edges + n
    along = w + n
    vectors = along + capacity
    inverse = vectors + 4 * capacity
    tokens = tokens + program * n
    columns = bytes_ + program * n * capacity
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = tl.cast(row, tl.int64)
        count, _ = gather_real(grad + at * n, mask + at * n, n, g, BLOCK)
        _, answered = gather_real(z + at * n, mask + at * n, n, real_z, BLOCK)
        k = tl.load(kept + at).to(tl.int32)
        if k == 0:
            gather_edges(transition + at * (n - 1), mask + at * n, n, r, BLOCK)
            pair_budget_backward_row(g, real_z, r, count, tl.load(tight + at) != 0, h, edges, BLOCK)
        else:
            for start in range(0, count, BLOCK):
                i = start + tl.arange(0, BLOCK)
                tl.store(tokens + i, i, mask=i < count)
                for j in range(k):
                    word = tl.load(support + (at * capacity + j) * words + (i >> 6), mask=i < count, other=0)
                    tl.store(columns + j * n + i, ((word >> (i & 63)) & 1).to(tl.uint8), mask=i < count)
            tl.debug_barrier()
            _support_backward(
                g, columns, n, count, k, capacity, tokens, along, vectors, inverse, w, h, edges, BLOCK, TILE
            )
        scatter_real(h, mask + at * n, n, answered, grad_s + at * n, BLOCK)
        scatter_edges(edges, mask + at * n, n, count, answered, grad_r + at * (n - 1), BLOCK)
        tl.debug_barrier()


def sequence_budget_backward(g, z, transition, mask, tight, kept, support):
    rows, n = z.shape
    g, z, transition, mask, tight = plain(g, z, transition, mask, tight)
    grad_s, grad_r = torch.empty_like(z), torch.empty_like(transition)
    if z.numel():
        capacity = support.shape[1]
        floats, small = 6 * n + (5 + capacity) * capacity, n * capacity
        grid = programs(rows, 8 * floats + small)
        _backward_kernel[(grid,)](
            g, z, transition, mask, tight, kept, support, grad_s, grad_r, z.new_empty(grid, floats),
            z.new_empty((grid, small), dtype=torch.uint8), z.new_empty((grid, n), dtype=torch.int32), n, rows, capacity,
            BLOCK, TILE, num_warps=1,
        )  # fmt: skip
    return grad_s, grad_r
