"""The budget layer: at most B words, without structure."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._declare import declare
from rationalizer.ops.kernels.budget_cpu import SMALLEST, budget_rows
from rationalizer.ops.kernels.numba_runtime import for_rows
from rationalizer.ops.sparsemax import project_out_mean


def budget(
    scores: Tensor,
    budget: int | Tensor,
    *,
    at_least: int | Tensor = 0,
    mask: Tensor | None = None,
    temperature: float = 1.0,
) -> Tensor:
    """Select at most `budget` words: argmin ‖z − scores/temperature‖² s.t. 0 ≤ z ≤ 1, at_least ≤ Σz ≤ budget.

    Args:
        scores: (batch, n) word scores; any number of leading dimensions.
        budget: the maximum of Σz; an int, or an int tensor (batch,). 0 gives zeros; a budget of at least the number of
            words has no effect.
        at_least: the minimum of Σz; an int, or an int tensor (batch,). `at_least=budget` selects exactly `budget`
            words. In a row with fewer words, all of them. Above the budget it is an error (NaN on CUDA).
        mask: (batch, n) bool, True on words. Masked positions are absent and get exactly 0.
        temperature: divides the scores; lower is sparser.

    Returns:
        (batch, n), z in the dtype of `scores`. Differentiable in `scores`.
    """
    rows = _inputs.as_rows(scores, mask, temperature)
    limit = _inputs.as_budget(budget, rows.shape[:-1], scores.device)
    lower = _inputs.as_lower_bound(at_least, rows.shape[:-1], scores.device)
    z, _ = _budget(rows.scores, rows.mask, limit, lower)
    return rows.restore(z)


def z_and_threshold(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Empty outputs: z, and the threshold τ that is subtracted from the scores.

    τ > 0 if the budget binds, τ < 0 if the lower bound binds. With equal bounds τ is never 0.
    """
    return scores.new_empty(scores.shape), scores.new_empty(scores.shape[0])


def _budget_backward(g: Tensor, z: Tensor, tau: Tensor) -> Tensor:
    # The face: the words strictly inside (0, 1), with a fixed sum if a bound binds.
    free = ((z > 0) & (z < 1)).to(g.dtype)
    return torch.where(tau[:, None] != 0, project_out_mean(g, free), g * free)


def _budget_in_torch(
    scores: Tensor, mask: Tensor, budget: Tensor, at_least: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Bisect for the threshold."""
    _inputs.require_solvable(scores, mask, budget, at_least=at_least)
    rows, n = scores.shape
    if n == 0:
        return scores.clone(), scores.new_zeros(rows)
    x = scores.masked_fill(~mask, -torch.inf)
    least = torch.minimum(_inputs.lower_bounds(budget, at_least), mask.sum(-1))
    free_sum = x.clamp(0, 1).sum(-1)
    low_binds = free_sum < least
    tight = ((budget > 0) & (free_sum > budget)) | low_binds
    bound = torch.where(low_binds, least, budget)
    # τ lies at most 1 below the (budget + 1)-th largest score, or the one of rank `least`; measured from there it loses
    # no digits.
    rank = torch.where(low_binds, least - 1, budget.clamp(max=n - 1))
    base = x.sort(-1, descending=True).values.gather(-1, rank[:, None])
    base = base.masked_fill(~tight[:, None], 0.0)
    near = (x - base).clamp(-1, 2)
    low, high = near.new_full((rows, 1), -1.0), near.new_zeros(rows, 1)
    for _ in range(60):
        middle = (low + high) / 2
        over = (near - middle).clamp(0, 1).sum(-1, keepdim=True) > bound[:, None]
        low, high = torch.where(over, middle, low), torch.where(over, high, middle)
    z = torch.where(tight[:, None], (near - high).clamp(0, 1), x.clamp(0, 1))
    tiny, tau = torch.finfo(x.dtype).tiny, (base + high)[:, 0]
    tau = torch.where(low_binds, tau.clamp(max=-tiny), tau.clamp(min=tiny))
    exact = (least == budget) & (budget > 0)
    tau = torch.where(tight, tau, exact.to(tau) * SMALLEST)
    return z.masked_fill(budget[:, None] == 0, 0.0), tau


@declare(
    "budget",
    fake=z_and_threshold,
    outputs=("z", "tau"),
    backward=_budget_backward,
    cuda="budget_cuda.budget",
    elsewhere=_budget_in_torch,
)
def _budget(scores: Tensor, mask: Tensor, budget: Tensor, at_least: Tensor | None = None) -> tuple[Tensor, Tensor]:
    _inputs.require_solvable(scores, mask, budget, at_least=at_least)
    least = _inputs.lower_bounds(budget, at_least)
    z, tau = z_and_threshold(scores)
    for_rows(budget_rows, scores.shape[0], 10 * scores.numel(), scores, mask, least, budget, z, tau)
    return z, tau
