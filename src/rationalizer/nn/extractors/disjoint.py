"""Rationales of several labels that share no word.

    max Σ_k [ s_k·y_k + r Σ_i y_ki y_k,i+1 ]   s.t. Σ_i y_ki <= B_k,  Σ_k y_ki <= 1,  y ∈ {0, 1}

With r = 0 this is an assignment of words to labels, and is solved exactly. Otherwise every word has a price p_i >= 0,
which each label pays for it: for given prices each label's best selection is exact, and the prices follow the words
that several labels want (the subgradient of the Lagrangian dual). If no two labels want the same word, and every word
with a price is used, the selections are optimal. Else each label in turn selects anew among the words that the others
leave: the result is feasible, and no label can improve it alone, but all together might.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rationalizer import ops

if TYPE_CHECKING:
    from rationalizer.nn.extractors.structured_selection import StructuredExtractor

STEPS = 20  # of the prices
SWEEPS = 2  # in which every label selects anew


@torch.no_grad()
def select_disjoint(scores: Tensor, mask: Tensor, budget: Tensor, method: StructuredExtractor) -> Tensor:
    """(batch, labels, n) selections, 0/1, from scores (batch, labels, n), masks (batch, n), budgets (batch, labels)."""
    known = scores.double().masked_fill(~mask[:, None], 0.0)
    if method.transition == 0:
        return _assign(known, mask, budget).to(scores.dtype)
    y = _with_prices(known, mask, budget, float(method.transition))
    return _improve(known, mask, budget, float(method.transition), y).to(scores.dtype)


def _assign(scores: Tensor, mask: Tensor, budget: Tensor) -> Tensor:
    """Labels are columns, as many as the label's budget; words are rows."""
    batch, labels, n = scores.shape
    most = int(budget.max())
    columns = torch.arange(most, device=scores.device) < budget[..., None]  # (batch, labels, most)
    pairs = scores.mT[..., None].expand(batch, n, labels, most).flatten(2)
    possible = mask[:, :, None] & columns.flatten(1)[:, None]
    assigned = ops.matching_map(torch.where(possible, pairs, -1.0))  # pairs that do not raise the score are left out
    return assigned.view(batch, n, labels, most).amax(-1).mT


def _with_prices(scores: Tensor, mask: Tensor, budget: Tensor, transition: float) -> Tensor:
    prices = scores.new_zeros(mask.shape)
    real = mask.sum(-1, keepdim=True).clamp(min=1)
    spread = scores.std(1, unbiased=False).sum(-1, keepdim=True) / real + 1e-3 * abs(transition)
    y = _select(scores, mask, budget, transition)
    for step in range(STEPS):
        excess = y.sum(1) - 1
        if not (excess > 0).any():
            break
        prices = (prices + spread / (1 + step) ** 0.5 * excess).clamp(min=0)
        y = _select(scores - prices[:, None], mask, budget, transition)
    return y


def _improve(scores: Tensor, mask: Tensor, budget: Tensor, transition: float, y: Tensor) -> Tensor:
    """Give contested words to the label with the highest score, then let each label select anew."""
    best = torch.where(y > 0, scores, -torch.inf).argmax(1, keepdim=True)
    y = y * torch.zeros_like(y).scatter_(1, best, 1.0)
    never = -1 - 10 * (scores.abs().amax() + abs(transition))
    for _ in range(SWEEPS):
        for k in range(y.shape[1]):
            others = y.sum(1) - y[:, k]
            free = torch.where(others > 0, never, scores[:, k])
            y[:, k] = ops.sequence_budget_map(free, budget[:, k], transition=transition, mask=mask)
    return y


def _select(scores: Tensor, mask: Tensor, budget: Tensor, transition: float) -> Tensor:
    rows = mask.repeat_interleave(scores.shape[1], dim=0)
    y = ops.sequence_budget_map(scores.flatten(0, 1), budget.flatten(), transition=transition, mask=rows)
    return y.view_as(scores)
