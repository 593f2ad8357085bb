"""Fusedmax: sparsemax with a total-variation penalty, which favours equal weights of neighbours."""

from __future__ import annotations

from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._declare import declare, like_scores
from rationalizer.ops.kernels.numba_runtime import for_rows
from rationalizer.ops.kernels.total_variation_cpu import total_variation_backward_rows, total_variation_rows
from rationalizer.ops.sparsemax import project_simplex


def fusedmax(scores: Tensor, *, tv: float = 0.7, mask: Tensor | None = None, temperature: float = 1.0) -> Tensor:
    """argmin ½‖z − scores/temperature‖² + tv · Σ|z_i − z_{i+1}| s.t. z ≥ 0, Σz = 1.

    Computed exactly as simplex projection ∘ prox of the total variation.

    Args:
        scores: (batch, n) word scores; any number of leading dimensions.
        tv: weight of the total variation, ≥ 0; not divided by the temperature.
        mask: (batch, n) bool, True on words. Masked positions are absent (the words around them become neighbours) and
            get exactly 0; a row without words gives zeros.
        temperature: divides the scores.

    Returns:
        (batch, n), z in the dtype of `scores`. Differentiable in `scores`.
    """
    _inputs.check_number(tv, "tv")
    rows = _inputs.as_rows(scores, mask, temperature)
    smooth = _total_variation(rows.scores, rows.mask, float(tv))
    return rows.restore(project_simplex(smooth, rows.mask))


@declare(
    "total_variation_backward",
    fake=lambda g: g.new_empty(g.shape),
    cuda="total_variation_cuda.total_variation_backward",
)
def _total_variation_backward(g: Tensor, z: Tensor, mask: Tensor, weight: float) -> Tensor:
    h = g.new_empty(g.shape)
    for_rows(total_variation_backward_rows, g.shape[0], 5 * g.numel(), g, z, mask, weight, h)
    return h


@declare(
    "total_variation",
    fake=like_scores,
    backward=_total_variation_backward,
    cuda="total_variation_cuda.total_variation",
)
def _total_variation(scores: Tensor, mask: Tensor, weight: float) -> Tensor:
    _inputs.require_finite_scores(scores, mask)
    z = scores.new_empty(scores.shape)
    for_rows(total_variation_rows, scores.shape[0], 20 * scores.numel(), scores, mask, weight, z)
    return z
