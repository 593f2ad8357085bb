"""SPECTRA's three matchings: relaxed in training, 0/1 in decoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from rationalizer.constraints import PairLayerConstraints
from rationalizer.nn.aligners.base import Alignment, MatchingAligner, register
from rationalizer.nn.aligners.matching_solver import MAP, relaxation
from rationalizer.nn.average_budget import AverageMethod
from rationalizer.nn.method import MethodLoss
from rationalizer.text.budget import AverageBounds


@register("at-most-one")
class AtMostOneMatching(MatchingAligner):
    """M:AtMostOne2: each word of either text is aligned with at most one of the other."""

    uses_budget = False


@register("budget")
class BudgetMatching(MatchingAligner, AverageMethod):
    """M:Budget: at most one partner per word, and at most `budget` pairs in all; or a number on average."""

    def matching_arguments(self, budget: Tensor) -> dict[str, Any]:
        return {"budget": budget}

    def forward(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        constraints: PairLayerConstraints | None = None,
        average: AverageBounds | None = None,
    ) -> Alignment:
        masks = premise_mask, hypothesis_mask
        average = self.feasible(average, masks, budget, constraints)
        if average is None:
            return super().forward(scores, *masks, budget, constraints)
        shifted = self.subtract_multiplier(scores, average)
        z = relaxation(self.temperature)(
            shifted, *masks, budget=budget, at_least=average.at_least, constraints=constraints
        ).to(scores.dtype)
        return Alignment(z, z, scores, constraints, average)

    @torch.no_grad()
    def decode(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        constraints: PairLayerConstraints | None = None,
        average: AverageBounds | None = None,
    ) -> Alignment:
        masks = premise_mask, hypothesis_mask
        average = self.feasible(average, masks, budget, constraints)
        if average is None:
            return super().decode(scores, *masks, budget, constraints)
        shifted = self.subtract_multiplier(scores, average)
        z = self.decode_average(shifted, masks, budget, average.at_least, constraints).to(scores.dtype)
        return Alignment(z, z, scores, constraints, average)

    def loss(self, alignment: Alignment, task_loss: Tensor, *masks_and_budget: Tensor) -> MethodLoss:
        if alignment.average is None:
            return super().loss(alignment, task_loss, *masks_and_budget)
        *masks, budget = masks_and_budget
        multiplier = self.ascend(alignment.scores, masks, budget, alignment.average, alignment.constraints)
        return MethodLoss(task_loss.mean(), {"multiplier": multiplier})

    def decode_average(
        self,
        scores: Tensor,
        masks: Sequence[Tensor],
        budget: Tensor,
        at_least: Tensor,
        constraints: PairLayerConstraints | None,
    ) -> Tensor:
        return MAP(scores, *masks, budget=budget, at_least=at_least, constraints=constraints)

    def largest_size(self, masks: Sequence[Tensor], budget: Tensor, constraints: PairLayerConstraints) -> Tensor:
        premise, hypothesis = masks
        ones = torch.ones((*premise.shape, hypothesis.shape[1]), device=premise.device)
        return MAP(ones, *masks, budget=budget, constraints=constraints).sum((-2, -1))


@register("xor-at-most-one")
class CompleteMatching(MatchingAligner):
    """M:XorAtMostOne: each word of the shorter text is aligned with exactly one of the longer, no word twice.

    The paper requires exactly one partner for every premise word. That is infeasible if the premise is longer than
    the hypothesis, as in most pairs, so here the shorter text must be aligned completely.
    """

    uses_budget = False
    excluded_constraints: ClassVar[frozenset[str]] = frozenset({"exactly-k"})

    def matching_arguments(self, budget: Tensor) -> dict[str, Any]:
        return {"complete": True}
