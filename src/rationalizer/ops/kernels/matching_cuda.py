"""Projection onto the (budgeted) matching polytope on CUDA: one program per matrix, entirely in registers.

The method is that of `matching_cpu`, step for step: it starts at the dual of the assignment problem, and makes Newton
steps on the dual of the short side, with a ridge at first and without one near the end. Loops over nodes are vector
operations here; the system of a step is solved by Gauss–Jordan elimination, whose pivots are the only serial
part. The last column of the tile, beyond the short nodes, is for the budget: y = (b, c).
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from rationalizer.ops._inputs import lower_bounds
from rationalizer.ops._matrix_inputs import is_solvable
from rationalizer.ops.kernels.matching_map_cuda import (
    INFINITY,
    best_matching,
    bits,
    holds,
    launch,
    pair_kernel,
    read_pair,
    scatter,
    tile_shape,
    write_pair,
)
from rationalizer.ops.kernels.matching_open_rows_cpu import solve_matchings
from rationalizer.ops.kernels.open_rows_cuda import solve_on_cpu

TOLERANCE = tl.constexpr(1e-12)
NEAR = tl.constexpr(1e-5)
FIRST_RIDGE = tl.constexpr(1e-3)
LEAST_RIDGE = tl.constexpr(1e-7)
DEPENDENT = tl.constexpr(1e-9)


@triton.jit
def threshold(x, target, floor, start, AXIS: tl.constexpr):
    """Return the t ≥ floor with Σ max(x − t, 0) = target along AXIS, or floor if the sum at floor is lower.

    Newton steps from `start`: the sum is convex and decreasing in t, so after one step t is left of the root and
    then only grows; if it does not, only rounding error is left.
    """
    high = tl.max(x, AXIS)
    t = tl.maximum(tl.where(start < high, start, high - target), floor)
    unsettled = (high > floor).to(tl.int32)
    t = tl.where(unsettled > 0, t, floor)
    steps = tl.max(unsettled, 0) - 1
    going = steps >= 0
    while going:
        part = x - tl.expand_dims(t, AXIS)
        count = tl.sum((part > 0.0).to(tl.float64), AXIS)
        excess = tl.sum(tl.maximum(part, 0.0), AXIS) - target
        step = tl.maximum(t + excess / tl.maximum(count, 1.0), floor)
        settled = (step == t) | ((step < t) & (steps > 0))
        t = tl.where(unsettled > 0, step, t)
        unsettled = tl.where(settled, 0, unsettled)
        steps += 1
        going = (tl.max(unsettled, 0) > 0) & (steps < 200)
    return t


@triton.jit
def plus(a, b):
    """Return a + b and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@triton.jit
def split(y, short, SHORT: tl.constexpr):
    """Split y = (b, c) into the part of the short nodes, 0 elsewhere, and that of the budget."""
    j = tl.arange(0, SHORT)
    return tl.where(j < short, y, 0.0), tl.sum(tl.where(j == short, y, 0.0), 0)


@triton.jit
def dual(s, y, target, a_floor, a, short, SHORT: tl.constexpr):
    """Return the dual objective at y, its minimizer a (from the guess `a`), the primal point and its sums."""
    j = tl.arange(0, SHORT)
    b, c = split(y, short, SHORT)
    x = s - b[None, :] - c
    a = threshold(x, 1.0, a_floor, a, 1)
    z = tl.maximum(x - a[:, None], 0.0)
    sums = tl.sum(z, 0)
    value = tl.sum(a, 0) + 0.5 * tl.sum(tl.sum(z * z, 0), 0) + tl.sum(target * y, 0)
    return value, a, z, tl.where(j == short, tl.sum(sums, 0), sums)


@triton.jit
def curvature(z, tight, short, SHORT: tl.constexpr):
    """Return the Hessian of the dual in y on the current piece."""
    j = tl.arange(0, SHORT)
    count = tl.sum((z > 0.0).to(tl.float64), 1)
    loose = (tight == 0).to(tl.float64)
    # A tight node with one entry cannot move: its contribution is exactly 0.
    moves = (z > 0.0).to(tl.float64) * tl.where((tight > 0) & (count == 1.0), 0.0, 1.0)[:, None]
    mean = moves * tl.where(tight > 0, 1.0 / tl.maximum(count, 1.0), 0.0)[:, None]
    diagonal = tl.sum(moves, 0)
    border = tl.sum(moves * loose[:, None], 0)
    diagonal = tl.where(j == short, tl.sum(border, 0), diagonal)
    h = tl.where(j[:, None] == j[None, :], diagonal[:, None], 0.0)
    h -= tl.dot(tl.trans(mean), moves, out_dtype=tl.float64)
    h = tl.where((j[:, None] == short) & (j[None, :] < short), border[None, :], h)
    return tl.where((j[:, None] < short) & (j[None, :] == short), border[:, None], h)


