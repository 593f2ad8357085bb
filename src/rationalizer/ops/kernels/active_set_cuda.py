"""SparseMAP over budgeted sequences by an active set, in Triton: the iteration of `active_set_cpu`."""

import triton
import triton.language as tl

from rationalizer.ops.kernels.sequence_budget_map_cuda import budgeted_viterbi
from rationalizer.ops.kernels.support_cuda import (
    DEPENDENT,
    affine_solve,
    approach,
    combine,
    dot,
    enter,
    leave,
    total_of,
)

EPS = tl.constexpr(2.3e-16)


@triton.jit(noinline=True)
def sequence_score(s, r, y, m, lift, budget, BLOCK: tl.constexpr):
    """s·y + Σ r_i y_i y_{i+1} + lift·(Σy − budget), and the largest partial sum, which bounds the rounding."""
    total = tl.full([], 0.0, tl.float64)
    largest = tl.full([], 0.0, tl.float64)
    used = 0
    for start in range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        now = tl.load(y + i, mask=i < m, other=0) != 0
        before = tl.load(y + i - 1, mask=(i < m) & (i > 0), other=0) != 0
        term = tl.load(s + i, mask=now, other=0.0) + tl.load(r + i - 1, mask=now & before, other=0.0)
        partial = total + tl.cumsum(term, 0)
        largest = tl.maximum(largest, tl.max(tl.where(now, tl.abs(partial), 0.0), 0))
        total += tl.sum(term, 0)
        used += tl.sum(now.to(tl.int32), 0)
    return total + lift * (used - budget), largest


@triton.jit(noinline=True)
def _first_to_leave(p, change, k, floor, BLOCK: tl.constexpr):
    """The j with the least p_j / change_j among those with change_j > floor, and that ratio; (k, inf) if none."""
    least = tl.full([], float("inf"), tl.float64)
    index = k + 0
    for start in range(0, k, BLOCK):
        j = start + tl.arange(0, BLOCK)
        fall = tl.load(change + j, mask=j < k, other=0.0)
        leaves = (j < k) & (fall > floor)
        ratio = tl.where(leaves, tl.load(p + j, mask=j < k, other=0.0) / tl.where(leaves, fall, 1.0), float("inf"))
        here = tl.min(ratio, 0)
        index = tl.where(here < least, tl.min(tl.where(ratio == here, j, k), 0), index)
        least = tl.minimum(least, here)
    return index, least


@triton.jit
def _move(p, change, k, step, BLOCK: tl.constexpr):
    """p −= step · change."""
    for start in range(0, k, BLOCK):
        j = start + tl.arange(0, BLOCK)
        value = tl.load(p + j, mask=j < k, other=0.0) - step * tl.load(change + j, mask=j < k, other=0.0)
        tl.store(p + j, value, mask=j < k)
    tl.debug_barrier()


@triton.jit
def _share_out(p, k, BLOCK: tl.constexpr):
    """Scale p to sum 1: it does up to rounding, which large scores would blow up in the gap."""
    total = total_of(p, k, BLOCK)
    for start in range(0, k, BLOCK):
        j = start + tl.arange(0, BLOCK)
        tl.store(p + j, tl.load(p + j, mask=j < k, other=0.0) / total, mask=j < k)
    tl.debug_barrier()


@triton.jit(noinline=True)
def write_sequence(column, state, n, tokens, y, m, BLOCK: tl.constexpr):
    """A sequence over all n tokens: `y` on the listed ones, what they are held at (`state` 0 or 1) on the others."""
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        held = tl.load(state + i, mask=i < n, other=0)
        tl.store(column + i, tl.where(held == 1, 1, 0).to(tl.uint8), mask=i < n)
    tl.debug_barrier()
    for start in range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        token = tl.load(tokens + i, mask=i < m, other=0)
        tl.store(column + token, tl.load(y + i, mask=i < m, other=0), mask=i < m)
    tl.debug_barrier()


@triton.jit
def _read_sequence(column, tokens, y, m, BLOCK: tl.constexpr):
    for start in range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        token = tl.load(tokens + i, mask=i < m, other=0)
        tl.store(y + i, tl.load(column + token, mask=i < m, other=0), mask=i < m)
    tl.debug_barrier()


