"""The matching layer, a sparse alignment: M:XorAtMostOne, M:AtMostOne2 and M:Budget of the paper."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rationalizer.ops import _fixed_pairs, _inputs
from rationalizer.ops import _matrix_inputs as _matrices
from rationalizer.ops._convergence import Info, report, reports_info
from rationalizer.ops._declare import declare, has_triton
from rationalizer.ops.kernels.matching_backward_cpu import matching_backward_rows
from rationalizer.ops.kernels.matching_cpu import matching_rows
from rationalizer.ops.kernels.numba_runtime import for_rows

# The largest violation of a sum in a solution that counts as converged; usual violations are 1e-12.
_CONVERGED = 1e-10


@reports_info
def matching(
    scores: Tensor,
    budget: int | Tensor | None = None,
    *,
    rows: str = "at_most_one",
    columns: str = "at_most_one",
    at_least: int | Tensor = 0,
    exactly: bool = False,
    fixed: Tensor | None = None,
    row_mask: Tensor | None = None,
    column_mask: Tensor | None = None,
    temperature: float = 1.0,
    max_iterations: int = 1000,
    return_info: bool = False,
) -> Tensor | tuple[Tensor, Info]:
    """Align rows with columns: argmin ‖Z − scores/temperature‖² over the matching polytope,

    Z ≥ 0, row sums ≤ 1, column sums ≤ 1, at_least ≤ ΣZ ≤ budget.

    "exactly_one" turns the sums of that side from ≤ 1 into = 1. The paper's layers are
    M:XorAtMostOne = (rows="exactly_one"), M:AtMostOne2 = the default, M:Budget = (budget=B). `exactly` turns
    ΣZ ≤ budget into an equality, and `fixed` fixes entries at 1 or 0. In every combination the vertices of the polytope
    are the 0/1 matchings that satisfy the constraints.

    CUDA tensors stay on their device and nothing waits for it, so nothing is raised there: a matrix without a solution
    is NaN. Matrices too large for one program (about 128 × 63 or 256 × 31 on a data-centre GPU), and problems with
    `at_least`, `exactly` or `fixed`, are solved on the CPU when the stream reaches them.

    Args:
        scores: (batch, m, n) scores of the pairs; any number of leading dimensions.
        budget: the maximum of ΣZ; None (no limit), an int, or an int tensor (batch,). 0 gives zeros.
        at_least: the minimum of ΣZ; an int, or an int tensor (batch,). Above the length of the shorter side it means
            that length. Above the budget it is an error.
        rows: "exactly_one" or "at_most_one". "exactly_one" needs at least as many columns as rows.
        columns: "exactly_one" or "at_most_one"; with "exactly_one" on both sides both have the same length.
        exactly: ΣZ = budget. Needs a budget of at most the length of the shorter side, and "at_most_one" on both sides.
        fixed: (batch, m, n) integers: 1 for pairs that must be aligned, -1 for pairs that must not be, 0 for free
            pairs. Fixed pairs count towards the budget.
        row_mask: (batch, m) bool, True on words. Masked rows are absent and get exactly 0.
        column_mask: (batch, n) bool, the same for columns.
        temperature: divides the scores; lower is sparser. In the limit 0 the solution is `matching_map`. The quotient
            must be at most 1e30 in size: beyond it is an error, and on CUDA a matrix that has not converged.
        max_iterations: limit on the Newton steps; 3 to 20 are usual, 300 have been seen.
        return_info: also return an `Info`; its `gap` is the largest violation of an optimality condition (a
            sum above 1, or below 1 where a larger one would be better).

    Returns:
        (batch, m, n), Z in the dtype of `scores`, or (Z, Info). Differentiable in `scores`.
    """
    _inputs.check_iterations(max_iterations)
    exact = _matrices.check_exact(rows, columns, exactly, budget)
    sides = _matrices.check_matrices(scores, row_mask, column_mask, temperature)
    limit = _matrices.as_matrix_budget(budget, scores.shape[:-2], scores.device)
    lower = _inputs.as_lower_bound(at_least, scores.shape[:-2], scores.device)
    eager = _eager_layer(scores) if fixed is None and not exactly and lower is None else None
    if eager is not None:
        z, iterations, gap = eager.apply(scores, *sides, limit, *exact[:2], max_iterations, temperature)
    else:
        free = _fixed_pairs.remove_fixed_pairs(fixed, *sides, limit, scores.shape, monotone=False)
        matrices = _matrices.scale(scores, *sides, temperature)
        lower = free.remaining_lower_bound(lower, *sides)
        z, iterations, gap = _matching(matrices.scores, *free[:4], *exact, max_iterations, lower)
        z = free.restore_fixed(matrices.restore(z))
    if not return_info and not _inputs.can_inspect(z):
        return z
    info = Info(*(values.reshape(scores.shape[:-2]) for values in (gap <= _CONVERGED, iterations, gap)))
    remedy = f"raise max_iterations (now {max_iterations}) or the temperature"
    return report(z, info, return_info, "matching", remedy)


def _eager_layer(scores: Tensor) -> Any:
    """The layer on CUDA in eager mode, which has less overhead than the custom ops; None if it does not apply."""
    if not scores.is_cuda or torch.compiler.is_compiling() or not has_triton():
        return None
    from rationalizer.ops.kernels.matching_backward_cuda import MatchingLayer
    from rationalizer.ops.kernels.matching_map_cuda import holds, tile_shape

    return MatchingLayer if holds(tile_shape(*scores.shape[-2:]), scores.device) else None


@declare("matching_backward", fake=lambda z: z.new_empty(z.shape), cuda="matching_backward_cuda.matching_backward")
def _matching_backward(
    g: Tensor, z: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, rows_exact: bool, columns_exact: bool,
    at_least: Tensor | None = None,
) -> Tensor:  # fmt: skip
    h = torch.empty(z.shape, dtype=torch.float64)
    bounds = (_inputs.lower_bounds(budget, at_least), budget)
    inputs = (z, g, row_mask, column_mask, *bounds, rows_exact, columns_exact)
    for_rows(matching_backward_rows, z.shape[0], 20 * z.numel(), *inputs, h)
    return h


def _fake(scores: Tensor, budget: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    count = scores.shape[0]
    return scores.new_empty(scores.shape), budget.new_empty(count), scores.new_empty(count)


@declare(
    "matching",
    fake=_fake,
    outputs=("z", "iterations", "gap"),
    backward=_matching_backward,
    cuda="matching_cuda.matching",
)
def _matching(
    scores: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, allowed: Tensor | None, rows_exact: bool,
    columns_exact: bool, total_exact: bool, max_iterations: int, at_least: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    exact = (rows_exact, columns_exact, total_exact)
    _inputs.require_bounds(budget, at_least)
    _matrices.require_solvable(scores, row_mask, column_mask, budget, allowed, *exact, largest=_matrices.LARGEST)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    z = torch.empty(scores.shape, dtype=torch.float64)
    iterations = torch.empty(scores.shape[0], dtype=torch.int64)
    gap = torch.empty(scores.shape[0], dtype=torch.float64)
    bounds = (_inputs.lower_bounds(budget, at_least), budget)
    inputs = (scores, row_mask, column_mask, *bounds, *exact, max_iterations)
    for_rows(matching_rows, scores.shape[0], 100 * scores.numel(), *inputs, z, iterations, gap)
    if allowed is not None:
        _fixed_pairs.require_feasible(~torch.isnan(z).flatten(1).any(-1), total_exact or at_least is not None)
    return z, iterations, gap