@triton.jit
def solve_free(h, ridge, free, rhs, size, least, SHORT: tl.constexpr):
    """Return (h + ridge)⁻¹ rhs on the free variables; 0 elsewhere, and for dependent equations (pivots up to `least`).

    Gauss–Jordan elimination. The part not yet eliminated stays symmetric, so the pivot's column is also its row;
    columns are not read again once eliminated, and may hold anything.
    """
    j = tl.arange(0, SHORT)
    f = tl.where(j[:, None] == j[None, :], h + ridge, h)
    x = tl.where(free > 0, rhs, 0.0)
    k = tl.zeros((), tl.int32)
    while k < size:
        here = j == k
        column = tl.sum(tl.where(here[None, :], f, 0.0), 1)
        pivot = tl.sum(tl.where(here & (free > 0), column, 0.0), 0)
        usable = pivot > least
        inverse = tl.where(usable, 1.0 / tl.where(usable, pivot, 1.0), 0.0)
        row = column * inverse
        known = tl.sum(tl.where(here, x, 0.0), 0)
        f = tl.where(here[:, None], row[None, :], f - column[:, None] * row[None, :])
        x = tl.where(here, known * inverse, x - row * known)
        k += 1
    return tl.where(free > 0, x, 0.0)


@triton.jit
def bounded_step(h, ridge, gradient, room, free, passes, size, SHORT: tl.constexpr):
    """Minimize gradient·d + ½ d'(h + ridge)d s.t. d ≥ −room by an active-set method, from the guess `free`."""
    j = tl.arange(0, SHORT)
    step = tl.zeros((SHORT,), tl.float64)
    going = passes > 0
    while going:
        step = tl.where((free > 0) | (j >= size), 0.0, -room)
        rhs = -gradient - tl.sum(h * step[None, :], 1)
        step += solve_free(h, ridge, free, rhs, size, DEPENDENT, SHORT)
        slope = gradient + ridge * step + tl.sum(h * step[None, :], 1)
        wrong = (tl.where(free > 0, step < -room, slope < 0.0) & (j < size)).to(tl.int32)
        free = free ^ wrong
        passes -= 1
        going = (passes > 0) & (tl.max(wrong, 0) > 0)
    return step


@triton.jit
def optimality(sums, target, room, size, SHORT: tl.constexpr):
    """Return the gradient of the dual, the free variables, and the largest violation."""
    gradient = target - sums
    free = (((room > 0.0) | (gradient < 0.0)) & (tl.arange(0, SHORT) < size)).to(tl.int32)
    return gradient, free, tl.max(tl.where(free > 0, tl.abs(gradient), 0.0), 0)


