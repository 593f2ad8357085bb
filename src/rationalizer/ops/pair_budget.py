"""The PAIR + BUDGET layer: a contiguity bonus in closed form."""

from __future__ import annotations

from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._declare import declare
from rationalizer.ops.budget import z_and_threshold
from rationalizer.ops.kernels.numba_runtime import for_rows
from rationalizer.ops.kernels.pair_budget_cpu import pair_budget_backward_rows, pair_budget_rows


def pair_budget(
    scores: Tensor,
    budget: int | Tensor,
    *,
    at_least: int | Tensor = 0,
    transition: float | Tensor = 0.0,
    mask: Tensor | None = None,
    temperature: float = 1.0,
) -> Tensor:
    """LP-SparseMAP of PAIR factors between neighbours and one BUDGET factor, in closed form:

    argmax s·z + Σ r_i min(z_i, z_{i+1}) − ½‖z‖² s.t. 0 ≤ z ≤ 1, at_least ≤ Σz ≤ budget, with s = scores/temperature
    and r = transition/temperature. A relaxation of `sequence_budget`: O(n), no iterations, and often the same solution.

    Args:
        scores: (batch, n) word scores; any number of leading dimensions.
        budget: the maximum of Σz; an int, or an int tensor (batch,).
        at_least: the minimum of Σz, as in `budget`.
        transition: the bonus r ≥ 0 for selecting two neighbours together; a number, (n − 1,) or (batch, n − 1).
            Differentiable. If words between a and b are masked, the transition of the neighbours a < b is that at a.
            Negative values are an error (NaN on CUDA); `sequence_budget` accepts them.
        mask: (batch, n) bool, True on words. Masked positions are absent and get exactly 0.
        temperature: divides scores and transitions.

    Returns:
        (batch, n), z in the dtype of `scores`. Differentiable in `scores` and `transition`.
    """
    rows = _inputs.as_rows(scores, mask, temperature)
    limit = _inputs.as_budget(budget, rows.shape[:-1], scores.device)
    edges = _inputs.as_transition(transition, rows, temperature)
    lower = _inputs.as_lower_bound(at_least, rows.shape[:-1], scores.device)
    z, _ = _pair_budget(rows.scores, edges, rows.mask, limit, lower)
    return rows.restore(z)


def gradients_like(z: Tensor, transition: Tensor) -> tuple[Tensor, Tensor]:
    """Empty gradients of scores and transitions."""
    return z.new_empty(z.shape), z.new_empty(transition.shape)


@declare("pair_budget_backward", fake=gradients_like, cuda="pair_budget_cuda.pair_budget_backward")
def _pair_budget_backward(g: Tensor, z: Tensor, transition: Tensor, mask: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    gradients = gradients_like(z, transition)
    for_rows(pair_budget_backward_rows, z.shape[0], 10 * z.numel(), g, z, transition, mask, tau != 0, *gradients)
    return gradients


@declare(
    "pair_budget",
    fake=z_and_threshold,
    outputs=("z", "tau"),
    backward=_pair_budget_backward,
    cuda="pair_budget_cuda.pair_budget",
)
def _pair_budget(
    scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor, at_least: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    _inputs.require_solvable(scores, mask, budget, transition, at_least)
    if (transition < 0).any():
        raise ValueError(
            f"transition must be at least 0, got {transition.min().item():g} (divided by the temperature); for "
            "negative transitions use sequence_budget, or a FactorGraph of Pair and Budget factors"
        )
    z, tau = z_and_threshold(scores)
    bounds = (_inputs.lower_bounds(budget, at_least), budget)
    for_rows(pair_budget_rows, scores.shape[0], 30 * scores.numel(), scores, transition, mask, *bounds, z, tau)
    return z, tau
