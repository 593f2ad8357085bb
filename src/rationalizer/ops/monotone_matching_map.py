"""The best alignment whose links do not cross."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.ops import _fixed_links as _links
from rationalizer.ops import _inputs
from rationalizer.ops import _matrix_inputs as _pairs
from rationalizer.ops.kernels.monotone_matching_map_cpu import monotone_matching_map_rows
from rationalizer.ops.kernels.numba_runtime import for_rows


def monotone_matching_map(
    scores: Tensor,
    budget: int | Tensor | None = None,
    *,
    exactly: bool = False,
    fixed: Tensor | None = None,
    row_mask: Tensor | None = None,
    column_mask: Tensor | None = None,
) -> Tensor:
    """The best monotone alignment, exactly 0/1: argmax Σ scores·Y s.t. row and column sums at most one, ΣY <= budget,

    and no two aligned pairs that cross. The programme of sequence alignment; ties go to fewer pairs, and pairs that do
    not raise the score are left out. No gradient. Tensors on other devices go through the host.

    Args:
        scores: (batch, m, n) scores of the pairs; any number of leading dimensions.
        budget: how many pairs may be selected; None (no limit), an int, or an int tensor (batch,).
        exactly: whether `budget` pairs have to be selected, whatever their scores.
        fixed: (batch, m, n) integers: 1 must be selected, -1 never, 0 free. What must be counts in the budget.
        row_mask: (batch, m) bool, True on real rows. The others count as absent and get exactly 0.
        column_mask: (batch, n) bool, True on real columns.

    Returns:
        (batch, m, n), Y in the dtype of `scores`.
    """
    detached = scores.detach() if isinstance(scores, Tensor) else scores
    problem = _links.as_monotone(detached, budget, exactly, fixed, row_mask, column_mask, 1.0)
    return problem.restore(_monotone_matching_map(*problem.arguments))


@_inputs.opaque("monotone_matching_map")
def _monotone_matching_map(
    scores: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, allowed: Tensor, exact: bool
) -> Tensor:
    _pairs.require_feasible(row_mask, column_mask, budget, False, False, exact)
    _pairs.require_finite_pairs(scores, row_mask, column_mask, allowed)
    y = torch.empty(scores.shape, dtype=torch.float64)
    arrays = map(_inputs.host, (scores, row_mask, column_mask, allowed, budget))
    work = 5 * scores.numel() * min(scores.shape[1:])
    for_rows(monotone_matching_map_rows, scores.shape[0], work, *arrays, exact, _inputs.host(y))
    _links.require_found(~torch.isnan(y).flatten(1).any(-1), exact)
    return y


@_monotone_matching_map.register_fake
def _(scores: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, allowed: Tensor, exact: bool) -> Tensor:
    return scores.new_empty(scores.shape)
