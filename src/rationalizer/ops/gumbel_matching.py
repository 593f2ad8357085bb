"""The stochastic baseline for pairs: Gumbel noise, then one softmax per direction."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops import _matrix_inputs as _pairs


class GumbelMatching(NamedTuple):
    """One alignment per direction; both have shape (batch, m, n)."""

    rows: Tensor  # each real row is a distribution over columns: what a row attends to
    columns: Tensor  # each real column is a distribution over rows: what a column attends to


def gumbel_matching(
    scores: Tensor,
    *,
    temperature: float,
    training: bool,
    generator: torch.Generator | None = None,
    row_mask: Tensor | None = None,
    column_mask: Tensor | None = None,
) -> GumbelMatching:
    """Sample a relaxed alignment in each direction: softmax((scores + G)/temperature), G ~ Gumbel(0, 1) each.

    The row-wise and the column-wise softmax share the noise. At test time (training=False) there is no noise
    and each row (column) is the one-hot vector of its best column (row), the first among equals; no gradient.

    Args:
        scores: (batch, m, n) scores of the pairs; any number of leading dimensions.
        temperature: divides the noisy scores; lower is closer to one-hot.
        training: sample, or decide.
        generator: source of the noise; the same state gives the same sample.
        row_mask: (batch, m) bool, True on real rows. The others count as absent and get exactly 0.
        column_mask: (batch, n) bool, True on real columns.

    Returns:
        GumbelMatching(rows, columns) in the dtype of `scores`. Differentiable in `scores` in training.
    """
    _inputs.check_scores(scores, dims=2, shape_hint="(batch, m, n)")
    _inputs.check_temperature(temperature)
    rows = _inputs.check_mask(row_mask, scores.shape[:-1], scores.device, "row_mask")
    lead, n = scores.shape[:-2], scores.shape[-1]
    columns = _inputs.check_mask(column_mask, lead + torch.Size([n]), scores.device, "column_mask")
    real = rows[..., :, None] & columns[..., None, :]
    values = _finite(scores.to(torch.promote_types(scores.dtype, torch.float32)), real)
    if training:
        # log of an exponential variable: a Gumbel variable, negated.
        values = values - torch.empty_like(values).exponential_(generator=generator).log()
    parts = [_choose(values / temperature, real, dim, training).to(scores.dtype) for dim in (-1, -2)]
    return GumbelMatching(*parts)


def _choose(values: Tensor, real: Tensor, dim: int, training: bool) -> Tensor:
    # Lowest rather than -inf: a row without real entries gives 0/0 with the latter.
    values = values.masked_fill(~real, torch.finfo(values.dtype).min)
    if training:
        return values.softmax(dim).masked_fill(~real, 0.0)
    if values.shape[dim] == 0:
        return torch.zeros_like(values)
    place = torch.arange(values.shape[dim], device=values.device)
    best = (place if dim == -1 else place[:, None]) == values.argmax(dim, keepdim=True)
    return (best & real).to(values.dtype).masked_fill(values.isnan(), torch.nan)


@_inputs.opaque("finite_pairs")
def _finite(scores: Tensor, real: Tensor) -> Tensor:
    """The scores with 0 at masked entries. Where a real one is not finite: raises, or NaN for that pair on CUDA."""
    if not scores.is_cuda:
        _inputs.require_finite(scores, real, "scores", _pairs.FINITE_REMEDY)
        return torch.where(real, scores, 0.0)
    bad = (~torch.isfinite(scores) & real).flatten(-2).any(-1)[..., None, None]
    return torch.where(real, scores.masked_fill(bad, torch.nan), 0.0)


@_finite.register_fake
def _(scores: Tensor, real: Tensor) -> Tensor:
    return torch.empty_like(scores)


def _save(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.save_for_backward(inputs[1])


def _backward(ctx, g):  # type: ignore[no-untyped-def]
    (real,) = ctx.saved_tensors
    return g.masked_fill(~real, 0.0), None


_finite.register_autograd(_backward, setup_context=_save)
