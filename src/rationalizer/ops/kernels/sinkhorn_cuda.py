"""Entropic transport on CUDA: one program per matrix runs all iterations of `sinkhorn`, without the host."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from rationalizer.ops.kernels.matching_cuda import solve_free
from rationalizer.ops.kernels.matching_map_cuda import INFINITY, entries, power_of_2, warps

_kernel = triton.jit(do_not_specialize=["m", "n", "max_iterations"])


def tile_shape(values: Tensor) -> tuple[int, int]:
    _, m, n = values.shape
    return power_of_2(m), power_of_2(n)


@triton.jit
def scaled_plan(kernel, potential, row_mass):
    """The plan for the potential of the columns, scaled to the masses of the rows; and the potential of the rows."""
    shifted = kernel + potential[None, :]
    high = tl.max(shifted, 1)
    high = tl.where(high == -INFINITY, 0.0, high)
    part = tl.exp(shifted - high[:, None])
    total = tl.sum(part, 1)
    live = (row_mass > 0.0) & (total > 0.0)
    factor = tl.where(live, row_mass / tl.where(live, total, 1.0), 0.0)
    row_potential = tl.where(live, tl.log(tl.where(live, factor, 1.0)) - high, 0.0)
    return part * factor[:, None], row_potential


@triton.jit
def laplacian(plan, COLUMNS: tl.constexpr):
    """The derivative of the column sums in the potential, at fixed row sums; singular once per connected component."""
    j = tl.arange(0, COLUMNS)
    rows = tl.sum(plan, 1)
    root = plan / tl.sqrt(tl.where(rows > 0.0, rows, 1.0))[:, None]
    return tl.where(j[:, None] == j[None, :], tl.sum(plan, 0)[:, None], 0.0) - tl.dot(
        tl.trans(root), root, out_dtype=tl.float64
    )


@_kernel
def sinkhorn_kernel(
    kernel,
    row_mass,
    column_mass,
    plan_out,
    iterations,
    gap_out,
    max_iterations,
    tolerance,
    m,
    n,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    pair = tl.program_id(0)
    i = tl.arange(0, ROWS)
    j = tl.arange(0, COLUMNS)
    where, present = entries(pair, m, n, ROWS, COLUMNS)
    log_kernel = tl.load(kernel + where, mask=present, other=-INFINITY)
    rows = tl.load(row_mass + pair * m + i, mask=i < m, other=0.0)
    columns = tl.load(column_mass + pair * n + j, mask=j < n, other=0.0)
    potential = tl.zeros((COLUMNS,), tl.float64)
    plan, row_potential = scaled_plan(log_kernel, potential, rows)
    missing = columns - tl.sum(plan, 0)
    gap = tl.max(tl.abs(missing), 0)
    steps = tl.zeros((), tl.int32)
    free = (columns > 0.0).to(tl.int32)
    going = (gap > tolerance) & (max_iterations > 0)
    while going:
        # The best of Sinkhorn's update and Newton steps of three lengths.
        shifted = log_kernel + row_potential[:, None]
        high = tl.max(shifted, 0)
        high = tl.where(high == -INFINITY, 0.0, high)
        total = tl.sum(tl.exp(shifted - high[None, :]), 0)
        live = (columns > 0.0) & (total > 0.0)
        update = tl.where(live, tl.log(tl.where(live, columns / tl.where(live, total, 1.0), 1.0)) - high, 0.0)
        ridge = 1e-3 * tl.sum(tl.abs(missing), 0) + 1e-14
        newton = solve_free(laplacian(plan, COLUMNS), ridge, free, missing, n, 0.0, COLUMNS)
        start = potential
        best = tl.full((), INFINITY, tl.float64)
        length = tl.full((), 4.0, tl.float64)
        while length > 0.05:
            candidate = tl.where(length > 1.0, update, start + length * newton)
            trial, trial_potential = scaled_plan(log_kernel, candidate, rows)
            error = columns - tl.sum(trial, 0)
            size = tl.sum(tl.abs(error), 0)
            if size < best:
                best = size
                potential = candidate
                plan = trial
                row_potential = trial_potential
                missing = error
            length *= 0.25
        gap = tl.max(tl.abs(missing), 0)
        steps += 1
        going = (gap > tolerance) & (steps < max_iterations)
    tl.store(plan_out + where, plan, mask=present)
    tl.store(iterations + pair, steps.to(tl.int64))
    tl.store(gap_out + pair, gap)


@_kernel
def sinkhorn_backward_kernel(plan, g, out, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    pair = tl.program_id(0)
    j = tl.arange(0, COLUMNS)
    where, present = entries(pair, m, n, ROWS, COLUMNS)
    mass = tl.load(plan + where, mask=present, other=0.0)
    gradient = tl.load(g + where, mask=present, other=0.0)
    rows = tl.sum(mass, 1)
    share = mass / tl.where(rows > 0.0, rows, 1.0)[:, None]
    flow = mass * gradient
    rhs = tl.sum(flow, 0) - tl.sum(share * tl.sum(flow, 1)[:, None], 0)
    least = 1e-13 * tl.max(tl.sum(mass, 0), 0)
    v = solve_free(laplacian(mass, COLUMNS), 0.0, (j < n).to(tl.int32), rhs, n, least, COLUMNS)
    u = tl.sum(share * (gradient - v[None, :]), 1)
    tl.store(out + where, mass * (gradient - u[:, None] - v[None, :]), mask=present)


def iterate(
    kernel: Tensor, row_mass: Tensor, column_mass: Tensor, max_iterations: int, tolerance: float
) -> tuple[Tensor, Tensor, Tensor]:
    pairs, m, n = kernel.shape
    plan = torch.empty_like(kernel, memory_format=torch.contiguous_format)
    iterations = torch.zeros(pairs, dtype=torch.int64, device=kernel.device)
    gap = kernel.new_zeros(pairs)
    if pairs:
        rows, columns = tile_shape(kernel)
        stop = tolerance * (1 - 1e-6)  # Triton passes floats in single precision, which may round up
        with torch.cuda.device_of(kernel):
            sinkhorn_kernel[(pairs,)](
                kernel.contiguous(), row_mass.contiguous(), column_mass.contiguous(), plan, iterations, gap,
                max_iterations, stop, m, n, ROWS=rows, COLUMNS=columns, num_warps=warps(rows, columns),
            )  # fmt: skip
    return plan, iterations, gap


def backward(plan: Tensor, g: Tensor) -> Tensor:
    pairs, m, n = plan.shape
    out = torch.empty_like(plan, memory_format=torch.contiguous_format)
    if pairs:
        rows, columns = tile_shape(plan)
        with torch.cuda.device_of(plan):
            sinkhorn_backward_kernel[(pairs,)](
                plan.contiguous(), g.contiguous(), out, m, n,
                ROWS=rows, COLUMNS=columns, num_warps=warps(rows, columns),
            )  # fmt: skip
    return out
