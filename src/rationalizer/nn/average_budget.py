"""The multiplier of an average budget: one number, subtracted from the scores of all words, or links, of all texts.

A text selects what is worth it, within its own bounds. The larger the multiplier, the less is selected, so bisection
finds the multiplier of any average. In training, where scores change, it follows the decoded share by dual ascent. The
relaxed share would not do: the decoded one is far from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rationalizer.nn.method import Method
from rationalizer.nn.precision import at_least_float32
from rationalizer.text.budget import AverageBounds, Budget

STEP = 0.3  # of dual ascent, for each unit of the scores' standard deviation
BISECTIONS = 24
QUANTILES = 33


class AverageMethod(Method):
    """A method that supports average budgets."""

    supports_average = True

    multiplier: Tensor  # only in training
    average: Budget | None = None
    transition: float = 0.0  # the bonus of a neighbour

    def track_average(self, budget: Budget) -> None:
        self.average = budget
        self.initializes_from_texts = True
        self.register_buffer("multiplier", torch.zeros(()))

    def decode_average(
        self, scores: Tensor, masks: Sequence[Tensor], budget: Tensor, at_least: Tensor, constraints: Any
    ) -> Tensor:
        """The best selection within the bounds, from scores minus the multiplier."""
        raise NotImplementedError

    def largest_size(self, masks: Sequence[Tensor], budget: Tensor, constraints: Any) -> Tensor:
        """(batch,) the number of words, or links, of the largest selection that budget and constraints allow."""
        raise NotImplementedError

    def feasible(
        self, average: AverageBounds | None, masks: Sequence[Tensor], budget: Tensor, constraints: Any
    ) -> AverageBounds | None:
        """The bounds without a minimum that the constraints do not allow: they prevail."""
        if average is None or constraints is None:
            return average
        largest = self.largest_size(masks, budget, constraints).to(average.at_least)
        return average._replace(at_least=torch.minimum(average.at_least, largest))

    def subtract_multiplier(self, scores: Tensor, average: AverageBounds) -> Tensor:
        """The scores under an average budget; a word is worth selecting if what is left is positive."""
        return at_least_float32(scores) - (self.multiplier if average.multiplier is None else average.multiplier)

    @torch.no_grad()
    def initialize_multiplier(self, scores: Tensor, *masks: Tensor) -> None:
        """Find the multiplier that fits the first scores."""
        if self.average is not None:
            row = ScoredTexts.of(self, self.average, at_least_float32(scores), masks)
            first = find_multiplier(self, float(self.average.amount), [row])
            self.multiplier = torch.full_like(self.multiplier, first)

    @torch.no_grad()
    def ascend(
        self, scores: Tensor, masks: Sequence[Tensor], budget: Tensor, average: AverageBounds, constraints: Any
    ) -> Tensor:
        """One step of dual ascent: the multiplier rises if more than the average share is decoded."""
        scores, real = at_least_float32(scores).flatten(1), _cells(masks).flatten(1)
        cells = scores.new_tensor(1.0) * real.sum(-1, keepdim=True).clamp(min=1)
        mean = scores.masked_fill(~real, 0).sum(-1, keepdim=True) / cells
        variance = ((scores - mean).masked_fill(~real, 0).square().sum(-1, keepdim=True) / cells).mean()
        shifted = scores.view(_cells(masks).shape) - self.multiplier
        z = self.decode_average(shifted, masks, budget, average.at_least, constraints)
        share, variance = self.global_mean(torch.stack([_shares(z, masks).to(scores).mean(), variance])).unbind()
        return self.multiplier + STEP * variance.sqrt() * (share - average.share)


class ScoredTexts(NamedTuple):
    """The scores of a batch of texts, or pairs of texts, and what limits their selections."""

    scores: Tensor
    masks: tuple[Tensor, ...]
    budget: Tensor
    at_least: Tensor
    constraints: Any = None

    @classmethod
    def of(
        cls, method: AverageMethod, budget: Budget, scores: Tensor, masks: tuple[Tensor, ...], constraints: Any = None
    ) -> ScoredTexts:
        limit = budget.word_limit(*masks)
        bounds = method.feasible(budget.average_bounds(*masks), masks, limit, constraints)
        assert bounds is not None
        return cls(scores, masks, limit, bounds.at_least, constraints)


@torch.no_grad()
def mean_share(method: AverageMethod, texts: Sequence[ScoredTexts], multiplier: float) -> float:
    """The mean share of the words of a text that are selected with this multiplier."""
    total, count = 0.0, 0
    for scores, masks, budget, at_least, constraints in texts:
        z = method.decode_average(scores - multiplier, masks, budget, at_least, constraints)
        real = _cells(masks).flatten(1).any(-1)
        total += float(_shares(z, masks)[real].double().sum())
        count += int(real.sum())
    return total / max(count, 1)


def find_multiplier(method: AverageMethod, share: float, texts: Sequence[ScoredTexts]) -> float:
    """The multiplier whose mean share is the average asked for."""
    low, high = _score_range(method, texts)
    return _bisect(lambda multiplier: mean_share(method, texts, multiplier), share, low, high)


def multiplier_table(
    method: AverageMethod, share: float, texts: Sequence[ScoredTexts]
) -> tuple[list[float], list[float]]:
    """Mean shares, ascending, and the multipliers that give them.

    One of the shares is the average asked for, as nearly as the texts allow.
    """
    low, high = _score_range(method, texts)
    scores = torch.cat([each.scores[_cells(each.masks)] for each in texts]) if texts else torch.zeros(0)
    candidates = {low, high, find_multiplier(method, share, texts)}
    if len(scores):
        # Two sets of quantiles: words that are selected alone, and with neighbours.
        ranks = (torch.linspace(0, 1, QUANTILES, dtype=torch.float64) * (len(scores) - 1)).round().long()
        quantiles = scores.double().sort().values[ranks.to(scores.device)].tolist()
        candidates |= {value + bonus for value in quantiles for bonus in (0.0, float(method.transition))}
    table: dict[float, list[float]] = {}
    for multiplier in sorted(candidates):
        table.setdefault(mean_share(method, texts, multiplier), []).append(multiplier)
    shares = sorted(table)
    return shares, [sum(table[share]) / len(table[share]) for share in shares]


def _cells(masks: Sequence[Tensor]) -> Tensor:
    """What can be selected: words (batch, n), or links (batch, m, n)."""
    return masks[0] if len(masks) == 1 else masks[0][:, :, None] & masks[1][:, None, :]


def _shares(z: Tensor, masks: Sequence[Tensor]) -> Tensor:
    """(batch,) of the words of a text, or of the shorter of two."""
    lengths = torch.stack([mask.sum(-1) for mask in masks]).amin(0)
    return z.flatten(1).sum(-1) / lengths.clamp(min=1)


def _score_range(method: AverageMethod, texts: Sequence[ScoredTexts]) -> tuple[float, float]:
    """Multipliers at which every text is at its upper, and at its lower bound."""
    scores = [real for each in texts if len(real := each.scores[_cells(each.masks)])]
    if not scores:
        return 0.0, 0.0
    margin = 2 * abs(float(method.transition)) + 1.0
    return min(float(s.min()) for s in scores) - margin, max(float(s.max()) for s in scores) + margin


def _bisect(share_of: Callable[[float], float], target: float, low: float, high: float) -> float:
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if share_of(middle) > target else (low, middle)
    return (low + high) / 2
