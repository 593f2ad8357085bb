"""The matching layer's Jacobian on CUDA: the projector onto the directions of the face, as on the CPU."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from rationalizer.ops._inputs import on_host
from rationalizer.ops.kernels.matching_cuda import DEPENDENT, curvature, solve_free
from rationalizer.ops.kernels.matching_map_cuda import (
    entries,
    gather,
    holds,
    launch,
    new_scratch,
    pair_kernel,
    places,
    read_pair,
    tile_shape,
    write_pair,
)

TIGHT = tl.constexpr(1e-9)


@triton.jit
def centre_rows(z, g, weight, tight):
    """g − weight_j on the support, minus its mean in tight long nodes; 0 elsewhere."""
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
    face, long, short, limit, turned, odd = read_pair(
        z, row_mask, column_mask, budget, scratch, pair, m, n,
        rows_exact, columns_exact, ROWS, COLUMNS, LONG, SHORT,
    )  # fmt: skip
    place, real, _, _ = places(row_mask, column_mask, pair, m, n, ROWS, COLUMNS, SHORT)
    where, _ = entries(pair, m, n, ROWS, COLUMNS)
    gradient = tl.load(g + where, mask=real, other=0.0)
    gradient = gather(gradient, place, real, scratch, long, short, LONG, SHORT)
    i = tl.arange(0, LONG)
    j = tl.arange(0, SHORT)
    long_exact = tl.where(turned, columns_exact, rows_exact) > 0
    short_exact = tl.where(turned, rows_exact, columns_exact) > 0
    mass = tl.maximum(face, 0.0)
    sums = tl.sum(mass, 0)
    sums = tl.where(j == short, tl.sum(sums, 0), sums)
    bound = tl.where(j == short, limit.to(tl.float64), 1.0)
    tight = ((long_exact | (tl.sum(mass, 1) - 1.0 > -TIGHT)) & (i < long)).to(tl.int32)
    held = ((sums - bound > -TIGHT) | (short_exact & (j < short))).to(tl.int32)
    centred = centre_rows(face, gradient, tl.zeros((SHORT,), tl.float64), tight)
    rhs = tl.sum(centred, 0)
    rhs = tl.where(j == short, tl.sum(rhs, 0), rhs)
    h = curvature(face, tight, short, SHORT)
    weight = solve_free(h, 0.0, held, rhs, short + 1, DEPENDENT, SHORT)
    weight += tl.sum(tl.where(j == short, weight, 0.0), 0)
    projected = centre_rows(face, gradient, weight, tight)
    write_pair(projected, odd, out, row_mask, column_mask, scratch, pair, m, n, ROWS, COLUMNS, LONG, SHORT)


def matching_backward(
    z: Tensor, g: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, rows_exact: bool, columns_exact: bool
) -> Tensor:
    if not holds(tile_shape(*z.shape[1:]), z.device):
        inputs = (z, g, row_mask, column_mask, budget, rows_exact, columns_exact)
        return on_host(torch.ops.rationalizer.matching_backward, *inputs)
    out = torch.empty_like(z, memory_format=torch.contiguous_format)
    if z.numel():
        tensors = (z.contiguous(), g.contiguous(), row_mask.contiguous(), column_mask.contiguous(), budget.contiguous())
        launch(matching_backward_kernel, (*tensors, out, int(rows_exact), int(columns_exact)), z.shape, new_scratch(z))
    return out