@triton.jit
def newton(s, target, a, y, a_floor, y_floor, short, size, max_iterations, SHORT: tl.constexpr):
    """Minimize the dual from (a, y) over the first `size` entries of y; returns (z, iterations, violation)."""
    value, a, z, sums = dual(s, y, target, a_floor, a, short, SHORT)
    gradient, free, violation = optimality(sums, target, y - y_floor, size, SHORT)
    ridge = tl.full((), FIRST_RIDGE, tl.float64)
    centred = violation < 0.0
    polish = violation >= 0.0
    iterations = tl.zeros((), tl.int32)
    going = (violation > 1e-15) & (max_iterations > 0)
    while going:
        iterations += 1
        polishing = polish & (violation < NEAR)
        if polishing & (not centred):
            # Move the origin of the multipliers to (a, y): the remainders are small and keep their digits.
            b, c = split(y, short, SHORT)
            s = s - b[None, :] - c - a[:, None]
            a_floor -= a
            y_floor -= y
            a = tl.zeros_like(a)
            y = tl.zeros_like(y)
            centred = polishing
        b, c = split(y, short, SHORT)
        z = tl.maximum(s - b[None, :] - c - a[:, None], 0.0)
        h = curvature(z, (a > a_floor).to(tl.int32), short, SHORT)
        passes = tl.where(polishing, 1, 10)
        used = tl.where(polishing, 0.0, ridge)
        step = bounded_step(h, used, gradient, y - y_floor, free, passes, size, SHORT)
        trial_y = tl.maximum(y + step, y_floor)
        trial_value, trial_a, _, sums = dual(s, trial_y, target, a_floor, a, short, SHORT)
        trial_gradient, trial_free, trial_violation = optimality(sums, target, trial_y - y_floor, size, SHORT)
        moves = trial_y - y
        before = tl.sum(gradient * moves, 0)
        after = tl.sum(trial_gradient * moves, 0)
        # A slope that still points downhill proves descent even if the values differ by rounding only.
        descends = (after <= 0.0) | (trial_value <= value + 1e-4 * before)
        moved = tl.where(polishing, trial_violation <= 0.1 * violation, descends)
        stuck = polishing & (not moved) & (violation <= TOLERANCE)
        if moved:
            y = trial_y
            a = trial_a
            value = trial_value
            violation = trial_violation
            gradient = trial_gradient
            free = trial_free
        eased = tl.maximum(0.1 * ridge, LEAST_RIDGE)
        ridge = tl.where(polishing, ridge, tl.where(moved, eased, 8.0 * ridge))
        polish = moved | (polish & (not polishing))
        going = (violation > 1e-15) & (iterations < max_iterations) & (ridge < 1e12) & (not stuck)
    b, c = split(y, short, SHORT)
    return tl.maximum(s - b[None, :] - c - a[:, None], 0.0), iterations, violation


@pair_kernel
def matching_kernel(
    scores,
    row_mask,
    column_mask,
    budget,
    z_out,
    out,
    iterations,
    violation,
    rows_exact,
    columns_exact,
    max_iterations,
    temperature,
    scratch,
    m,
    n,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    LONG: tl.constexpr,
    SHORT: tl.constexpr,
):
    pair = tl.program_id(0)
    scratch += pair.to(tl.int64) * LONG * SHORT
    s, long, short, limit, transposed, invalid = read_pair(
        scores, row_mask, column_mask, budget, temperature.to(tl.float64, bitcast=True), scratch, pair, m, n,
        rows_exact, columns_exact, ROWS, COLUMNS, LONG, SHORT,
    )  # fmt: skip
    i = tl.arange(0, LONG)
    j = tl.arange(0, SHORT)
    long_exact = tl.where(transposed, columns_exact, rows_exact) > 0
    short_exact = tl.where(transposed, rows_exact, columns_exact) > 0
    empty = limit == 0
    budgeted = limit < short
    partner, u, y, level = best_matching(s, scratch, long, short, limit, long_exact | short_exact, LONG, SHORT)
    level = tl.where(empty, 0.0, level)
    a = tl.sum(tl.where(partner[None, :] == i[:, None], u[None, :], 0.0), 1)
    paired = tl.sum((partner[None, :] == i[:, None]).to(tl.int32), 1)
    a = tl.where(paired > 0, a, level)
    # With long_exact, (a, y) is dual feasible, and the level may have any sign.
    lower = tl.where(long_exact, 0.0, level)
    a = tl.where(i < long, a - lower, 0.0)
    c = tl.where(budgeted, lower, 0.0)
    y = tl.where(j < short, y + tl.where(budgeted, 0.0, lower), 0.0)
    # Rounded once: scores of 1e5 cancel to numbers of order one.
    inside = (i[:, None] < long) & (j[None, :] < short)
    s, e1 = plus(tl.where(inside, s, 0.0), -a[:, None])
    s, e2 = plus(s, -y[None, :])
    s, e3 = plus(s, -c)
    s = tl.where(inside, s + (e1 + e2 + e3), -INFINITY)
    a_floor = tl.where(long_exact & (i < long), -INFINITY, -a)
    y_floor = tl.where(short_exact & (j < short), -INFINITY, -y)
    y_floor = tl.where(j == short, -c, y_floor)
    # With the duals of the linear program all reduced scores are at most 0, where there is no curvature: minimize over
    # the total, then over the short side, then (in `newton`) over the long one.
    target = tl.where(j < short, 1.0, tl.where(j == short, limit.to(tl.float64), 0.0))
    total_floor = tl.where(budgeted, -c, INFINITY) + tl.zeros((1,), tl.float64)
    flat = tl.reshape(s, (1, LONG * SHORT))
    c = tl.sum(threshold(flat, limit.to(tl.float64), total_floor, tl.zeros((1,), tl.float64), 1), 0)
    c = tl.where(budgeted, c, 0.0)
    y = threshold(s - c, 1.0, y_floor, tl.zeros((SHORT,), tl.float64), 0)
    y = tl.where(j < short, y, tl.where(j == short, c, 0.0))
    size = tl.where(budgeted, short + 1, short)
    steps = tl.where(empty, 0, max_iterations)
    z, done, worst = newton(s, target, tl.zeros((LONG,), tl.float64), y, a_floor, y_floor, short, size, steps, SHORT)
    # An entry above 0 by rounding only is not in the support.
    z = tl.where((z < TOLERANCE) | empty, 0.0, z)
    tl.store(iterations + pair, done.to(tl.int64))
    tl.store(violation + pair, tl.where(invalid, float("nan"), tl.where(empty, 0.0, worst)))
    z = scatter(z, invalid, row_mask, column_mask, scratch, pair, m, n, ROWS, COLUMNS, LONG, SHORT)
    write_pair(z, z_out, pair, m, n, ROWS, COLUMNS)
    write_pair(z, out, pair, m, n, ROWS, COLUMNS)


