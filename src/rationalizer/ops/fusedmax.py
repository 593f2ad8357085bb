"""Fusedmax: sparsemax that likes neighbours to weigh the same."""

from __future__ import annotations

import math

from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops.kernels.numba_runtime import for_rows
from rationalizer.ops.kernels.total_variation_cpu import total_variation_backward_rows, total_variation_rows
from rationalizer.ops.sparsemax import project_simplex


def fusedmax(scores: Tensor, *, tv: float = 0.7, mask: Tensor | None = None, temperature: float = 1.0) -> Tensor:
    """argmin ½‖z − scores/temperature‖² + tv · Σ|z_i − z_{i+1}| s.t. z >= 0, Σz = 1.

    Computed exactly as simplex projection ∘ prox of the total variation.

    Args:
        scores: (batch, n) token scores; any number of leading dimensions.
        tv: weight of the total variation, >= 0; not divided by the temperature.
        mask: (batch, n) bool, True on real tokens. The others count as absent (their neighbours close up) and get
            exactly 0; a row without real tokens gives zeros.
        temperature: divides the scores.

    Returns:
        (batch, n), z in the dtype of `scores`. Differentiable in `scores`.
    """
    if isinstance(tv, bool) or not isinstance(tv, (int, float)) or not math.isfinite(tv) or tv < 0:
        raise ValueError(f"tv must be a number of at least 0, got {tv!r}")
    rows = _inputs.as_rows(scores, mask, temperature)
    smooth = _total_variation(rows.scores, rows.mask, float(tv))
    return rows.restore(project_simplex(smooth, rows.mask))


@_inputs.opaque("total_variation", cuda="total_variation_cuda.total_variation")
def _total_variation(scores: Tensor, mask: Tensor, weight: float) -> Tensor:
    return _inputs.on_host(_total_variation, scores, mask, weight)


@_total_variation.register_kernel("cpu")
def _(scores: Tensor, mask: Tensor, weight: float) -> Tensor:
    _inputs.require_finite_scores(scores, mask)
    x = scores.new_empty(scores.shape)
    values, real, out = map(_inputs.host, (scores, mask, x))
    for_rows(total_variation_rows, scores.shape[0], 20 * scores.numel(), values, real, weight, out)
    return x


@_total_variation.register_fake
def _(scores: Tensor, mask: Tensor, weight: float) -> Tensor:
    return scores.new_empty(scores.shape)


@_inputs.opaque("total_variation_backward", cuda="total_variation_cuda.total_variation_backward")
def _total_variation_backward(g: Tensor, x: Tensor, mask: Tensor, weight: float) -> Tensor:
    return _inputs.on_host(_total_variation_backward, g, x, mask, weight)


@_total_variation_backward.register_kernel("cpu")
def _(g: Tensor, x: Tensor, mask: Tensor, weight: float) -> Tensor:
    h = g.new_empty(g.shape)
    grad, solution, real, out = map(_inputs.host, (g, x, mask, h))
    for_rows(total_variation_backward_rows, g.shape[0], 5 * g.numel(), grad, solution, real, weight, out)
    return h


@_total_variation_backward.register_fake
def _(g: Tensor, x: Tensor, mask: Tensor, weight: float) -> Tensor:
    return g.new_empty(g.shape)


def _save(ctx, inputs, output):  # type: ignore[no-untyped-def]
    _, mask, ctx.weight = inputs
    ctx.save_for_backward(output, mask)


def _backward(ctx, g):  # type: ignore[no-untyped-def]
    return _total_variation_backward(g, *ctx.saved_tensors, ctx.weight), None, None


_total_variation.register_autograd(_backward, setup_context=_save)
