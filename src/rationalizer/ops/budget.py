"""The budget layer: at most B tokens, no structure."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops.kernels.budget_cpu import budget_rows
from rationalizer.ops.kernels.numba_runtime import for_rows
from rationalizer.ops.sparsemax import project_out_mean


def budget(scores: Tensor, budget: int | Tensor, *, mask: Tensor | None = None, temperature: float = 1.0) -> Tensor:
    """Select at most `budget` tokens: argmin ‖z − scores/temperature‖² s.t. 0 <= z <= 1, Σz <= budget.

    Args:
        scores: (batch, n) token scores; any number of leading dimensions.
        budget: how many tokens may be selected; an int, or an int tensor (batch,). 0 gives zeros; a budget of at
            least the number of real tokens switches the constraint off.
        mask: (batch, n) bool, True on real tokens. The others count as absent and get exactly 0.
        temperature: divides the scores; lower is sparser.

    Returns:
        (batch, n), z in the dtype of `scores`. Differentiable in `scores`.
    """
    rows = _inputs.as_rows(scores, mask, temperature)
    limit = _inputs.as_budget(budget, rows.shape[:-1], scores.device)
    z, _ = _budget(rows.scores, rows.mask, limit)
    return rows.restore(z)


@_inputs.opaque("budget", cuda="budget_cuda.budget")
def _budget(scores: Tensor, mask: Tensor, budget: Tensor) -> tuple[Tensor, Tensor]:
    _inputs.require_finite_scores(scores, mask)
    _inputs.require_budget(budget)
    rows, n = scores.shape
    if n == 0:
        return scores.clone(), scores.new_zeros(rows)
    x = scores.masked_fill(~mask, -torch.inf)
    tight = (budget > 0) & (x.clamp(0, 1).sum(-1) > budget)
    # τ lies at most 1 below the first score that does not fit whole; counted from there nothing loses digits.
    base = x.sort(-1, descending=True).values.gather(-1, budget.clamp(max=n - 1)[:, None])
    base = base.masked_fill(~tight[:, None], 0.0)
    near = (x - base).clamp(-1, 2)
    low, high = near.new_full((rows, 1), -1.0), near.new_zeros(rows, 1)
    for _ in range(60):
        middle = (low + high) / 2
        over = (near - middle).clamp(0, 1).sum(-1, keepdim=True) > budget[:, None]
        low, high = torch.where(over, middle, low), torch.where(over, high, middle)
    z = torch.where(tight[:, None], (near - high).clamp(0, 1), x.clamp(0, 1))
    tau = torch.where(tight, (base + high)[:, 0].clamp(min=torch.finfo(x.dtype).tiny), 0.0)
    return z.masked_fill(budget[:, None] == 0, 0.0), tau


@_budget.register_kernel("cpu")
def _(scores: Tensor, mask: Tensor, budget: Tensor) -> tuple[Tensor, Tensor]:
    _inputs.require_finite_scores(scores, mask)
    _inputs.require_budget(budget)
    z, tau = scores.new_empty(scores.shape), scores.new_empty(scores.shape[0])
    arrays = map(_inputs.host, (scores, mask, budget, z, tau))
    for_rows(budget_rows, scores.shape[0], 10 * scores.numel(), *arrays)
    return z, tau


@_budget.register_fake
def _(scores: Tensor, mask: Tensor, budget: Tensor) -> tuple[Tensor, Tensor]:
    return scores.new_empty(scores.shape), scores.new_empty(scores.shape[0])


def _save(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.save_for_backward(*output)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _backward(ctx, g, _):  # type: ignore[no-untyped-def]
    if g is None:
        return None, None, None
    z, tau = ctx.saved_tensors
    # The face: tokens strictly inside (0, 1), their sum fixed where the budget binds (τ > 0).
    free = ((z > 0) & (z < 1)).to(g.dtype)
    return torch.where(tau[:, None] > 0, project_out_mean(g, free), g * free), None, None


_budget.register_autograd(_backward, setup_context=_save)
