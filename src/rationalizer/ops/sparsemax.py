"""Sparsemax with masks, any dtype and low temperatures, on top of `entmax`."""

from __future__ import annotations

import entmax
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
    _inputs.require_finite_eagerly(rows)
    return rows.restore(project_simplex(rows.scores, rows.mask))


def project_simplex(scores: Tensor, mask: Tensor) -> Tensor:
    if scores.numel() == 0:
        return scores.clone()
    # The support lies within 1 of the maximum, so masked tokens two below it stay out of it, gradient included.
    low = scores.detach().masked_fill(~mask, -1e300).amax(-1, keepdim=True) - 2.0
    z = entmax.sparsemax(scores.where(mask, low), dim=-1)
    return z.masked_fill(~mask, 0.0)
