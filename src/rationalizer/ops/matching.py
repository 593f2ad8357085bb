"""The matching layer, a sparse alignment: M:XorAtMostOne, M:AtMostOne2 and M:Budget of the paper."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rationalizer.ops import _fixed_links as _links
from rationalizer.ops import _inputs
from rationalizer.ops import _matrix_inputs as _pairs
from rationalizer.ops._convergence import Info, reports_info, warn_unless_converged
from rationalizer.ops.kernels.matching_backward_cpu import matching_backward_rows
from rationalizer.ops.kernels.matching_cpu import matching_rows
from rationalizer.ops.kernels.numba_runtime import for_rows

# What the sums may be off by before a solve counts as unfinished; solves that finish are at 1e-12.
_CONVERGED = 1e-10


@reports_info
def matching(
    scores: Tensor,
    budget: int | Tensor | None = None,
    *,
    rows: str = "at_most_one",
    columns: str = "at_most_one",
    exactly: bool = False,
    fixed: Tensor | None = None,
    row_mask: Tensor | None = None,
    column_mask: Tensor | None = None,
    temperature: float = 1.0,
    max_iterations: int = 1000,
    return_info: bool = False,
) -> Tensor | tuple[Tensor, Info]:
    """Align rows with columns: argmin ‖Z − scores/temperature‖² over the matchings' polytope,

    Z >= 0, row sums <= 1, column sums <= 1, ΣZ <= budget.

    "exactly_one" turns the sums of that side from <= 1 into = 1. The paper's layers are
    M:XorAtMostOne = (rows="exactly_one"), M:AtMostOne2 = the default, M:Budget = (budget=B). `exactly` turns
    ΣZ <= budget into =, `fixed` holds entries at 1 or 0: of all of these the polytope's corners are the 0/1 matchings
    that satisfy them.

    CUDA tensors stay on their device and nothing waits for it, so nothing is raised there: a pair without an answer
    is NaN. Pairs too large for one program (about 128 × 63 or 256 × 31 on a data-centre GPU), and problems with
    `exactly` or `fixed`, go through the host.

    Args:
        scores: (batch, m, n) scores of the pairs; any number of leading dimensions.
        rows: "exactly_one" or "at_most_one". "exactly_one" needs at least as many real columns as rows.
        columns: "exactly_one" or "at_most_one"; with "exactly_one" on both sides both have the same size.
        budget: the most that may be aligned in all; None (no limit), an int, or an int tensor (batch,). 0
            gives zeros.
        exactly: whether `budget` pairs have to be aligned, not just at most so many. At most as many as the shorter
            side has, and not together with "exactly_one".
        fixed: (batch, m, n) integers: 1 must be aligned, -1 never, 0 free. What must be aligned counts in the budget.
        row_mask: (batch, m) bool, True on real rows. The others count as absent and get exactly 0.
        column_mask: (batch, n) bool, True on real columns.
        temperature: divides the scores; lower is sparser. In the limit 0 the answer is `matching_map`. The quotient may
            be 1e30 in size at most: more is an error, and on CUDA a pair that has not converged.
        max_iterations: Newton steps before giving up; 3 to 20 are usual, 300 have been seen.
        return_info: also return an `Info`; its `gap` is the largest violation of an optimality condition (a
            sum above one, or below one where the layer would gain by filling it).

    Returns:
        (batch, m, n), Z in the dtype of `scores`, or (Z, Info). Differentiable in `scores`.
    """
    _inputs.check_iterations(max_iterations)
    exact = _pairs.as_all_exact(rows, columns, exactly, budget)
    sides = _pairs.as_sides(scores, row_mask, column_mask, temperature)
    limit = _pairs.as_pair_budget(budget, scores.shape[:-2], scores.device)
    plain = fixed is None and not exactly
    if plain and (eager := _eager_layer(scores)) is not None:
        z, iterations, gap = eager.apply(scores, *sides, limit, *exact[:2], max_iterations, temperature)
    else:
        links = _links.as_links(fixed, *sides, limit, scores.shape, monotone=False)
        pairs = _pairs.scaled(scores, *sides, temperature)
        z, iterations, gap = _matching(pairs.scores, *links[:4], *exact, max_iterations)
        z = links.complete(pairs.restore(z))
    if not return_info and not _inputs.may_look_at(z):
        return z
    info = Info(*(values.reshape(scores.shape[:-2]) for values in (gap <= _CONVERGED, iterations, gap)))
    if return_info:
        return z, info
    warn_unless_converged(info, "matching", f"raise max_iterations (now {max_iterations}) or the temperature")
    return z


def _eager_layer(scores: Tensor) -> Any:
    """The layer without the custom ops around it, where it applies."""
    if not scores.is_cuda or torch.compiler.is_compiling() or not _inputs.has_triton():
        return None
    from rationalizer.ops.kernels.matching_backward_cuda import MatchingLayer
    from rationalizer.ops.kernels.matching_map_cuda import holds, tile_shape

    return MatchingLayer if holds(tile_shape(*scores.shape[-2:]), scores.device) else None


@_inputs.opaque("matching", cuda="matching_cuda.matching")
def _matching(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    allowed: Tensor | None,
    rows_exact: bool,
    columns_exact: bool,
    total_exact: bool,
    max_iterations: int,
) -> tuple[Tensor, Tensor, Tensor]:
    inputs = (scores, row_mask, column_mask, budget, allowed, rows_exact, columns_exact, total_exact, max_iterations)
    return _inputs.on_host(_matching, *inputs)


@_matching.register_kernel("cpu")
def _(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    allowed: Tensor | None,
    rows_exact: bool,
    columns_exact: bool,
    total_exact: bool,
    max_iterations: int,
) -> tuple[Tensor, Tensor, Tensor]:
    _pairs.require_feasible(row_mask, column_mask, budget, rows_exact, columns_exact, total_exact)
    _pairs.require_finite_pairs(scores, row_mask, column_mask, allowed)
    _pairs.require_in_range(scores, row_mask, column_mask, allowed)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    z = torch.empty(scores.shape, dtype=torch.float64)
    iterations = torch.empty(scores.shape[0], dtype=torch.int64)
    gap = torch.empty(scores.shape[0], dtype=torch.float64)
    inputs = map(_inputs.host, (scores, row_mask, column_mask, budget))
    outputs = map(_inputs.host, (z, iterations, gap))
    work = 100 * scores.numel()
    exact = (rows_exact, columns_exact, total_exact)
    for_rows(matching_rows, scores.shape[0], work, *inputs, *exact, max_iterations, *outputs)
    if allowed is not None:
        _links.require_found(~torch.isnan(z).flatten(1).any(-1), total_exact)
    return z, iterations, gap


@_matching.register_fake
def _(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    allowed: Tensor | None,
    rows_exact: bool,
    columns_exact: bool,
    total_exact: bool,
    max_iterations: int,
) -> tuple[Tensor, Tensor, Tensor]:
    return (
        scores.new_empty(scores.shape),
        budget.new_empty(scores.shape[0]),
        scores.new_empty(scores.shape[0]),
    )


@_inputs.opaque("matching_backward", cuda="matching_backward_cuda.matching_backward")
def _matching_backward(
    z: Tensor,
    g: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    rows_exact: bool,
    columns_exact: bool,
) -> Tensor:
    return _inputs.on_host(_matching_backward, z, g, row_mask, column_mask, budget, rows_exact, columns_exact)


@_matching_backward.register_kernel("cpu")
def _(
    z: Tensor,
    g: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    rows_exact: bool,
    columns_exact: bool,
) -> Tensor:
    out = torch.empty(z.shape, dtype=torch.float64)
    arrays = map(_inputs.host, (z, g, row_mask, column_mask, budget))
    for_rows(
        matching_backward_rows,
        z.shape[0],
        20 * z.numel(),
        *arrays,
        rows_exact,
        columns_exact,
        _inputs.host(out),
    )
    return out


@_matching_backward.register_fake
def _(
    z: Tensor,
    g: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    rows_exact: bool,
    columns_exact: bool,
) -> Tensor:
    return z.new_empty(z.shape)


def _save(ctx, inputs, output):  # type: ignore[no-untyped-def]
    _, row_mask, column_mask, budget, _, ctx.rows_exact, ctx.columns_exact, _, _ = inputs
    ctx.save_for_backward(output[0], row_mask, column_mask, budget)
    ctx.mark_non_differentiable(output[1], output[2])
    ctx.set_materialize_grads(False)


def _backward(ctx, g, *_):  # type: ignore[no-untyped-def]
    z, *sides = ctx.saved_tensors
    h = None if g is None else _matching_backward(z, g, *sides, ctx.rows_exact, ctx.columns_exact)
    return h, None, None, None, None, None, None, None, None


_matching.register_autograd(_backward, setup_context=_save)
