"""Alignments whose links do not cross, for texts that say the same things in the same order."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.ops import _fixed_links as _links
from rationalizer.ops import _inputs
from rationalizer.ops import _matrix_inputs as _pairs
from rationalizer.ops._convergence import Info, reports_info, warn_unless_converged
from rationalizer.ops.kernels.monotone_matching_cpu import monotone_matching_rows
from rationalizer.ops.kernels.numba_runtime import for_slow_rows
from rationalizer.ops.sequence_budget import _sequence_budget_backward


@reports_info
def monotone_matching(
    scores: Tensor,
    budget: int | Tensor | None = None,
    *,
    exactly: bool = False,
    fixed: Tensor | None = None,
    row_mask: Tensor | None = None,
    column_mask: Tensor | None = None,
    temperature: float = 1.0,
    tolerance: float = 0.0,
    max_iterations: int = 100_000,
    return_info: bool = False,
) -> Tensor | tuple[Tensor, Info]:
    """SparseMAP over monotone alignments: argmin ‖Z − scores/temperature‖² over the convex hull of the 0/1 matrices

    with at most one 1 a row and a column, at most `budget` in all, and no two that cross: of two aligned pairs (i, j)
    and (k, l) with i < k, j < l. Exact: an active set over alignments, priced by the programme of sequence alignment in
    O(m · n), times the budget where it can bind. As the temperature falls it becomes `monotone_matching_map`.

    Tensors on other devices go through the host.

    Args:
        scores: (batch, m, n) scores of the pairs; any number of leading dimensions.
        budget: how many pairs an alignment may have; None (no limit), an int, or an int tensor (batch,).
        exactly: whether `budget` pairs have to be aligned, not just at most so many.
        fixed: (batch, m, n) integers: 1 must be aligned, -1 never, 0 free. What must be aligned counts in the budget.
        row_mask: (batch, m) bool, True on real rows. The others count as absent and get exactly 0.
        column_mask: (batch, n) bool, True on real columns.
        temperature: divides the scores; lower is sparser.
        tolerance: how far Z may be from the exact answer, in any pair: a row ends where ‖Z − Z*‖₂ is proven to be at
            most that. 0 asks for the answer itself.
        max_iterations: where to stop a row, at the latest: 1,000 + 20mn is the most there is. Z is then feasible but
            not optimal.
        return_info: also return per-row `Info(converged, iterations, gap)`. Without it, a row that stopped short warns.

    Returns:
        (batch, m, n), Z in the dtype of `scores`, or (Z, Info). Differentiable in `scores`. What no alignment satisfies
        raises a ValueError that names the row.
    """
    _inputs.check_iterations(max_iterations)
    _inputs.check_tolerance(tolerance)
    problem = _links.as_monotone(scores, budget, exactly, fixed, row_mask, column_mask, temperature)
    solved = _monotone_matching(*problem.arguments, max_iterations, float(tolerance))
    info = Info(*map(problem.restore_rows, solved[3:]))
    z = problem.restore(solved[0])
    if return_info:
        return z, info
    warn_unless_converged(info, "monotone_matching", "raise max_iterations, or the temperature")
    return z


_Outputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def _outputs(scores: Tensor) -> _Outputs:
    rows, m, n = scores.shape
    count = scores.new_empty(rows, dtype=torch.int64)
    return (
        scores.new_empty(scores.shape),  # Z
        count,  # how many alignments are in the support
        # Room for them, packed. Only the pages that are written to are ever backed by memory.
        scores.new_empty((rows, m * n + 1, (m * n + 63) // 64), dtype=torch.int64),
        scores.new_empty(rows, dtype=torch.bool),  # converged
        torch.empty_like(count),  # iterations
        scores.new_empty(rows),  # gap
    )


@_inputs.opaque("monotone_matching")
def _monotone_matching(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    allowed: Tensor,
    exact: bool,
    max_iterations: int,
    tolerance: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    _pairs.require_feasible(row_mask, column_mask, budget, False, False, exact)
    _pairs.require_finite_pairs(scores, row_mask, column_mask, allowed)
    outputs = _outputs(scores)
    z, kept, support, converged, iterations, gap = map(_inputs.host, outputs)
    inputs = map(_inputs.host, (scores, row_mask, column_mask, allowed, budget))
    for_slow_rows(
        monotone_matching_rows, scores.shape[0], *inputs, exact, max_iterations, tolerance, z, kept,
        support.view("uint64"), iterations, gap, converged,
    )  # fmt: skip
    _links.require_found(outputs[1] > 0, exact)
    return outputs


@_monotone_matching.register_fake
def _(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    allowed: Tensor,
    exact: bool,
    max_iterations: int,
    tolerance: float,
) -> _Outputs:
    return _outputs(scores)


def _save(ctx, inputs, output):  # type: ignore[no-untyped-def]
    z, kept, support, converged, *status = output
    ctx.save_for_backward(z, inputs[4], converged, kept, support)
    ctx.mark_non_differentiable(kept, support, converged, *status)
    ctx.set_materialize_grads(False)


def _backward(ctx, g, *_):  # type: ignore[no-untyped-def]
    """An alignment is a sequence of the links that are allowed; it has no transitions, and always a support."""
    rest = (None,) * 7
    if g is None:
        return None, *rest
    z, allowed, converged, kept, support = ctx.saved_tensors
    flat = z.flatten(1)
    edges = flat.new_zeros((len(flat), max(flat.shape[1] - 1, 0)))
    h, _ = _sequence_budget_backward(g.flatten(1), flat, edges, allowed.flatten(1), converged, kept, support)
    return h.reshape(z.shape), *rest


_monotone_matching.register_autograd(_backward, setup_context=_save)
