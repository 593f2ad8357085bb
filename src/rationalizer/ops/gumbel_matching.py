"""The stochastic baseline for pairs of texts: Gumbel noise, then one softmax per direction."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._declare import declare

_REMEDY = (
    "scores and scores/temperature must be finite (raise a very low temperature; exclude words with row_mask and "
    "column_mask, not with -inf)"
)


class GumbelMatching(NamedTuple):
    """One alignment per direction; both have shape (batch, m, n)."""

    rows: Tensor  # each row is a distribution over columns: what the row attends to
    columns: Tensor  # each column is a distribution over rows: what the column attends to


def gumbel_matching(
    scores: Tensor,
    *,
    temperature: float,
    training: bool,
    generator: torch.Generator | None = None,
    row_mask: Tensor | None = None,
    column_mask: Tensor | None = None,
) -> GumbelMatching:
    """Sample a relaxed alignment in each direction: softmax((scores + G)/temperature), G_ij ~ Gumbel(0, 1).

    The row-wise and the column-wise softmax share the noise. At test time (training=False) there is no noise, and each
    row (column) is the one-hot vector of its best column (row); ties go to the first. No gradient at test time.

    Args:
        scores: (batch, m, n) scores of the pairs; any number of leading dimensions.
        temperature: divides the noisy scores; lower is closer to one-hot.
        training: sample (True), or return the argmax (False).
        generator: source of the noise; the same state gives the same sample.
        row_mask: (batch, m) bool, True on words. Masked rows are absent and get exactly 0.
        column_mask: (batch, n) bool, the same for columns.

    Returns:
        GumbelMatching(rows, columns) in the dtype of `scores`. Differentiable in `scores` if `training`.
    """
    _inputs.check_scores(scores, dims=2, shape_hint="(batch, m, n)")
    _inputs.check_temperature(temperature)
    rows = _inputs.check_mask(row_mask, scores.shape[:-1], scores.device, "row_mask")
    lead, n = scores.shape[:-2], scores.shape[-1]
    columns = _inputs.check_mask(column_mask, lead + torch.Size([n]), scores.device, "column_mask")
    unmasked = rows[..., :, None] & columns[..., None, :]
    values = _finite(scores.to(torch.promote_types(scores.dtype, torch.float32)), unmasked)
    if training:
        # The logarithm of an exponential variable is a negated Gumbel variable.
        values = values - torch.empty_like(values).exponential_(generator=generator).log()
    values = _finite(values / float(temperature), unmasked)
    parts = [_choose(values, unmasked, dim, training).to(scores.dtype) for dim in (-1, -2)]
    return GumbelMatching(*parts)


def _choose(values: Tensor, unmasked: Tensor, dim: int, training: bool) -> Tensor:
    # The lowest float, not -inf, which would give 0/0 in a row without unmasked entries.
    values = values.masked_fill(~unmasked, torch.finfo(values.dtype).min)
    if training:
        return values.softmax(dim).masked_fill(~unmasked, 0.0)
    if values.shape[dim] == 0:
        return torch.zeros_like(values)
    index = torch.arange(values.shape[dim], device=values.device)
    best = (index if dim == -1 else index[:, None]) == values.argmax(dim, keepdim=True)
    return (best & unmasked).to(values.dtype).masked_fill(values.isnan(), torch.nan)


def _finite_backward(g: Tensor, unmasked: Tensor) -> Tensor:
    return g.masked_fill(~unmasked, 0.0)


@declare("finite_pairs", fake=lambda scores: torch.empty_like(scores), backward=_finite_backward, every_device=True)
def _finite(scores: Tensor, unmasked: Tensor) -> Tensor:
    """Set masked scores to 0. If an unmasked score is not finite: raise; on CUDA, return NaN for its matrix."""
    if not scores.is_cuda:
        _inputs.require_finite(scores, unmasked, "scores", _REMEDY)
        return torch.where(unmasked, scores, 0.0)
    bad = (~torch.isfinite(scores) & unmasked).flatten(-2).any(-1)[..., None, None]
    return torch.where(unmasked, scores.masked_fill(bad, torch.nan), 0.0)
