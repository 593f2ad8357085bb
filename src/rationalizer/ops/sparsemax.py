"""Sparsemax with masks, any dtype and low temperatures, based on `entmax`."""

from __future__ import annotations

import entmax
import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._declare import declare, like_scores


def sparsemax(scores: Tensor, *, mask: Tensor | None = None, temperature: float = 1.0) -> Tensor:
    """Project onto the probability simplex: argmin ‖z − scores/temperature‖² s.t. z ≥ 0, Σz = 1.

    Args:
        scores: (batch, n) word scores; any number of leading dimensions.
        mask: (batch, n) bool, True on words. Masked positions are absent and get exactly 0; a row without words gives
            zeros.
        temperature: divides the scores; lower is sparser.

    Returns:
        (batch, n), z in the dtype of `scores`. Differentiable in `scores`.
    """
    rows = _inputs.as_rows(scores, mask, temperature)
    return rows.restore(project_simplex(rows.scores, rows.mask))


def project_out_mean(g: Tensor, free: Tensor) -> Tensor:
    """Project `g` onto {h: h = 0 off the free set, Σh = 0}: the face of a simplex, or of a budget that binds."""
    h = g * free
    return h - free * (h.sum(-1, keepdim=True) / free.sum(-1, keepdim=True).clamp(min=1))


def _simplex_backward(g: Tensor, z: Tensor) -> Tensor:
    return project_out_mean(g, (z > 0).to(g.dtype))


# A custom op because `torch.compile` cannot trace entmax's autograd functions.
@declare("simplex", fake=like_scores, backward=_simplex_backward, every_device=True)
def project_simplex(scores: Tensor, mask: Tensor) -> Tensor:
    if scores.numel() == 0:
        return scores.clone()
    if _inputs.can_inspect(scores):
        _inputs.require_finite_scores(scores, mask)
        return _sparsemax(scores, mask)
    return _inputs.nan_if_unsolvable(_sparsemax(scores.nan_to_num(), mask), scores, mask)


def _sparsemax(scores: Tensor, mask: Tensor) -> Tensor:
    # The support lies within 1 of the maximum, so masked words two below it stay outside.
    top = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
    return entmax.sparsemax((scores - top).masked_fill(~mask, -2.0), dim=-1).masked_fill(~mask, 0.0)
