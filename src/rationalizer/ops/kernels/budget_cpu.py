"""Projection onto {0 ≤ z ≤ 1, L ≤ Σz ≤ B}, and helpers that all row kernels share."""

import numpy as np

from rationalizer.ops.kernels.numba_runtime import jit, reordering
from rationalizer.ops.kernels.sorting_cpu import ascending

SMALLEST = 1e-30  # a multiplier that is not 0
COARSE = 64.0  # above it the spacing of floats, summed over a long row, exceeds the rounding error of z


@jit
def gather_real(values, mask, out):
    """Copy the unmasked entries of one row to the front of `out`; return their number."""
    count = 0
    for i in range(values.shape[0]):
        if mask[i]:
            out[count] = values[i]
            count += 1
    return count


@jit
def scatter_real(values, mask, out):
    """Undo `gather_real`; masked entries become 0."""
    count = 0
    for i in range(out.shape[0]):
        if mask[i]:
            out[i] = values[count]
            count += 1
        else:
            out[i] = 0.0


@jit
def has_negative(values):
    negative = False
    for value in values:  # an array expression would take longer to compile
        negative |= value < 0.0
    return negative


@jit
def is_finite(values):
    difference = 0.0
    for value in values:
        difference += value - value  # NaN for NaN and inf
    return difference == 0.0


@reordering
def _clipped(x, tau):
    """Return Σ clip(x − τ, 0, 1) and the number of terms strictly between 0 and 1."""
    total, free = 0.0, 0
    for value in x:  # without branches, so that the compiler vectorizes it
        z = value - tau
        total += min(max(z, 0.0), 1.0)
        free += np.int64(z > 0.0) & np.int64(z < 1.0)
    return total, free


@jit
def budget_threshold(x, budget):
    """Return the τ ≥ 0 with Σ clip(x − τ, 0, 1) = budget, or 0 if Σ clip(x, 0, 1) ≤ budget.

    Newton steps on a piecewise linear, decreasing function, safeguarded by a bracket. On the last piece a step is
    exact, so the iteration terminates.
    """
    total, free = _clipped(x, 0.0)
    if total <= budget:
        return 0.0
    high = 0.0
    for value in x:
        high = max(high, value)
    low = 0.0
    tau = 0.0
    for _ in range(200):
        excess = total - budget
        if excess > 0.0:
            low = max(low, tau)
        elif excess < 0.0:
            high = min(high, tau)
        else:
            return tau
        step = tau + excess / free if free > 0 else np.inf
        if not (low < step < high):
            # Either rounding has closed the bracket (the step does not move τ) or the piece is flat.
            if free > 0 and abs(step - tau) <= 4e-16 * max(1.0, abs(tau)):
                return step
            step = 0.5 * (low + high)
        if step == tau:
            return tau
        tau = step
        total, free = _clipped(x, tau)
    return tau


@jit
def _clip_below(x, base, total, z):
    """Write clip(x − τ, 0, 1) with the given total to `z`; return τ − base + 1, which must lie between 0 and 1."""
    for i in range(x.shape[0]):
        z[i] = min(x[i] - base + 1.0, 3.0)
    rest = budget_threshold(z, total)
    for i in range(x.shape[0]):
        z[i] = min(max(z[i] - rest, 0.0), 1.0)
    return rest


@jit
def budget_row(x, least, budget, z):
    """Write the projection of `x` onto {0 ≤ z ≤ 1, least ≤ Σz ≤ budget} to `z`; return τ.

    τ is 0 if no bound binds, and not 0 if the bounds are equal. `least` is at most the number of words.
    """
    if budget <= 0:
        z[:] = 0.0
        return 0.0
    if least > 0 and _clipped(x, 0.0)[0] < least:
        # A threshold 1 below the score of rank `least` selects enough words, a threshold at it too few.
        base = x[ascending(x)[x.shape[0] - least]]
        return min(base - 1.0 + _clip_below(x, base, least, z), -SMALLEST)
    tau = budget_threshold(x, budget)
    if tau <= COARSE:
        for i in range(x.shape[0]):
            z[i] = min(max(x[i] - tau, 0.0), 1.0)
    else:
        # τ has too few digits for z. Differences of scores are exact, so measure from the (budget + 1)-th largest
        # score: a threshold 1 below it exceeds the budget, a threshold at it does not, and z = 1 far above it anyway.
        first_out = x.shape[0] - 1 - budget
        _clip_below(x, x[ascending(x)[first_out]], budget, z)
    return SMALLEST if tau == 0.0 and least == budget else tau


@jit
def budget_rows(first, last, scores, mask, least, budget, z, tau):
    n = scores.shape[1]
    real = np.empty(n)
    solution = np.empty(n)
    for row in range(first, last):
        count = gather_real(scores[row], mask[row], real)
        tau[row] = budget_row(real[:count], min(least[row], count), budget[row], solution[:count])
        scatter_real(solution, mask[row], z[row])
