"""The proximal operator of a weighted total variation on a chain, in linear time."""

import numpy as np

from rationalizer.ops.kernels.budget_cpu import gather_real, scatter_real
from rationalizer.ops.kernels.numba_runtime import jit


@jit
def total_variation_row(y, weight, x, work):
    """Compute argmin ½‖x − y‖² + Σ weight_i |x_i − x_{i+1}|, written to `x`; `work` is scratch of shape (5, 2n + 2).

    Johnson's dynamic program: messages along the chain have piecewise linear derivatives, stored as knots in the middle
    of an array (position, change of slope, change of intercept); each step clips the derivative to ±weight. All
    positions of a plateau get the same float, so plateaus can be recognised by equality.
    """
    n = y.shape[0]
    if n == 0:
        return
    if n == 1:
        x[0] = y[0]
        return
    knot, slope, shift, lower, upper = work[0], work[1], work[2], work[3], work[4]
    left, right = n, n - 1  # no knots yet
    carried = 0.0  # the weight of the previous edge
    for i in range(n):
        out = weight[i] if i < n - 1 else 0.0
        slope_low, shift_low = 1.0, -carried - y[i]
        low = left
        while low <= right and slope_low * knot[low] + shift_low <= -out:
            slope_low += slope[low]
            shift_low += shift[low]
            low += 1
        if i == n - 1:
            x[i] = -shift_low / slope_low
            break
        slope_high, shift_high = -1.0, -carried + y[i]
        high = right
        while high >= low and -slope_high * knot[high] - shift_high >= out:
            slope_high += slope[high]
            shift_high += shift[high]
            high -= 1
        lower[i] = (-out - shift_low) / slope_low
        upper[i] = (out + shift_high) / -slope_high
        left, right = low - 1, high + 1
        knot[left], slope[left], shift[left] = lower[i], slope_low, shift_low + out
        knot[right], slope[right], shift[right] = upper[i], slope_high, shift_high + out
        carried = out
    for i in range(n - 2, -1, -1):
        x[i] = min(max(x[i + 1], lower[i]), upper[i])


@jit
def fused(now, after, weight):
    """Return whether neighbours with these values are on one plateau. Equal values with weight 0 are not a plateau.

    Takes numbers, not arrays: a call with arrays is not inlined and takes longer than all else.
    """
    return now == after and weight > 0.0


@jit
def average_plateaus(x, weight, g, h):
    """Write the mean of `g` over each plateau of `x` to `h`: the Jacobian of the prox, a projector."""
    n = x.shape[0]
    start = 0
    while start < n:
        stop, here = start, x[start]
        total = g[start]
        while stop + 1 < n and fused(here, x[stop + 1], weight[stop]):
            stop += 1
            total += g[stop]
        mean = total / (stop + 1 - start)
        for i in range(start, stop + 1):
            h[i] = mean
        start = stop + 1


@jit
def total_variation_rows(first, last, scores, mask, weight, x):
    n = scores.shape[1]
    real = np.empty(n)
    weights = np.full(n, weight)
    solution = np.empty(n)
    work = np.empty((5, 2 * n + 2))
    for row in range(first, last):
        count = gather_real(scores[row], mask[row], real)
        total_variation_row(real[:count], weights[: max(count - 1, 0)], solution[:count], work)
        scatter_real(solution, mask[row], x[row])


@jit
def total_variation_backward_rows(first, last, g, x, mask, weight, h):
    n = g.shape[1]
    real_g = np.empty(n)
    real_x = np.empty(n)
    real_h = np.empty(n)
    weights = np.full(n, weight)
    for row in range(first, last):
        count = gather_real(g[row], mask[row], real_g)
        gather_real(x[row], mask[row], real_x)
        average_plateaus(real_x[:count], weights, real_g[:count], real_h[:count])
        scatter_real(real_h, mask[row], h[row])
