"""Helpers of the Triton row kernels: one program solves one row, with its words gathered in scratch memory.

Kernels mix scalar code (recursions along a row) with vector code (`BLOCK` words at a time). Between a store by one lane
and a load by another there must be a barrier; functions here that store end with one. Launch shapes depend on the
shapes of the inputs only and nothing is read back, so calls neither synchronize nor change under CUDA graphs.
"""

import torch
import triton
import triton.language as tl

BLOCK = 128  # words per vector step; a constant, so that all lengths share one compiled kernel
LARGEST = tl.constexpr(1.7976931348623157e308)


@triton.jit
def gather_real(values, mask, n, out, BLOCK: tl.constexpr):
    """Copy the unmasked entries of one row to the front of `out`; return their number, and whether all are finite."""
    count = 0
    bad = 0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        real = tl.load(mask + i, mask=i < n, other=0) != 0
        value = tl.load(values + i, mask=real, other=0.0)
        ones = real.to(tl.int32)
        tl.store(out + count + tl.cumsum(ones, 0) - 1, value, mask=real)
        bad += tl.sum((real & ~(tl.abs(value) <= LARGEST)).to(tl.int32), 0)
        count += tl.sum(ones, 0)
    tl.debug_barrier()
    return count, bad == 0


@triton.jit
def read_bounds(at_least, budget, count, solvable, BOUNDED: tl.constexpr):
    """Return the number of words (0 in a row without a solution), the lower bound and whether the row has a solution.

    `at_least` points to the lower bound of the row, and is not read unless `BOUNDED`.
    """
    solvable = solvable & (budget >= 0)
    least = 0 * budget
    if BOUNDED:
        least = tl.load(at_least)
        solvable = solvable & (least >= 0) & (least <= budget)
    count = tl.where(solvable, count, 0)
    return count, tl.minimum(least, count), solvable


@triton.jit
def gather_edges(transition, mask, n, out, BLOCK: tl.constexpr):
    """Copy the transitions of neighbouring words to `out`: for neighbours a < b, the transition at a. Return whether
    all are finite, and whether any is negative."""
    count = 0
    bad = 0
    negative = 0
    real_count = 0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        real_count += tl.sum((tl.load(mask + i, mask=i < n, other=0) != 0).to(tl.int32), 0)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        ones = (tl.load(mask + i, mask=i < n, other=0) != 0).to(tl.int32)
        position = count + tl.cumsum(ones, 0) - 1
        real = (ones > 0) & (position < real_count - 1)
        value = tl.load(transition + i, mask=real, other=0.0)
        tl.store(out + position, value, mask=real)
        bad += tl.sum((real & ~(tl.abs(value) <= LARGEST)).to(tl.int32), 0)
        negative += tl.sum((real & (value < 0.0)).to(tl.int32), 0)
        count += tl.sum(ones, 0)
    tl.debug_barrier()
    return bad == 0, negative > 0


@triton.jit
def scatter_real(values, mask, n, solvable, out, BLOCK: tl.constexpr):
    """Undo `gather_real`; masked entries become 0, and words NaN if the row has no solution."""
    tl.debug_barrier()
    count = 0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        ones = (tl.load(mask + i, mask=i < n, other=0) != 0).to(tl.int32)
        position = count + tl.cumsum(ones, 0) - 1
        value = tl.load(values + position, mask=(ones > 0) & solvable, other=float("nan"))
        tl.store(out + i, tl.where(ones > 0, value, 0.0), mask=i < n)
        count += tl.sum(ones, 0)


@triton.jit
def scatter_edges(values, mask, n, real_count, solvable, out, BLOCK: tl.constexpr):
    """Undo `gather_edges` for a row of `real_count` words; transitions without neighbours become 0."""
    tl.debug_barrier()
    count = 0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        ones = (tl.load(mask + i, mask=i < n, other=0) != 0).to(tl.int32)
        position = count + tl.cumsum(ones, 0) - 1
        real = (ones > 0) & (position < real_count - 1)
        value = tl.load(values + position, mask=real & solvable, other=float("nan"))
        tl.store(out + i, tl.where(real, value, 0.0), mask=i < n - 1)
        count += tl.sum(ones, 0)


@triton.jit
def fill(out, first, last, value, BLOCK: tl.constexpr):
    """Set out[first:last] to `value`."""
    for start in range(first, last, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out + i, tl.zeros([BLOCK], tl.float64) + value, mask=i < last)
    tl.debug_barrier()


@triton.jit
def copy(source, target, n, BLOCK: tl.constexpr):
    """Copy the first `n` entries."""
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(target + i, tl.load(source + i, mask=i < n), mask=i < n)


def plain(*tensors):
    """Return the tensors as the kernels read them: contiguous, masks as bytes."""
    tensors = tuple(t.contiguous() for t in tensors)
    return tuple(t.view(torch.uint8) if t.dtype == torch.bool else t for t in tensors)


SCRATCH_BYTES = 2**28  # for all programs of a launch together


def programs(rows, bytes_each):
    """The number of programs, each with its own scratch memory: at most one per row, and enough to fill a GPU."""
    return max(1, min(rows, 1024, SCRATCH_BYTES // bytes_each))
