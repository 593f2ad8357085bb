"""Deterministic selection under a budget with a bonus for neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from rationalizer import ops
from rationalizer.constraints import LayerConstraints
from rationalizer.nn.annotation_losses import fenchel_young_loss, move_weights, per_annotated, prioritize_words
from rationalizer.nn.average_budget import AverageMethod
from rationalizer.nn.extractors import graph_selection
from rationalizer.nn.extractors.base import Extraction, LinearExtractor, largest_selection, register
from rationalizer.nn.method import MethodLoss
from rationalizer.nn.precision import at_least_float32
from rationalizer.ops.sequence_budget import compile_sequence_budget
from rationalizer.ranges import Range, Temperature
from rationalizer.text.budget import AverageBounds

REMOVED = 3.0  # weight of a text's removed words: labels that go along with a word pull its score up in all other texts
Transition = Annotated[float, Range(-1e4, 1e4)]  # below 0 it is a penalty on neighbours
TRANSITION, LONG_TRANSITION = 0.1, 1.0  # the defaults of spectra for short and for long texts
LABEL_SPREAD = 1.0  # the default of start_spread for one rationale per label
AnyTransition = Annotated[float | None, Range(-1e4, 1e4, none=True)]
Spread = Annotated[float | None, Range(1e-4, 1e4, none=True)]
Bonus = Annotated[float, Range(0, 1e4)]  # the closed form does not allow a penalty
Tolerance = Annotated[float, Range(0, 1)]
_Relaxed = tuple[Tensor, ops.Info | None]


class StructuredExtractor(LinearExtractor, AverageMethod):
    """The settings that the structured methods share.

    Args:
        temperature: divides scores and transitions in training: a high one spreads the weights over more words.
        transition: added to the score for each pair of selected neighbours: the larger, the longer and fewer the spans.
        start_spread: standard deviation of a text's scores at the start, in temperatures; none: as initialized, or 1
            if each label has its own rationale.
    """

    learns_removed = True
    supports_labels = True
    supports_factors = True

    def __init__(
        self,
        size: int,
        *,
        temperature: Temperature = 1.0,
        transition: Transition = TRANSITION,
        start_spread: Spread = None,
    ) -> None:
        super().__init__(size)
        # All scores start positive, so that the budget binds: then only differences of scores matter and the bias
        # gets no gradient. A text with only negative scores would select nothing and never learn to.
        nn.init.ones_(self.scorer.bias)
        self.temperature = temperature
        self.transition = transition
        self.start_spread = start_spread
        self.initializes_from_texts = start_spread is not None

    def score_labels(self, labels: int) -> None:
        """Scores that hardly differ at the start select nearly all words a little, and for many labels these take many
        times the time and memory: so labels have a `start_spread` by default."""
        super().score_labels(labels)
        if self.start_spread is None:
            self.start_spread = LABEL_SPREAD
            self.initializes_from_texts = True

    @torch.no_grad()
    def initialize(self, states: Tensor, mask: Tensor) -> None:
        """Scale the scorer to `start_spread`; find the multiplier of an average budget that fits the first scores."""
        if self.start_spread is not None:
            self._scale_scores(states, mask, self.start_spread * self.temperature)
        self.initialize_multiplier(self.score(states), mask)

    def _scale_scores(self, states: Tensor, mask: Tensor, target: float) -> None:
        """Scale the scorer so that the standard deviation of a text's scores is `target`, for any encoder. Their mean
        stays far enough above 0 for the budget to bind."""
        biases = self.scorer.bias.repeat(len(states))[:, None]  # one per row
        scores = at_least_float32(self.score(states)) - biases
        means = scores.masked_fill(~mask, 0).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1)
        spread = (scores - means)[mask].square().mean().sqrt().clamp(min=1e-6)
        self.scorer.weight *= target / spread
        self.scorer.bias.fill_(max(1.0, 4 * target)).sub_(scores[mask].mean() * target / spread)

    def forward(
        self,
        states: Tensor,
        mask: Tensor,
        budget: Tensor,
        constraints: LayerConstraints | None = None,
        average: AverageBounds | None = None,
    ) -> Extraction:
        scores = self.score(states)
        average = self.feasible(average, (mask,), budget, constraints)
        z, info = self.relax_with_factors(scores, mask, budget, constraints, average)
        return Extraction(z, scores, info, constraints, average)

    def relax_with_factors(
        self,
        scores: Tensor,
        mask: Tensor,
        budget: Tensor,
        constraints: LayerConstraints | None,
        average: AverageBounds | None,
    ) -> _Relaxed:
        if average is not None:
            return self.relax(self.subtract_multiplier(scores, average), mask, budget, constraints, average.at_least)
        if constraints is not None and constraints.factors:
            settings = {"transition": self.transition, "temperature": self.temperature}
            return graph_selection.relax(scores, mask, budget, constraints, **settings), None
        return self.relax(scores, mask, budget, constraints)

    def relax(
        self,
        scores: Tensor,
        mask: Tensor,
        budget: Tensor,
        constraints: LayerConstraints | None,
        at_least: int | Tensor = 0,
    ) -> _Relaxed:
        raise NotImplementedError

    def loss(self, extraction: Extraction, task_loss: Tensor, mask: Tensor, budget: Tensor) -> MethodLoss:
        """The mean task loss, plus a term for texts with an empty selection that raises their best score.

        If all scores of a text are negative, nothing is selected and no gradient can change that: one large step could
        bring a model there for good. For all other texts the term is 0.
        """
        scores, constraints = at_least_float32(extraction.scores), extraction.constraints
        if extraction.average is not None:  # no text is empty that need not be
            multiplier = self.ascend(scores, (mask,), budget, extraction.average, constraints)
            return MethodLoss(task_loss.mean(), {"multiplier": multiplier})
        empty = mask.any(-1) & (extraction.z == 0).all(-1)
        if constraints is None:
            best = scores.masked_fill(~mask, -torch.inf).amax(-1)
        elif not empty.any():  # nearly always; skips the optimisation below
            return MethodLoss(task_loss.mean())
        else:
            # The mean score of the words nearest to being selected; 0 if none can ever be selected.
            nearest = largest_selection(scores, mask, budget, constraints)
            best = (scores * nearest).sum(-1) / nearest.sum(-1).clamp(min=1)
        return MethodLoss(task_loss.mean() + torch.where(empty, -best / self.temperature, 0.0).mean())

    def annotation_loss(
        self, extraction: Extraction, annotation: Tensor, mask: Tensor, budget: Tensor, removed: Tensor | None = None
    ) -> Tensor:
        """The layer's Fenchel–Young loss against the selections that prefer annotated words to all others, plus the
        loss against the selection whose `removed` words have given their weights to the others."""
        settings = {"transition": self.transition, "temperature": self.temperature}
        scores, z = extraction.scores, extraction.z
        preferred = prioritize_words(scores, annotation, mask, **settings)
        target, _ = self.relax_with_factors(preferred, mask, budget, extraction.constraints, extraction.average)
        losses = per_annotated(fenchel_young_loss(scores, z, target, self.temperature), annotation)
        if removed is None:
            return losses
        target = move_weights(z, removed, mask & ~removed)
        return losses + REMOVED * per_annotated(fenchel_young_loss(scores, z, target, self.temperature), removed)

    @torch.no_grad()
    def decode(
        self,
        states: Tensor,
        mask: Tensor,
        budget: Tensor,
        constraints: LayerConstraints | None = None,
        average: AverageBounds | None = None,
    ) -> Extraction:
        scores = self.score(states)
        if (bounds := self.feasible(average, (mask,), budget, constraints)) is not None:
            shifted = self.subtract_multiplier(scores, bounds)
            z = self.decode_average(shifted, (mask,), budget, bounds.at_least, constraints)
            return Extraction(z.to(scores.dtype), scores)
        return Extraction(self.decode_scores(scores, mask, budget, constraints), scores)

    def decode_scores(
        self, scores: Tensor, mask: Tensor, budget: Tensor, constraints: LayerConstraints | None = None
    ) -> Tensor:
        if constraints is None:
            return ops.sequence_budget_map(scores, budget, transition=self.transition, mask=mask)
        if constraints.factors:
            return graph_selection.decode(scores, mask, budget, constraints, transition=self.transition)
        return ops.spans_map(scores, budget, transition=self.transition, mask=mask, **constraints.arguments())

    @torch.no_grad()
    def decode_budgets(
        self,
        selection: Extraction,
        masks: Sequence[Tensor],
        budget: Tensor,
        most: int,
        constraints: LayerConstraints | None = None,
    ) -> Tensor:
        if constraints is not None:
            return super().decode_budgets(selection, masks, budget, most, constraints)
        return ops.sequence_budget_maps(selection.scores, most, transition=self.transition, mask=masks[0])

    def decode_average(
        self,
        scores: Tensor,
        masks: Sequence[Tensor],
        budget: Tensor,
        at_least: Tensor,
        constraints: LayerConstraints | None,
    ) -> Tensor:
        settings: dict[str, Any] = {"at_least": at_least, "transition": self.transition, "mask": masks[0]}
        if constraints is None:
            return ops.sequence_budget_map(scores, budget, **settings)
        return ops.spans_map(scores, budget, **settings, **constraints.arguments())

    def largest_size(self, masks: Sequence[Tensor], budget: Tensor, constraints: LayerConstraints) -> Tensor:
        ones = torch.ones(masks[0].shape, device=masks[0].device)
        return ops.spans_map(ones, budget, mask=masks[0], **constraints.arguments()).sum(-1)


@register("spectra")
class Spectra(StructuredExtractor):
    """H:SeqBudget: the expected selection under a sparse distribution over sequences of at most B words.

    max E_p[s·y + r Σ y_i y_{i+1}] − ½‖E_p[y]‖², s = scores/T and r = transition/T; decoded by its MAP, 0/1. Under
    constraints the distribution is over the feasible sequences, in training and in decoding. In training z may deviate
    from the exact solution by `mask_tolerance`, which saves time if scores hardly differ; decoding is exact.

    Args:
        transition: added to the score for each pair of selected neighbours: the larger, the longer and fewer the spans;
            none: 0.1, or 1 if the training texts have more than 100 words on average.
        mask_tolerance: how far selections in training may be from the optimum; 0: exact.
    """

    def __init__(
        self, size: int, *, transition: AnyTransition = None, mask_tolerance: Tolerance = 1e-3, **settings: Any
    ) -> None:
        super().__init__(size, transition=TRANSITION if transition is None else transition, **settings)
        self.mask_tolerance = mask_tolerance

    @classmethod
    def compile_ahead(cls) -> None:
        compile_sequence_budget()

    def relax(
        self,
        scores: Tensor,
        mask: Tensor,
        budget: Tensor,
        constraints: LayerConstraints | None,
        at_least: int | Tensor = 0,
    ) -> _Relaxed:
        common: dict[str, Any] = {"transition": self.transition, "mask": mask, "temperature": self.temperature}
        common |= {"tolerance": self.mask_tolerance, "return_info": True}
        if constraints is None:
            return ops.sequence_budget(scores, budget, at_least=at_least, **common)
        return ops.spans(scores, budget, at_least=at_least, **common, **constraints.arguments())


@register("pair-budget")
class PairBudget(StructuredExtractor):
    """The same score over the local polytope of the PAIR factors and the BUDGET factor, in closed form.

    Decoded by the MAP over 0/1 selections, which both relaxations share. A transition well above the spread of the
    scores fuses all words, and then no gradient distinguishes them: the default is small. Only `decode` satisfies
    constraints; the closed form used in training ignores them.
    """

    def __init__(self, size: int, *, transition: Bonus = 0.01, **settings: Any) -> None:
        super().__init__(size, transition=transition, **settings)

    def relax(
        self,
        scores: Tensor,
        mask: Tensor,
        budget: Tensor,
        constraints: LayerConstraints | None,
        at_least: int | Tensor = 0,
    ) -> _Relaxed:
        settings: dict[str, Any] = {"transition": self.transition, "temperature": self.temperature}
        return ops.pair_budget(scores, budget, at_least=at_least, mask=mask, **settings), None