@triton.jit(noinline=True)
def _rebuild(
    columns,
    width,
    tokens,
    m,
    inverse,
    stride,
    k,
    lifted,
    r,
    lift,
    budget,
    y,
    p,
    score,
    rough,
    u,
    residual,
    w,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    """Scores and H afresh from the first k sequences; those that depend on others fall out. Returns how many stay."""
    kept = 0
    for j in range(k):
        if kept < j:
            for start in range(0, width, BLOCK):
                i = start + tl.arange(0, BLOCK)
                bits = tl.load(columns + j * width + i, mask=i < width, other=0)
                tl.store(columns + kept * width + i, bits, mask=i < width)
            tl.store(p + kept, tl.load(p + j))
            tl.debug_barrier()
        distance = approach(columns, width, tokens, m, inverse, stride, kept, u, residual, w, BLOCK, TILE)
        if distance > DEPENDENT:
            _read_sequence(columns + kept * width, tokens, y, m, BLOCK)
            value, largest = sequence_score(lifted, r, y, m, lift, budget, BLOCK)
            tl.store(score + kept, value)
            tl.store(rough + kept, largest)
            enter(inverse, stride, kept, u, distance, BLOCK, TILE)
            kept += 1
    return kept


@triton.jit
def active_set(
    s,
    r,
    m,
    budget,
    columns,
    width,
    tokens,
    state,
    n,
    k,
    capacity,
    p,
    vectors,
    inverse,
    z,
    work,
    y,
    trace,
    value,
    max_iterations,
    enough,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    """Optimise from the given sequences and weights (k >= 1 of them); `z` receives the solution on the m tokens.

    Returns (k, iterations, gap, converged, λ), λ the score minus z·y that the support's sequences share. At most
    `capacity` sequences: a row that needs more stops short. Scratch: `vectors` 6·capacity floats, `work` 3n floats.
    """
    score = vectors
    rough = score + capacity
    target = rough + capacity
    unit = target + capacity
    residual = unit + capacity
    u = residual + capacity
    lifted = work
    reduced = lifted + width
    w = reduced + width
    # Scores are counted from what a good sequence earns per token: partial sums then stay near 0 (see the Viterbi).
    _read_sequence(columns, tokens, y, m, BLOCK)
    first, _ = sequence_score(s, r, y, m, 0.0, 0, BLOCK)
    used = 0
    for start in range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        used += tl.sum(tl.load(y + i, mask=i < m, other=0).to(tl.int32), 0)
    lift = first / tl.maximum(used, 1)
    for start in range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(lifted + i, tl.load(s + i, mask=i < m, other=0.0) - lift, mask=i < m)
    tl.debug_barrier()
    k = _rebuild(
        columns, width, tokens, m, inverse, capacity, k, lifted, r, lift, budget, y, p, score, rough, u, residual, w,
        BLOCK, TILE,
    )  # fmt: skip
    _share_out(p, k, BLOCK)

    iterations = 0
    stalled = 0
    converged = 0
    gap = tl.full([], float("inf"), tl.float64)
    best = tl.full([], float("inf"), tl.float64)
    level = tl.full([], 0.0, tl.float64)
    running = iterations < max_iterations
    while running:
        iterations += 1
        # Move to the optimum of the support; sequences whose weight would turn negative leave.
        moving = k > 0
        while moving:
            refinements = tl.where(gap < 1e-4, 1, 0)  # far from the end the digits do not matter yet
            affine_solve(
                columns, width, tokens, m, inverse, capacity, score, k, 1.0, refinements, target, unit, residual, w,
                BLOCK, TILE,
            )  # fmt: skip
            for start in range(0, k, BLOCK):
                j = start + tl.arange(0, BLOCK)
                fall = tl.load(p + j, mask=j < k, other=0.0) - tl.load(target + j, mask=j < k, other=0.0)
                tl.store(residual + j, fall, mask=j < k)
            tl.debug_barrier()
            blocking, ratio = _first_to_leave(p, residual, k, 0.0, BLOCK)
            _move(p, residual, k, tl.minimum(ratio, 1.0), BLOCK)
            moving = ratio < 1.0
            if moving:
                leave(columns, width, inverse, capacity, k, blocking, p, score, rough, u, BLOCK, TILE)
                k -= 1
        _share_out(p, k, BLOCK)
        combine(columns, width, tokens, m, p, k, z, TILE)
        for start in range(0, m, BLOCK):
            i = start + tl.arange(0, BLOCK)
            rest = tl.load(lifted + i, mask=i < m, other=0.0) - tl.load(z + i, mask=i < m, other=0.0)
            tl.store(reduced + i, rest, mask=i < m)
        tl.debug_barrier()
        budgeted_viterbi(reduced, r, m, budget, lift, y, trace, value, BLOCK)
        found, rounding = sequence_score(reduced, r, y, m, lift, budget, BLOCK)
        for start in range(0, k, BLOCK):
            j = start + tl.arange(0, BLOCK)
            rounding = tl.maximum(rounding, tl.max(tl.load(rough + j, mask=j < k, other=0.0), 0))
        size = dot(z, z, m, BLOCK)
        earned = dot(p, score, k, BLOCK)
        level = earned - size
        gap = found - level
        objective = 0.5 * size - earned
        stalled = tl.where(objective < best - 1e-16 * tl.abs(best), 0, stalled + 1)
        best = tl.minimum(best, objective)
        tolerance = 1e-13 + 8.0 * EPS * rounding
        done = (gap <= tl.maximum(tolerance, enough)) | ((stalled >= 10) & (gap <= 1e3 * tolerance))
        converged = done.to(tl.int32)
        running = ~done & (stalled < 100) & (k < capacity) & (iterations < max_iterations)
        if running:
            write_sequence(columns + k * width, state, n, tokens, y, m, BLOCK)
            entering, largest = sequence_score(lifted, r, y, m, lift, budget, BLOCK)
            distance = approach(columns, width, tokens, m, inverse, capacity, k, u, residual, w, BLOCK, TILE)
            weight = 0.0 * gap
            if (distance <= DEPENDENT) | (k > m):
                # Inside the affine hull: the same z can be had with a better score. Exchange it for the sequence that
                # leaves first on the way (a simplex pivot).
                blocking, weight = _first_to_leave(p, u, k, 1e-9, BLOCK)
                _move(p, u, k, weight, BLOCK)
                leave(columns, width, inverse, capacity, k, blocking, p, score, rough, u, BLOCK, TILE)
                k -= 1
                write_sequence(columns + k * width, state, n, tokens, y, m, BLOCK)
                distance = approach(columns, width, tokens, m, inverse, capacity, k, u, residual, w, BLOCK, TILE)
            enter(inverse, capacity, k, u, distance, BLOCK, TILE)
            tl.store(p + k, weight)
            tl.store(score + k, entering)
            tl.store(rough + k, largest)
            tl.debug_barrier()
            k += 1
            if stalled % 8 == 7:  # updates drift
                k = _rebuild(
                    columns, width, tokens, m, inverse, capacity, k, lifted, r, lift, budget, y, p, score, rough, u,
                    residual, w, BLOCK, TILE,
                )  # fmt: skip
                _share_out(p, k, BLOCK)
    if converged > 0:
        affine_solve(
            columns, width, tokens, m, inverse, capacity, score, k, 1.0, 3, target, unit, residual, w, BLOCK, TILE
        )
        for start in range(0, k, BLOCK):
            j = start + tl.arange(0, BLOCK)
            tl.store(p + j, tl.maximum(tl.load(target + j, mask=j < k, other=0.0), 0.0), mask=j < k)
        tl.debug_barrier()
        _share_out(p, k, BLOCK)
        combine(columns, width, tokens, m, p, k, z, TILE)
    for start in range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        # Sums of weights may round out of [0, 1].
        value_in_range = tl.minimum(tl.maximum(tl.load(z + i, mask=i < m, other=0.0), 0.0), 1.0)
        tl.store(z + i, value_in_range, mask=i < m)
    tl.debug_barrier()
    return k, iterations, tl.maximum(gap, 0.0), converged, level + lift * budget
