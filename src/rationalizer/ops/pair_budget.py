"""The PAIR + BUDGET layer: a contiguity bonus in closed form."""

from __future__ import annotations

from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops.kernels.numba_runtime import for_rows
from rationalizer.ops.kernels.pair_budget_cpu import pair_budget_backward_rows, pair_budget_rows


def pair_budget(
    scores: Tensor,
    budget: int | Tensor,
    *,
    transition: float | Tensor = 0.0,
    mask: Tensor | None = None,
    temperature: float = 1.0,
) -> Tensor:
    """LP-SparseMAP of PAIR factors along the text plus one BUDGET, in closed form.

    argmax s·z + Σ r_i min(z_i, z_{i+1}) − ½‖z‖² s.t. 0 <= z <= 1, Σz <= budget, with s = scores/temperature and
    r = transition/temperature. A relaxation of `sequence_budget`: O(n), no iterations, and often the same answer.

    Args:
        scores: (batch, n) token scores; any number of leading dimensions.
        budget: how many tokens may be selected; an int, or an int tensor (batch,).
        transition: the bonus r >= 0 for selecting both of two neighbours; a number, (n − 1,) or (batch, n − 1).
            Differentiable. Masked tokens are closed up: between neighbours a < b counts the edge that leaves a.
            Negative ones are an error (NaN on CUDA); `sequence_budget` takes them.
        mask: (batch, n) bool, True on real tokens. The others count as absent and get exactly 0.
        temperature: divides scores and transitions.

    Returns:
        (batch, n), z in the dtype of `scores`.
    """
    rows = _inputs.as_rows(scores, mask, temperature)
    limit = _inputs.as_budget(budget, rows.shape[:-1], scores.device)
    edges = _inputs.as_transition(transition, rows, temperature)
    z, _ = _pair_budget(rows.scores, edges, rows.mask, limit)
    return rows.restore(z)


@_inputs.opaque("pair_budget", cuda="pair_budget_cuda.pair_budget")
def _pair_budget(scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor) -> tuple[Tensor, Tensor]:
    return _inputs.on_host(_pair_budget, scores, transition, mask, budget)


@_pair_budget.register_kernel("cpu")
def _(scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor) -> tuple[Tensor, Tensor]:
    _inputs.require_finite_scores(scores, mask)
    _inputs.require_finite_transition(transition)
    _inputs.require_budget(budget)
    if (transition < 0).any():
        raise ValueError(
            f"transition must be at least 0 here, got {transition.min().item():g} (after the temperature); for "
            "anti-contiguity use sequence_budget, or a FactorGraph of Pair and Budget factors"
        )
    z, tau = scores.new_empty(scores.shape), scores.new_empty(scores.shape[0])
    arrays = map(_inputs.host, (scores, transition, mask, budget, z, tau))
    for_rows(pair_budget_rows, scores.shape[0], 30 * scores.numel(), *arrays)
    return z, tau


@_pair_budget.register_fake
def _(scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor) -> tuple[Tensor, Tensor]:
    return scores.new_empty(scores.shape), scores.new_empty(scores.shape[0])


@_inputs.opaque("pair_budget_backward", cuda="pair_budget_cuda.pair_budget_backward")
def _pair_budget_backward(g: Tensor, z: Tensor, transition: Tensor, mask: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    return _inputs.on_host(_pair_budget_backward, g, z, transition, mask, tau)


@_pair_budget_backward.register_kernel("cpu")
def _(g: Tensor, z: Tensor, transition: Tensor, mask: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    grad_s, grad_r = z.new_empty(z.shape), z.new_empty(transition.shape)
    arrays = map(_inputs.host, (g, z, transition, mask, tau > 0, grad_s, grad_r))
    for_rows(pair_budget_backward_rows, z.shape[0], 10 * z.numel(), *arrays)
    return grad_s, grad_r


@_pair_budget_backward.register_fake
def _(g: Tensor, z: Tensor, transition: Tensor, mask: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    return z.new_empty(z.shape), z.new_empty(transition.shape)


def _save(ctx, inputs, output):  # type: ignore[no-untyped-def]
    _, transition, mask, _ = inputs
    z, tau = output
    ctx.save_for_backward(z, transition, mask, tau)
    ctx.mark_non_differentiable(tau)
    ctx.set_materialize_grads(False)


def _backward(ctx, g, _):  # type: ignore[no-untyped-def]
    if g is None:
        return None, None, None, None
    return *_pair_budget_backward(g, *ctx.saved_tensors), None, None


_pair_budget.register_autograd(_backward, setup_context=_save)
