"""Deterministic selection under a budget with a bonus for neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from rationalizer import ops
from rationalizer.constraints import LayerConstraints
from rationalizer.nn.annotation_losses import layer_loss, per_marked, raised
from rationalizer.nn.extractors import graph_selection as factored
from rationalizer.nn.extractors.base import Extraction, Extractor, best_of_most, register
from rationalizer.nn.method import Objective
from rationalizer.nn.precision import single_or_more
from rationalizer.ranges import Range, Temperature

Transition = Annotated[float, Range(-1e4, 1e4)]  # below 0 it is a price on neighbours
Spread = Annotated[float | None, Range(1e-4, 1e4, none=True)]
Bonus = Annotated[float, Range(0, 1e4)]  # the closed form knows no price
Tolerance = Annotated[float, Range(0, 1)]
_Mask = tuple[Tensor, ops.Info | None]


class _Structured(Extractor):
    takes_factors = True
    imitates = True

    def __init__(
        self, size: int, *, temperature: Temperature = 1.0, transition: Transition = 0.1, start_spread: Spread = None
    ) -> None:
        super().__init__(size)
        self.scorer = nn.Linear(size, 1)
        # All scores start positive, so that the budget binds: then only differences of scores matter and the
        # bias gets no gradient. A text with negative scores only would select nothing and never learn to.
        nn.init.ones_(self.scorer.bias)
        self.temperature = temperature
        self.transition = transition
        self.start_spread = start_spread
        self.starts_from_texts = start_spread is not None

    @torch.no_grad()
    def start(self, states: Tensor, mask: Tensor) -> None:
        """Scales the scorer so that the scores of a text differ by `start_spread` times the temperature: their standard
        deviation, whatever encoder is below. Their mean is far enough above 0 for the budget to bind all the same."""
        assert self.start_spread is not None
        scores = single_or_more(self.scorer(states).squeeze(-1)) - self.scorer.bias
        means = scores.masked_fill(~mask, 0).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1)
        spread = (scores - means)[mask].square().mean().sqrt().clamp(min=1e-6)
        wanted = self.start_spread * self.temperature
        self.scorer.weight *= wanted / spread
        self.scorer.bias.fill_(max(1.0, 4 * wanted)).sub_(scores[mask].mean() * wanted / spread)

    @classmethod
    def takes_constraints(cls, options: Mapping[str, Any]) -> bool:
        return True

    def forward(
        self, states: Tensor, mask: Tensor, budget: Tensor, limits: LayerConstraints | None = None
    ) -> Extraction:
        scores = self.scorer(states).squeeze(-1)
        z, info = self.relaxed(scores, mask, budget, limits)
        return Extraction(z, scores, info)

    def relaxed(self, scores: Tensor, mask: Tensor, budget: Tensor, limits: LayerConstraints | None) -> _Mask:
        if limits is not None and limits.factors:
            how = {"transition": self.transition, "temperature": self.temperature}
            return factored.relax(scores, mask, budget, limits, **how), None
        return self.relax(scores, mask, budget, limits)

    def relax(self, scores: Tensor, mask: Tensor, budget: Tensor, limits: LayerConstraints | None) -> _Mask:
        raise NotImplementedError

    def objective(
        self,
        extraction: Extraction,
        task_loss: Tensor,
        mask: Tensor,
        budget: Tensor,
        limits: LayerConstraints | None = None,
    ) -> Objective:
        """A text whose scores are all negative selects nothing, and gets no gradient that could change it: large steps
        can bring a model there for good. So its best score is pulled up until something is selected. To all other
        texts nothing is added."""
        scores = single_or_more(extraction.scores)
        empty = mask.any(-1) & (extraction.z == 0).all(-1)
        if limits is None:
            best = scores.masked_fill(~mask, -torch.inf).amax(-1)
        elif not empty.any():  # as nearly always; what comes nearest is a problem to solve
            return Objective(task_loss.mean())
        else:
            # The mean score of what comes nearest to being selected; 0 where nothing ever can be.
            nearest = best_of_most(scores, mask, budget, limits)
            best = (scores * nearest).sum(-1) / nearest.sum(-1).clamp(min=1)
        return Objective(task_loss.mean() + torch.where(empty, -best / self.temperature, 0.0).mean())

    def imitation(
        self,
        extraction: Extraction,
        marked: Tensor,
        mask: Tensor,
        budget: Tensor,
        limits: LayerConstraints | None = None,
    ) -> Tensor:
        """The layer's own loss against the selections in which what is marked comes first."""
        how = {"transition": self.transition, "temperature": self.temperature}
        first = raised(extraction.scores, marked, mask, **how)
        wanted, _ = self.relaxed(first, mask, budget, limits)
        return per_marked(layer_loss(extraction.scores, extraction.z, wanted, self.temperature), marked)

    @torch.no_grad()
    def decode(
        self, states: Tensor, mask: Tensor, budget: Tensor, limits: LayerConstraints | None = None
    ) -> Extraction:
        scores = self.scorer(states).squeeze(-1)
        if limits is None:
            z = ops.sequence_budget_map(scores, budget, transition=self.transition, mask=mask)
        elif limits.factors:
            z = factored.decide(scores, mask, budget, limits, transition=self.transition)
        else:
            z = ops.spans_map(scores, budget, transition=self.transition, mask=mask, **limits.arguments())
        return Extraction(z, scores)


@register("spectra")
class SequenceBudget(_Structured):
    """H:SeqBudget: the expected selection under a sparse distribution over sequences of at most B tokens.

    max E_p[s·y + r Σ y_i y_{i+1}] − ½‖E_p[y]‖², s = scores/T and r = transition/T; decoded by its MAP, 0/1. Under
    constraints the distribution is over the sequences that keep to them, in training as in use. In training z may be
    `mask_tolerance` from the exact one, which saves time where scores hardly differ; what is decoded is exact.
    """

    def __init__(
        self,
        size: int,
        *,
        temperature: Temperature = 1.0,
        transition: Transition = 0.1,
        start_spread: Spread = None,
        mask_tolerance: Tolerance = 1e-3,
    ) -> None:
        super().__init__(size, temperature=temperature, transition=transition, start_spread=start_spread)
        self.mask_tolerance = mask_tolerance

    def relax(self, scores: Tensor, mask: Tensor, budget: Tensor, limits: LayerConstraints | None) -> _Mask:
        common: dict[str, Any] = {"transition": self.transition, "mask": mask, "temperature": self.temperature}
        common |= {"tolerance": self.mask_tolerance, "return_info": True}
        if limits is None:
            return ops.sequence_budget(scores, budget, **common)
        return ops.spans(scores, budget, **common, **limits.arguments())


@register("pair-budget")
class PairBudget(_Structured):
    """The same score over the local polytope of the PAIR factors and the BUDGET factor, in closed form.

    Decoded by the MAP over 0/1 selections, which both relaxations share. A transition well above the spread
    of the scores fuses all tokens, and then no gradient tells them apart: the default is small. It keeps to constraints
    where it decodes; the closed form that it learns by knows none.
    """

    def __init__(
        self, size: int, *, temperature: Temperature = 1.0, transition: Bonus = 0.01, start_spread: Spread = None
    ) -> None:
        super().__init__(size, temperature=temperature, transition=transition, start_spread=start_spread)

    def relax(self, scores: Tensor, mask: Tensor, budget: Tensor, limits: LayerConstraints | None) -> _Mask:
        how = {"transition": self.transition, "temperature": self.temperature}
        return ops.pair_budget(scores, budget, mask=mask, **how), None
