"""The best alignment without crossing pairs."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.ops import _fixed_pairs
from rationalizer.ops import _matrix_inputs as _matrices
from rationalizer.ops._declare import declare, like_scores
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
    """The best monotone alignment: argmax Σ scores·Y s.t. Y ∈ {0, 1}^(m×n), row and column sums ≤ 1, ΣY ≤ budget,

    and no two selected pairs cross. The dynamic program of sequence alignment; ties go to fewer pairs, and pairs that
    do not raise the score are left out. No gradient. Tensors on other devices are copied to the host.

    Args:
        scores: (batch, m, n) scores of the pairs; any number of leading dimensions.
        budget: the maximum number of selected pairs; None (no limit), an int, or an int tensor (batch,).
        exactly: select exactly `budget` pairs, whatever their scores.
        fixed: (batch, m, n) integers: 1 for pairs that must be selected, -1 for pairs that must not be, 0 for free
            pairs. Fixed pairs count towards the budget.
        row_mask: (batch, m) bool, True on words. Masked rows are absent and get exactly 0.
        column_mask: (batch, n) bool, the same for columns.

    Returns:
        (batch, m, n), Y in the dtype of `scores`.
    """
    detached = scores.detach() if isinstance(scores, Tensor) else scores
    problem = _fixed_pairs.as_monotone(detached, budget, exactly, fixed, row_mask, column_mask, 1.0)
    return problem.restore(_monotone_matching_map(*problem.arguments()))


@declare("monotone_matching_map", fake=like_scores)
def _monotone_matching_map(
    scores: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, allowed: Tensor, exact: bool
) -> Tensor:
    _matrices.require_solvable(scores, row_mask, column_mask, budget, allowed, total_exact=exact)
    y = torch.empty(scores.shape, dtype=torch.float64)
    work = 5 * scores.numel() * min(scores.shape[1:])
    inputs = (scores, row_mask, column_mask, allowed, budget, exact)
    for_rows(monotone_matching_map_rows, scores.shape[0], work, *inputs, y)
    _fixed_pairs.require_feasible(~torch.isnan(y).flatten(1).any(-1), exact)
    return y
