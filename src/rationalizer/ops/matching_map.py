"""The best matching: what the matching layer becomes at test time."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.ops import _fixed_links as _links
from rationalizer.ops import _inputs
from rationalizer.ops import _matrix_inputs as _pairs
from rationalizer.ops.kernels.matching_map_cpu import matching_map_rows
from rationalizer.ops.kernels.numba_runtime import for_rows


def matching_map(
    scores: Tensor,
    budget: int | Tensor | None = None,
    *,
    rows: str = "at_most_one",
    columns: str = "at_most_one",
    exactly: bool = False,
    fixed: Tensor | None = None,
    row_mask: Tensor | None = None,
    column_mask: Tensor | None = None,
) -> Tensor:
    """The best matching, exactly 0/1: argmax Σ scores·Y s.t. row and column sums (at most) one, ΣY <= budget.

    Successive shortest augmenting paths, which pass through the best matching of every size: with
    "at_most_one" on both sides pairs that do not raise the score are left out, with a budget the search ends
    there. The same input gives the same matching, ties included. No gradient. On CUDA problems with `fixed`
    go through the host.

    Args:
        scores: (batch, m, n) scores of the pairs; any number of leading dimensions.
        rows: "exactly_one" or "at_most_one".
        columns: "exactly_one" or "at_most_one".
        budget: how many pairs may be selected; None (no limit), an int, or an int tensor (batch,).
        exactly: whether `budget` pairs have to be selected, whatever their scores. At most as many as the shorter side
            has, and not together with "exactly_one".
        fixed: (batch, m, n) integers: 1 must be selected, -1 never, 0 free. What must be counts in the budget.
        row_mask: (batch, m) bool, True on real rows. The others count as absent and get exactly 0.
        column_mask: (batch, n) bool, True on real columns.

    Returns:
        (batch, m, n), Y in the dtype of `scores`.
    """
    pairs = _pairs.as_pairs(scores.detach() if isinstance(scores, Tensor) else scores, row_mask, column_mask, 1.0)
    limit = _pairs.as_pair_budget(budget, pairs.shape[:-2], scores.device)
    exact = _pairs.as_all_exact(rows, columns, exactly, budget)
    links = _links.as_links(fixed, pairs.row_mask, pairs.column_mask, limit, pairs.shape, monotone=False)
    return links.complete(pairs.restore(_matching_map(pairs.scores, *links[:4], *exact)))


@_inputs.opaque("matching_map", cuda="matching_map_cuda.matching_map")
def _matching_map(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    allowed: Tensor | None,
    rows_exact: bool,
    columns_exact: bool,
    total_exact: bool,
) -> Tensor:
    inputs = (scores, row_mask, column_mask, budget, allowed, rows_exact, columns_exact, total_exact)
    return _inputs.on_host(_matching_map, *inputs)


@_matching_map.register_kernel("cpu")
def _(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    allowed: Tensor | None,
    rows_exact: bool,
    columns_exact: bool,
    total_exact: bool,
) -> Tensor:
    _pairs.require_feasible(row_mask, column_mask, budget, rows_exact, columns_exact, total_exact)
    _pairs.require_finite_pairs(scores, row_mask, column_mask, allowed)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    y = torch.empty(scores.shape, dtype=torch.float64)
    arrays = map(_inputs.host, (scores, row_mask, column_mask, budget))
    work = 5 * scores.numel() * min(scores.shape[1:])
    exact = (rows_exact, columns_exact, total_exact)
    for_rows(matching_map_rows, scores.shape[0], work, *arrays, *exact, _inputs.host(y))
    if allowed is not None:
        _links.require_found(~torch.isnan(y).flatten(1).any(-1), total_exact)
    return y


@_matching_map.register_fake
def _(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    allowed: Tensor | None,
    rows_exact: bool,
    columns_exact: bool,
    total_exact: bool,
) -> Tensor:
    return scores.new_empty(scores.shape)
