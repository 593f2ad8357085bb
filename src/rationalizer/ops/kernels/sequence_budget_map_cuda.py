"""Budgeted Viterbi in Triton: a recursion along the words, all budgets of a step in parallel."""

import torch
import triton
import triton.language as tl

from rationalizer.ops.kernels.rows_cuda import (
    BLOCK,
    gather_edges,
    gather_real,
    plain,
    programs,
    read_bounds,
    scatter_real,
)

IMPOSSIBLE = tl.constexpr(-1e300)


@triton.jit(noinline=True)
def budgeted_viterbi(s, r, n, least, budget, offset, y, trace, value, BLOCK: tl.constexpr):
    """Maximize s·y + Σ r_i y_i y_{i+1} + offset·(Σy − budget) s.t. least ≤ Σy ≤ budget; write the argmax as bytes
    to `y`.

    As in `sequence_budget_map_cpu`, ties included. Scratch: `trace` n·(budget + 1) bytes, `value` 4·(budget + 1)
    floats.
    """
    width = budget + 1
    for start in range(0, width, BLOCK):
        k = start + tl.arange(0, BLOCK)
        tl.store(value + k, tl.where(k == 0, 0.0, IMPOSSIBLE).to(tl.float64), mask=k < width)
        tl.store(value + width + k, tl.full([BLOCK], IMPOSSIBLE, tl.float64), mask=k < width)
    now = 0  # which half of `value` holds the current step
    for t in range(n):
        tl.debug_barrier()
        edge = tl.load(r + t - 1, mask=t > 0, other=0.0)
        score = tl.load(s + t)
        zero = value + now * 2 * width
        one = zero + width
        next_zero = value + (1 - now) * 2 * width
        next_one = next_zero + width
        for start in range(0, width, BLOCK):
            k = start + tl.arange(0, BLOCK)
            inner = k < width
            fewer = inner & (k > 0)
            if_zero = tl.load(zero + k, mask=inner, other=IMPOSSIBLE)
            if_one = tl.load(one + k, mask=inner, other=IMPOSSIBLE)
            fresh = tl.load(zero + k - 1, mask=fewer, other=IMPOSSIBLE)
            joined = tl.load(one + k - 1, mask=fewer, other=IMPOSSIBLE) + edge
            from_one = if_one > if_zero
            extended = joined > fresh
            tl.store(next_zero + k, tl.where(from_one, if_one, if_zero), mask=inner)
            tl.store(next_one + k, score + tl.where(extended, joined, fresh), mask=inner)
            bits = from_one.to(tl.uint8) + 2 * extended.to(tl.uint8)
            tl.store(trace + tl.cast(t, tl.int64) * width + k, bits.to(tl.uint8), mask=inner)
        now = 1 - now
    tl.debug_barrier()
    best = tl.full([], float("-inf"), tl.float64)
    used = 0
    bit = 0
    for start in range(0, width, BLOCK):
        k = start + tl.arange(0, BLOCK)
        bonus = offset * (k - budget)
        enough = (k < width) & (k >= least)
        if_zero = tl.load(value + now * 2 * width + k, mask=enough, other=float("-inf")) + bonus
        if_one = tl.load(value + now * 2 * width + width + k, mask=enough, other=float("-inf")) + bonus
        top = tl.max(tl.maximum(if_zero, if_one), 0)
        first = tl.min(tl.where((if_zero == top) | (if_one == top), k, width), 0)
        ends_in_one = tl.sum(((k == first) & (if_zero < top)).to(tl.int32), 0)
        better = top > best
        used = tl.where(better, first, used)
        bit = tl.where(better, ends_in_one, bit)
        best = tl.where(better, top, best)
    for step in range(n):
        t = n - 1 - step
        tl.store(y + t, tl.cast(bit, tl.uint8))
        way = tl.load(trace + tl.cast(t, tl.int64) * width + used).to(tl.int32)
        used -= bit
        bit = (way >> bit) & 1
    tl.debug_barrier()


@triton.jit(do_not_specialize=["n", "rows"])
def _map_kernel(
    scores,
    transition,
    mask,
    budget,
    at_least,
    z,
    floats,
    trace,
    n,
    rows,
    BOUNDED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    s = floats + program * (7 * n + 4)
    r = s + n
    solution = r + n
    y = trace + program * n * (n + 2)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = tl.cast(row, tl.int64)
        count, solvable = gather_real(scores + at * n, mask + at * n, n, s, BLOCK)
        finite, _ = gather_edges(transition + at * (n - 1), mask + at * n, n, r, BLOCK)
        limit = tl.load(budget + at)
        count, least, solvable = read_bounds(at_least + at, limit, count, solvable & finite, BOUNDED)
        limit = tl.minimum(tl.maximum(limit, 0), count).to(tl.int32)
        budgeted_viterbi(s, r, count, least, limit, 0.0, y, y + n, solution + n, BLOCK)
        for start in range(0, count, BLOCK):
            i = start + tl.arange(0, BLOCK)
            tl.store(solution + i, tl.load(y + i, mask=i < count, other=0).to(tl.float64), mask=i < count)
        scatter_real(solution, mask + at * n, n, solvable, z + at * n, BLOCK)
        tl.debug_barrier()


def sequence_budget_map(scores, transition, mask, budget, at_least=None):
    rows, n = scores.shape
    bounded = at_least is not None
    bound = at_least if bounded else budget
    scores, transition, mask, budget, bound = plain(scores, transition, mask, budget, bound)
    z = torch.empty_like(scores)
    if scores.numel():
        grid = programs(rows, n * (n + 2))
        floats = scores.new_empty(grid, 7 * n + 4)
        trace = scores.new_empty((grid, n * (n + 2)), dtype=torch.uint8)
        _map_kernel[(grid,)](
            scores, transition, mask, budget, bound, z, floats, trace, n, rows, bounded, BLOCK, num_warps=1
        )
    return z
