"""Projection onto {0 ≤ z ≤ 1, L ≤ Σz ≤ B} in Triton: the algorithm of `budget_cpu` with parallel sums."""

import torch
import triton
import triton.language as tl

from rationalizer.ops.kernels.rows_cuda import BLOCK, gather_real, plain, read_bounds, scatter_real

SMALLEST = tl.constexpr(1e-30)  # a multiplier that is not 0
COARSE = tl.constexpr(64.0)


@triton.jit
def _clipped_sum(x, n, tau, BLOCK: tl.constexpr):
    """Σ clip(x − τ, 0, 1), and the number of terms strictly inside (0, 1)."""
    total = tl.zeros([BLOCK], tl.float64)
    free = tl.zeros([BLOCK], tl.int32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        z = tl.load(x + i, mask=i < n, other=float("-inf")) - tau
        total += tl.minimum(tl.maximum(z, 0.0), 1.0)
        free += ((z > 0.0) & (z < 1.0)).to(tl.int32)
    return tl.sum(total, 0), tl.sum(free, 0)


@triton.jit
def _largest(x, n, sign, BLOCK: tl.constexpr):
    """Return max(sign · x, 0) over all entries."""
    top = tl.zeros([BLOCK], tl.float64)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        top = tl.maximum(top, sign * tl.load(x + i, mask=i < n, other=0.0))
    return tl.max(top, 0)


@triton.jit
def budget_threshold(x, n, budget, BLOCK: tl.constexpr):
    """Return the τ ≥ 0 with Σ clip(x − τ, 0, 1) = budget, or 0; see `budget_cpu.budget_threshold`."""
    tau = tl.full([], 0.0, tl.float64)
    low = tl.full([], 0.0, tl.float64)
    high = _largest(x, n, 1.0, BLOCK)
    total, free = _clipped_sum(x, n, tau, BLOCK)
    steps = 0
    going = total > budget
    while going:
        excess = total - budget
        low = tl.where(excess > 0.0, tl.maximum(low, tau), low)
        high = tl.where(excess < 0.0, tl.minimum(high, tau), high)
        step = tl.where(free > 0, tau + excess / tl.maximum(free, 1), float("inf"))
        inside = (low < step) & (step < high)
        settled = (free > 0) & (tl.abs(step - tau) <= 4e-16 * tl.maximum(tl.abs(tau), 1.0))
        following = tl.where(inside | settled, step, 0.5 * (low + high))
        following = tl.where(excess == 0.0, tau, following)
        steps += 1
        going = (inside | ~settled) & (following != tau) & (steps < 200)
        tau = following
        total, free = _clipped_sum(x, n, tau, BLOCK)
    return tau


@triton.jit
def _value_of_rank(x, n, rank, sign, BLOCK: tl.constexpr):
    """The (rank + 1)-th largest entry of sign · x, or 0 if it is negative: bisection on the bits, which order positive
    floats."""
    low = tl.full([], 0, tl.int64)
    high = _largest(x, n, sign, BLOCK).to(tl.int64, bitcast=True)
    while low < high:
        middle = low + ((high - low + 1) >> 1)
        above = tl.zeros([BLOCK], tl.int32)
        for start in range(0, n, BLOCK):
            i = start + tl.arange(0, BLOCK)
            bits = (sign * tl.load(x + i, mask=i < n, other=0.0)).to(tl.int64, bitcast=True)
            above += ((bits >= middle) & (i < n)).to(tl.int32)
        enough = tl.sum(above, 0) > rank
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle - 1)
    return low.to(tl.float64, bitcast=True)


@triton.jit
def budget_row(x, n, least, budget, z, BLOCK: tl.constexpr):
    """Write the projection of `x` to `z`; return τ. `least` is at most n."""
    tau = tl.full([], 0.0, tl.float64)
    if budget <= 0:
        for start in range(0, n, BLOCK):
            i = start + tl.arange(0, BLOCK)
            tl.store(z + i, tl.zeros([BLOCK], tl.float64), mask=i < n)
    else:
        bound = budget
        base = 0.0 * tau
        far = 0
        if least > 0:
            total, _ = _clipped_sum(x, n, tau, BLOCK)
            if total < least:
                # Measure from the score of rank `least`, which may be negative.
                far = 1
                bound = least
                base = _value_of_rank(x, n, least - 1, 1.0, BLOCK)
                if base <= 0.0:
                    base = -_value_of_rank(x, n, n - least, -1.0, BLOCK)
        if far == 0:
            tau = budget_threshold(x, n, budget, BLOCK)
            if tau > COARSE:
                # τ has too few digits for z: measure from the (budget + 1)-th largest score, as on the CPU.
                far = 1
                base = _value_of_rank(x, n, budget, 1.0, BLOCK)
        threshold = tau
        source = x
        if far > 0:
            for start in range(0, n, BLOCK):
                i = start + tl.arange(0, BLOCK)
                value = tl.load(x + i, mask=i < n, other=0.0)
                tl.store(z + i, tl.minimum(value - base + 1.0, 3.0), mask=i < n)
            tl.debug_barrier()
            threshold = budget_threshold(z, n, bound, BLOCK)
            source = z
            tau = tl.where(tau > 0.0, tau, tl.minimum(base - 1.0 + threshold, -SMALLEST))
        tau = tl.where((tau == 0.0) & (least == budget), SMALLEST, tau)
        for start in range(0, n, BLOCK):
            i = start + tl.arange(0, BLOCK)
            value = tl.load(source + i, mask=i < n, other=0.0)
            tl.store(z + i, tl.minimum(tl.maximum(value - threshold, 0.0), 1.0), mask=i < n)
    tl.debug_barrier()
    return tau


@triton.jit(do_not_specialize=["n"])
def _budget_kernel(scores, mask, budget, at_least, z, tau, work, n, BOUNDED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    real = work + row * 2 * n
    solution = real + n
    count, solvable = gather_real(scores + row * n, mask + row * n, n, real, BLOCK)
    limit = tl.load(budget + row)
    count, least, solvable = read_bounds(at_least + row, limit, count, solvable, BOUNDED)
    threshold = budget_row(real, count, least, limit, solution, BLOCK)
    tl.store(tau + row, threshold)
    scatter_real(solution, mask + row * n, n, solvable, z + row * n, BLOCK)


def budget(scores, mask, budget, at_least=None):
    rows, n = scores.shape
    scores, mask, budget, bound = plain(scores, mask, budget, budget if at_least is None else at_least)
    z, tau = torch.empty_like(scores), scores.new_zeros(rows)
    if scores.numel():
        work = scores.new_empty(rows, 2 * n)
        bounded = at_least is not None
        _budget_kernel[(rows,)](scores, mask, budget, bound, z, tau, work, n, bounded, BLOCK, num_warps=1)
    return z, tau
