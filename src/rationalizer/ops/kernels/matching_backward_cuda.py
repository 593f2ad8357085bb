"""The Jacobian of the matching layer on CUDA: the projector onto the directions of the face, as on the CPU."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from rationalizer.ops._inputs import lower_bounds
from rationalizer.ops.kernels.matching_cuda import DEPENDENT, curvature, solve, solve_free
from rationalizer.ops.kernels.matching_map_cuda import (
    bits,
    entries,
    gather,
    holds,
    launch,
    pair_kernel,
    read_pair,
    scatter,
    tile_indices,
    tile_shape,
    write_pair,
)
from rationalizer.ops.kernels.matching_open_rows_cpu import project_matchings
from rationalizer.ops.kernels.open_rows_cuda import solve_on_cpu

TIGHT = tl.constexpr(1e-9)


@triton.jit
def subtract_row_means(z, g, weight, tight):
    """Return g − weight_j, minus its row mean in tight rows, on the support of z; 0 elsewhere."""
    support = z > 0.0
    out = tl.where(support, g - weight[None, :], 0.0)
    count = tl.maximum(tl.sum(support.to(tl.float64), 1), 1.0)
    mean = tl.where(tight > 0, tl.sum(out, 1) / count, 0.0)
    return tl.where(support, out - mean[:, None], 0.0)


@pair_kernel
def matching_backward_kernel(
    z,
    g,
    row_mask,
    column_mask,
    budget,
    out,
    rows_exact,
    columns_exact,
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
    face, long, short, limit, transposed, invalid = read_pair(
        z, row_mask, column_mask, budget, 1.0, scratch, pair, m, n,
        rows_exact, columns_exact, ROWS, COLUMNS, LONG, SHORT,
    )  # fmt: skip
    position, unmasked, _, _ = tile_indices(row_mask, column_mask, pair, m, n, ROWS, COLUMNS, SHORT)
    where, _ = entries(pair, m, n, ROWS, COLUMNS)
    gradient = tl.load(g + where, mask=unmasked, other=0.0).to(tl.float64)
    gradient = gather(gradient, position, unmasked, scratch, long, short, LONG, SHORT)
    i = tl.arange(0, LONG)
    j = tl.arange(0, SHORT)
    long_exact = tl.where(transposed, columns_exact, rows_exact) > 0
    short_exact = tl.where(transposed, rows_exact, columns_exact) > 0
    mass = tl.maximum(face, 0.0)
    sums = tl.sum(mass, 0)
    sums = tl.where(j == short, tl.sum(sums, 0), sums)
    bound = tl.where(j == short, limit.to(tl.float64), 1.0)
    tight = ((long_exact | (tl.sum(mass, 1) - 1.0 > -TIGHT)) & (i < long)).to(tl.int32)
    fixed = ((sums - bound > -TIGHT) | (short_exact & (j < short))).to(tl.int32)
    centred = subtract_row_means(face, gradient, tl.zeros((SHORT,), tl.float64), tight)
    rhs = tl.sum(centred, 0)
    rhs = tl.where(j == short, tl.sum(rhs, 0), rhs)
    h = curvature(face, tight, short, SHORT)
    weight = solve_free(h, 0.0, fixed, rhs, short + 1, DEPENDENT, SHORT)
    weight += tl.sum(tl.where(j == short, weight, 0.0), 0)
    projected = subtract_row_means(face, gradient, weight, tight) / temperature.to(tl.float64, bitcast=True)
    h = scatter(projected, invalid, row_mask, column_mask, scratch, pair, m, n, ROWS, COLUMNS, LONG, SHORT)
    write_pair(h, out, pair, m, n, ROWS, COLUMNS)


def project(
    z: Tensor,
    g: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    rows_exact: bool,
    columns_exact: bool,
    temperature: float,
) -> Tensor:
    """Return the gradient of the scores, in the dtype of `g`; `z` is float64; both are (..., m, n)."""
    out = torch.empty(z.shape, dtype=g.dtype, device=z.device)
    if z.numel():
        tensors = (z.contiguous(), g.contiguous(), row_mask.contiguous(), column_mask.contiguous(), budget.contiguous())
        options = (int(rows_exact), int(columns_exact), bits(temperature))
        shape = (budget.shape[0], *z.shape[-2:])
        launch(matching_backward_kernel, (*tensors, out, *options), shape, z.device)
    return out


def matching_backward(
    g: Tensor, z: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, rows_exact: bool, columns_exact: bool,
    at_least: Tensor | None = None,
) -> Tensor:  # fmt: skip
    others = (row_mask, column_mask, budget, rows_exact, columns_exact)
    if at_least is not None or not holds(tile_shape(*z.shape[1:]), z.device):
        bounds = lower_bounds(budget, at_least), budget
        numbers = (*z.shape[1:], int(rows_exact), int(columns_exact))
        inputs = (z, g.to(z.dtype), row_mask, column_mask, *bounds)
        return solve_on_cpu(project_matchings, inputs, (z,), *numbers)[0].masked_fill(z.isnan(), torch.nan)
    return project(z, g, *others, 1.0)


class MatchingLayer(torch.autograd.Function):
    """The layer in eager mode: one launch forward and one backward.

    The custom ops do the same for `torch.compile`. In eager mode their overhead on the host (autograd wrapper, casts,
    division by the temperature) would take several times as long as the kernels take on the device.
    """

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        row_mask: Tensor,
        column_mask: Tensor,
        budget: Tensor,
        rows_exact: bool,
        columns_exact: bool,
        max_iterations: int,
        temperature: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        exact = (rows_exact, columns_exact)
        out, z, steps, gap = solve(scores, row_mask, column_mask, budget, *exact, max_iterations, temperature)
        ctx.save_for_backward(z, row_mask, column_mask, budget)
        ctx.options = (*exact, temperature)
        ctx.mark_non_differentiable(steps, gap)
        ctx.set_materialize_grads(False)
        return out, steps, gap

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        z, *sides = ctx.saved_tensors
        h = None if g is None else project(z, g, *sides, *ctx.options)
        return h, None, None, None, None, None, None, None
