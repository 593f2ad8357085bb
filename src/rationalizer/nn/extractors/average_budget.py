"""The multiplier of an average budget: one number, subtracted from the scores of all words of all texts.

A text selects the words that are worth it, within its own bounds. The larger the multiplier, the fewer words are
selected, so bisection finds the multiplier of any average. In training, where scores change, it follows the decoded
share by dual ascent. The relaxed share would not do: the decoded one is far from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rationalizer.text.budget import AverageBounds, Budget

if TYPE_CHECKING:
    from rationalizer.nn.extractors.structured_selection import StructuredExtractor

STEP = 0.3  # of dual ascent, for each unit of the scores' standard deviation
BISECTIONS = 40
QUANTILES = 33

Rows = Sequence[tuple[Tensor, Tensor]]  # scores and masks, (batch, n) each


@torch.no_grad()
def mean_share(method: StructuredExtractor, budget: Budget, rows: Rows, multiplier: float) -> float:
    """The mean share of the words of a text that are selected with this multiplier."""
    total, texts = 0.0, 0
    for scores, mask in rows:
        bounds = budget.average_bounds(mask)
        assert bounds is not None
        z = method.decode_average(scores - multiplier, mask, budget.word_limit(mask), bounds.at_least)
        real = mask.any(-1)
        total += float(_shares(z, mask)[real].double().sum())
        texts += int(real.sum())
    return total / max(texts, 1)


def find_multiplier(method: StructuredExtractor, budget: Budget, rows: Rows) -> float:
    """The multiplier whose mean share is the average asked for."""
    low, high = _score_range(method, rows)
    return _bisect(lambda multiplier: mean_share(method, budget, rows, multiplier), float(budget.amount), low, high)


def multiplier_table(method: StructuredExtractor, budget: Budget, rows: Rows) -> tuple[list[float], list[float]]:
    """Mean shares, ascending, and the multipliers that give them, under the bounds of this budget.

    One of the shares is the budget's own average, as nearly as the texts allow.
    """
    low, high = _score_range(method, rows)
    words = torch.cat([scores[mask] for scores, mask in rows]) if rows else torch.zeros(0)
    candidates = {low, high, find_multiplier(method, budget, rows)}
    if len(words):
        # Two sets of quantiles: words that are selected alone, and with neighbours.
        ranks = (torch.linspace(0, 1, QUANTILES, dtype=torch.float64) * (len(words) - 1)).round().long()
        quantiles = words.double().sort().values[ranks.to(words.device)].tolist()
        candidates |= {value + bonus for value in quantiles for bonus in (0.0, float(method.transition))}
    table: dict[float, list[float]] = {}
    for multiplier in sorted(candidates):
        table.setdefault(mean_share(method, budget, rows, multiplier), []).append(multiplier)
    shares = sorted(table)
    return shares, [sum(table[share]) / len(table[share]) for share in shares]


@torch.no_grad()
def ascend(method: StructuredExtractor, scores: Tensor, mask: Tensor, budget: Tensor, average: AverageBounds) -> Tensor:
    """One step of dual ascent: the multiplier rises if more than the average share is decoded."""
    z = method.decode_average(scores - method.multiplier, mask, budget, average.at_least)
    lengths = mask.sum(-1, keepdim=True).clamp(min=1)
    centred = (scores - scores.masked_fill(~mask, 0).sum(-1, keepdim=True) / lengths).masked_fill(~mask, 0)
    variance = (centred.square().sum(-1, keepdim=True) / lengths).mean()
    share, variance = method.global_mean(torch.stack([_shares(z, mask).mean(), variance])).unbind()
    return method.multiplier + STEP * variance.sqrt() * (share - average.share)


def _shares(z: Tensor, mask: Tensor) -> Tensor:
    return z.sum(-1) / mask.sum(-1).clamp(min=1)


def _score_range(method: StructuredExtractor, rows: Rows) -> tuple[float, float]:
    """Multipliers at which every text is at its upper, and at its lower bound."""
    words = [scores[mask] for scores, mask in rows if mask.any()]
    if not words:
        return 0.0, 0.0
    margin = 2 * abs(float(method.transition)) + 1.0
    return min(float(s.min()) for s in words) - margin, max(float(s.max()) for s in words) + margin


def _bisect(share_of: Callable[[float], float], target: float, low: float, high: float) -> float:
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if share_of(middle) > target else (low, middle)
    return (low + high) / 2
