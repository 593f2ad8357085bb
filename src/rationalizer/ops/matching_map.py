"""The best matching: the matching layer at test time."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.ops import _fixed_pairs, _inputs
from rationalizer.ops import _matrix_inputs as _matrices
from rationalizer.ops._declare import declare, like_scores
from rationalizer.ops.kernels.matching_map_cpu import matching_map_rows
from rationalizer.ops.kernels.numba_runtime import for_rows


def matching_map(
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
) -> Tensor:
    """Return the best matching: argmax Σ scores·Y s.t. Y ∈ {0, 1}^(m×n), row sums ≤ 1, column sums ≤ 1,
    at_least ≤ ΣY ≤ budget.

    Successive shortest augmenting paths, which give the best matching of every size in turn: with "at_most_one" on both
    sides, pairs beyond `at_least` that do not raise the score are left out; with a budget, the search ends there. Equal
    inputs give equal matchings, also at ties. No gradient. On CUDA, problems with `at_least` or `fixed` are solved on
    the host.

    Args:
        scores: (batch, m, n) scores of the pairs; any number of leading dimensions.
        budget: the maximum number of selected pairs; None (no limit), an int, or an int tensor (batch,).
        at_least: the minimum number of selected pairs, as in `matching`.
        rows: "exactly_one" (row sums = 1) or "at_most_one".
        columns: "exactly_one" or "at_most_one".
        exactly: select exactly `budget` pairs, whatever their scores. Needs a budget of at most the length of the
            shorter side, and "at_most_one" on both sides.
        fixed: (batch, m, n) integers: 1 for pairs that must be selected, -1 for pairs that must not be, 0 for free
            pairs. Fixed pairs count towards the budget.
        row_mask: (batch, m) bool, True on words. Masked rows are absent and get exactly 0.
        column_mask: (batch, n) bool, the same for columns.

    Returns:
        (batch, m, n), Y in the dtype of `scores`.
    """
    detached = scores.detach() if isinstance(scores, Tensor) else scores
    matrices = _matrices.as_matrices(detached, row_mask, column_mask, 1.0)
    limit = _matrices.as_matrix_budget(budget, matrices.shape[:-2], scores.device)
    exact = _matrices.check_exact(rows, columns, exactly, budget)
    sides = (matrices.row_mask, matrices.column_mask)
    free = _fixed_pairs.remove_fixed_pairs(fixed, *sides, limit, matrices.shape, monotone=False)
    lower = _inputs.as_lower_bound(at_least, matrices.shape[:-2], scores.device)
    lower = free.remaining_lower_bound(lower, *sides)
    return free.restore_fixed(matrices.restore(_matching_map(matrices.scores, *free[:4], *exact, lower)))


@declare("matching_map", fake=like_scores, cuda="matching_map_cuda.matching_map")
def _matching_map(
    scores: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, allowed: Tensor | None, rows_exact: bool,
    columns_exact: bool, total_exact: bool, at_least: Tensor | None = None,
) -> Tensor:  # fmt: skip
    exact = (rows_exact, columns_exact, total_exact)
    _inputs.require_bounds(budget, at_least)
    _matrices.require_solvable(scores, row_mask, column_mask, budget, allowed, *exact)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    y = torch.empty(scores.shape, dtype=torch.float64)
    bounds = (_inputs.lower_bounds(budget, at_least), budget)
    work = 5 * scores.numel() * min(scores.shape[1:])
    for_rows(matching_map_rows, scores.shape[0], work, scores, row_mask, column_mask, *bounds, *exact, y)
    if allowed is not None:
        _fixed_pairs.require_feasible(~torch.isnan(y).flatten(1).any(-1), total_exact or at_least is not None)
    return y
