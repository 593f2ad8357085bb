"""The proximal operator of a weighted total variation on a chain, in Triton: a recursion along each row."""

import torch
import triton
import triton.language as tl

from rationalizer.ops.kernels.rows_cuda import BLOCK, fill, gather_real, plain, scatter_real


@triton.jit
def _clip(knot, slope, shift, at, end, step: tl.constexpr, slope_sum, shift_sum, out):
    """Walk over the knots from `at` to `end` while the derivative is at most −out; return the knot and both sums."""
    position = tl.load(knot + at, mask=(end - at) * step >= 0, other=0.0)
    more = ((end - at) * step >= 0) & (slope_sum * position + shift_sum <= -out)
    while more:
        slope_sum += tl.load(slope + at)
        shift_sum += tl.load(shift + at)
        at += step
        position = tl.load(knot + at, mask=(end - at) * step >= 0, other=0.0)
        more = ((end - at) * step >= 0) & (slope_sum * position + shift_sum <= -out)
    return at, slope_sum, shift_sum


@triton.jit
def total_variation_row(y, weight, n, x, work):
    """Compute argmin ½‖x − y‖² + Σ weight_i |x_i − x_{i+1}|, written to `x`; `work` holds 8n + 6 floats.

    Johnson's dynamic program, as in `total_variation_cpu`.
    """
    knot = work
    slope = knot + 2 * n + 2
    shift = slope + 2 * n + 2
    lower = shift + 2 * n + 2
    upper = lower + n
    left = n
    right = n - 1  # no knots yet
    carried = tl.full([], 0.0, tl.float64)
    one = tl.full([], 1.0, tl.float64)
    for i in range(n - 1):
        value = tl.load(y + i)
        out = tl.load(weight + i)
        low, slope_low, shift_low = _clip(knot, slope, shift, left, right, 1, one, -carried - value, out)
        high, slope_high, shift_high = _clip(knot, slope, shift, right, low, -1, -one, value - carried, out)
        lowest = (-out - shift_low) / slope_low
        highest = (out + shift_high) / -slope_high
        tl.store(lower + i, lowest)
        tl.store(upper + i, highest)
        left = low - 1
        right = high + 1
        tl.store(knot + left, lowest)
        tl.store(slope + left, slope_low)
        tl.store(shift + left, shift_low + out)
        tl.store(knot + right, highest)
        tl.store(slope + right, slope_high)
        tl.store(shift + right, shift_high + out)
        tl.debug_barrier()
        carried = out
    if n > 0:
        last = tl.load(y + n - 1)
        _, slope_low, shift_low = _clip(knot, slope, shift, left, right, 1, one, -carried - last, 0.0 * carried)
        position = tl.where(n > 1, -shift_low / slope_low, last)
        tl.store(x + n - 1, position)
        for back in range(n - 1):
            i = n - 2 - back
            position = tl.minimum(tl.maximum(position, tl.load(lower + i)), tl.load(upper + i))
            tl.store(x + i, position)
    tl.debug_barrier()


@triton.jit
def ends_plateau(x, weight, i, n):
    """Return whether word i is the last of its plateau. With weight 0 equal values are a coincidence, not a plateau."""
    inner = i + 1 < n
    ahead = tl.load(x + i + 1, mask=inner, other=0.0)
    return ~(inner & (tl.load(x + i) == ahead) & (tl.load(weight + i, mask=inner, other=0.0) > 0.0))


@triton.jit
def average_plateaus(x, weight, g, n, h, BLOCK: tl.constexpr):
    """Write the mean of `g` over each plateau of `x` to `h`: the Jacobian of the prox, a projector."""
    start = 0
    total = tl.full([], 0.0, tl.float64)
    for i in range(n):
        total += tl.load(g + i)
        if ends_plateau(x, weight, i, n):
            fill(h, start, i + 1, total / (i + 1 - start), BLOCK)
            start = i + 1
            total = 0.0 * total
    tl.debug_barrier()


@triton.jit(do_not_specialize=["n"])
def _forward_kernel(scores, mask, weight, x, work, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    real = work + row * (11 * n + 6)
    weights = real + n
    solution = weights + n
    count, solvable = gather_real(scores + row * n, mask + row * n, n, real, BLOCK)
    fill(weights, 0, n, tl.load(weight), BLOCK)
    total_variation_row(real, weights, tl.where(solvable, count, 0), solution, solution + n)
    scatter_real(solution, mask + row * n, n, solvable, x + row * n, BLOCK)


@triton.jit(do_not_specialize=["n"])
def _backward_kernel(g, x, mask, weight, h, work, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    real_g = work + row * 4 * n
    real_x = real_g + n
    weights = real_x + n
    real_h = weights + n
    count, _ = gather_real(g + row * n, mask + row * n, n, real_g, BLOCK)
    gather_real(x + row * n, mask + row * n, n, real_x, BLOCK)
    fill(weights, 0, n, tl.load(weight), BLOCK)
    average_plateaus(real_x, weights, real_g, count, real_h, BLOCK)
    scatter_real(real_h, mask + row * n, n, True, h + row * n, BLOCK)


def total_variation(scores, mask, weight):
    rows, n = scores.shape
    scores, mask = plain(scores, mask)
    x = torch.empty_like(scores)
    if scores.numel():
        # A tensor, since Triton would pass a Python float in single precision.
        value, work = scores.new_full((1,), weight), scores.new_empty(rows, 11 * n + 6)
        _forward_kernel[(rows,)](scores, mask, value, x, work, n, BLOCK, num_warps=1)
    return x


def total_variation_backward(g, x, mask, weight):
    rows, n = g.shape
    g, x, mask = plain(g, x, mask)
    h = torch.empty_like(g)
    if g.numel():
        value, work = g.new_full((1,), weight), g.new_empty(rows, 4 * n)
        _backward_kernel[(rows,)](g, x, mask, value, h, work, n, BLOCK, num_warps=1)
    return h
