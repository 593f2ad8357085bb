"""The budget layer: at most B words, without structure."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._declare import declare
from rationalizer.ops.kernels.budget_cpu import budget_rows
from rationalizer.ops.kernels.numba_runtime import for_rows
from rationalizer.ops.sparsemax import project_out_mean


def budget(scores: Tensor, budget: int | Tensor, *, mask: Tensor | None = None, temperature: float = 1.0) -> Tensor:
    """Select at most `budget` words: argmin ‖z − scores/temperature‖² s.t. 0 ≤ z ≤ 1, Σz ≤ budget.

    Args:
        scores: (batch, n) word scores; any number of leading dimensions.
        budget: the maximum of Σz; an int, or an int tensor (batch,). 0 gives zeros; a budget of at least the number of
            words has no effect.
        mask: (batch, n) bool, True on words. Masked positions are absent and get exactly 0.
        temperature: divides the scores; lower is sparser.

    Returns:
        (batch, n), z in the dtype of `scores`. Differentiable in `scores`.
    """
    rows = _inputs.as_rows(scores, mask, temperature)
    limit = _inputs.as_budget(budget, rows.shape[:-1], scores.device)
    z, _ = _budget(rows.scores, rows.mask, limit)
    return rows.restore(z)


def z_and_threshold(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Empty outputs: z, and the threshold τ that is subtracted from the scores; τ > 0 if the budget binds."""
    return scores.new_empty(scores.shape), scores.new_empty(scores.shape[0])


def _budget_backward(g: Tensor, z: Tensor, tau: Tensor) -> Tensor:
    # The face: the words strictly inside (0, 1), with a fixed sum if the budget binds.
    free = ((z > 0) & (z < 1)).to(g.dtype)
    return torch.where(tau[:, None] > 0, project_out_mean(g, free), g * free)


def _budget_in_torch(scores: Tensor, mask: Tensor, budget: Tensor) -> tuple[Tensor, Tensor]:
    """Bisect for the threshold."""
    _inputs.require_solvable(scores, mask, budget)
    rows, n = scores.shape
    if n == 0:
        return scores.clone(), scores.new_zeros(rows)
    x = scores.masked_fill(~mask, -torch.inf)
    tight = (budget > 0) & (x.clamp(0, 1).sum(-1) > budget)
    # τ lies at most 1 below the (budget + 1)-th largest score; measured from there it loses no digits.
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


@declare(
    "budget",
    fake=z_and_threshold,
    outputs=("z", "tau"),
    backward=_budget_backward,
    cuda="budget_cuda.budget",
    elsewhere=_budget_in_torch,
)
def _budget(scores: Tensor, mask: Tensor, budget: Tensor) -> tuple[Tensor, Tensor]:
    _inputs.require_solvable(scores, mask, budget)
    z, tau = z_and_threshold(scores)
    for_rows(budget_rows, scores.shape[0], 10 * scores.numel(), scores, mask, budget, z, tau)
    return z, tau