def solve(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    rows_exact: bool,
    columns_exact: bool,
    max_iterations: int,
    temperature: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Z in the dtype of the scores and in float64 (one tensor if these are equal), the iterations and the violations.

    `scores` (..., m, n) may have any floating dtype; masks and budget are flat, as in the custom op.
    """
    z = torch.empty(scores.shape, dtype=torch.float64, device=scores.device)
    out = z if scores.dtype == torch.float64 else torch.empty(scores.shape, dtype=scores.dtype, device=scores.device)
    iterations, violation = torch.empty_like(budget), torch.empty_like(budget, dtype=torch.float64)
    if scores.numel():
        tensors = (scores.contiguous(), row_mask.contiguous(), column_mask.contiguous(), budget.contiguous())
        options = (int(rows_exact), int(columns_exact), max_iterations, bits(temperature))
        shape = (budget.shape[0], *scores.shape[-2:])
        launch(matching_kernel, (*tensors, z, out, iterations, violation, *options), shape, scores.device)
        return out, z, iterations, violation
    return out, z, iterations.zero_(), violation.zero_()


def matching(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    allowed: Tensor | None,
    rows_exact: bool,
    columns_exact: bool,
    total_exact: bool,
    max_iterations: int,
    at_least: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    sides, exact = (row_mask, column_mask), (rows_exact, columns_exact, total_exact)
    constrained = allowed is not None or at_least is not None or total_exact
    if constrained or not holds(tile_shape(*scores.shape[1:]), scores.device):
        return _solve_on_cpu(scores, sides, budget, allowed, exact, max_iterations, at_least)
    _, z, iterations, violation = solve(scores, *sides, budget, *exact[:2], max_iterations, 1.0)
    return z, iterations, violation


def _solve_on_cpu(
    scores: Tensor, sides: tuple[Tensor, Tensor], budget: Tensor, allowed: Tensor | None,
    exact: tuple[bool, bool, bool], max_iterations: int, at_least: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Matrices without a solution are NaN; they are solved as empty ones."""
    solvable = is_solvable(scores, *sides, budget, allowed, *exact, at_least)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    solved_sides = (mask & solvable[:, None] for mask in sides)
    bounds = lower_bounds(budget, at_least), budget.clamp(min=0)
    numbers = (*scores.shape[1:], *map(int, exact), max_iterations)
    outputs = (scores, budget, scores.flatten(1).sum(-1))
    z, iterations, gap = solve_on_cpu(solve_matchings, (scores, *solved_sides, *bounds), outputs, *numbers)
    lost = ~solvable[:, None, None] & sides[0][:, :, None] & sides[1][:, None, :]
    return z.masked_fill(lost, torch.nan), iterations, gap.masked_fill(~solvable, torch.nan)
