"""Sparsemax with masks, any dtype and low temperatures, on top of `entmax`."""

from __future__ import annotations

import entmax
import torch
from torch import Tensor

from rationalizer.ops import _inputs


def sparsemax(scores: Tensor, *, mask: Tensor | None = None, temperature: float = 1.0) -> Tensor:
    """Project onto the probability simplex: argmin ‖z − scores/temperature‖² s.t. z >= 0, Σz = 1.

    Args:
        scores: (batch, n) token scores; any number of leading dimensions.
        mask: (batch, n) bool, True on real tokens. The others count as absent and get exactly 0; a row without real
            tokens gives zeros.
        temperature: divides the scores; lower is sparser.

    Returns:
        (batch, n), z in the dtype of `scores`. Differentiable in `scores`.
    """
    rows = _inputs.as_rows(scores, mask, temperature)
    return rows.restore(project_simplex(rows.scores, rows.mask))


@_inputs.opaque("simplex")
def project_simplex(scores: Tensor, mask: Tensor) -> Tensor:
    """Sparsemax of float64 rows. Opaque because `torch.compile` cannot look into entmax's autograd functions."""
    if scores.numel() == 0:
        return scores.clone()
    if _inputs.may_look_at(scores):
        _inputs.require_finite_scores(scores, mask)
        return _sparsemax(scores, mask)
    return _inputs.nan_without_answer(_sparsemax(scores.nan_to_num(), mask), scores, mask)


def _sparsemax(scores: Tensor, mask: Tensor) -> Tensor:
    # The support lies within 1 of the maximum, so masked tokens two below it stay out of it.
    top = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
    return entmax.sparsemax((scores - top).masked_fill(~mask, -2.0), dim=-1).masked_fill(~mask, 0.0)


@project_simplex.register_fake
def _(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.new_empty(scores.shape)


def _save(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.save_for_backward(output)


def _backward(ctx, g):  # type: ignore[no-untyped-def]
    (z,) = ctx.saved_tensors
    return project_out_mean(g, (z > 0).to(g.dtype)), None


def project_out_mean(g: Tensor, free: Tensor) -> Tensor:
    """The projector onto {h: h = 0 off the free set, Σh = 0}: the face of a simplex, or of a budget that binds."""
    h = g * free
    return h - free * (h.sum(-1, keepdim=True) / free.sum(-1, keepdim=True).clamp(min=1))


project_simplex.register_autograd(_backward, setup_context=_save)
