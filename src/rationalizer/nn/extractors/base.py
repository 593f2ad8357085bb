"""The base class of methods for one text, and their registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from rationalizer import ops
from rationalizer.constraints import LayerConstraints
from rationalizer.discovery import Registry
from rationalizer.nn.method import Method, MethodLoss
from rationalizer.text.budget import AverageBounds
from rationalizer.work_limits import check_time


class Extraction(NamedTuple):
    z: Tensor  # (batch, n) weights of the words, in [0, 1]; 0 if not selected and on padding
    scores: Tensor  # (batch, n) scores that rank the words; undefined on padding
    info: ops.Info | None = None  # convergence of the layer's solver in each row, if it has one
    constraints: LayerConstraints | None = None  # those it was selected under, for `loss` and `annotation_loss`
    average: AverageBounds | None = None  # the same for an average budget


class Extractor(Method):
    """Selects words.

    `states` are the encoder's, (batch, n, size). `mask` is True on words that can be selected; all others count as
    absent. `budget` is (batch,) int64. If the method `supports_constraints`, `forward` and `decode` also take
    `constraints`, a `LayerConstraints`, when there are any; if it `supports_average`, `average`, an `AverageBounds`.
    """

    uses_generator: ClassVar[bool] = True  # whether it needs the generator's states
    passes_gradient: ClassVar[bool] = True  # whether the predictor's gradient reaches the generator through z
    supports_labels: ClassVar[bool] = False  # whether it can select one rationale for each label (`score_labels`)

    def __init__(self, size: int) -> None:
        super().__init__()

    def initialize(self, states: Tensor, mask: Tensor) -> None:
        """Called once, before training, with the states of some training texts, if it `initializes_from_texts`."""

    def forward(self, states: Tensor, mask: Tensor, budget: Tensor) -> Extraction:
        raise NotImplementedError

    def decode(self, states: Tensor, mask: Tensor, budget: Tensor) -> Extraction:
        raise NotImplementedError

    def decode_scores(
        self, scores: Tensor, mask: Tensor, budget: Tensor, constraints: LayerConstraints | None = None
    ) -> Tensor:
        """The selection that `decode` returns, from the scores of its `Extraction`."""
        raise NotImplementedError

    def decode_budgets(
        self,
        selection: Extraction,
        masks: Sequence[Tensor],
        budget: Tensor,
        most: int,
        constraints: LayerConstraints | None = None,
    ) -> Tensor:
        """(batch, most, n) what `decode` selects under the budgets 1 … `most`, but at most `budget`; if the
        constraints require more words, under the smallest budget that satisfies them."""
        (mask,) = masks
        lowest = torch.ones_like(budget)
        if constraints is not None and constraints.fixed is not None:
            arguments = self.tightened(constraints).arguments()
            lowest = ops.spans_map(-torch.ones_like(selection.scores), budget, mask=mask, **arguments).sum(-1).long()
        found = []
        for words in range(1, most + 1):
            check_time()
            allowed = torch.minimum(lowest.clamp(min=words), budget)
            found.append(self.decode_scores(selection.scores, mask, allowed, constraints))
        return torch.stack(found, 1)

    def tightened(self, constraints: LayerConstraints) -> LayerConstraints:
        """The constraints with those that the method adds."""
        return constraints

    def loss(self, extraction: Extraction, task_loss: Tensor, mask: Tensor, budget: Tensor) -> MethodLoss:
        """The loss to minimise, from the (batch,) losses of the task; by default their mean."""
        return MethodLoss(task_loss.mean())

    @staticmethod
    def size(z: Tensor, *masks: Tensor) -> Tensor:
        return (z != 0).sum(-1) / masks[0].sum(-1)


class LinearExtractor(Extractor):
    """Scores words by a linear function of their states, and satisfies constraints."""

    has_annotation_loss = True

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.scorer = nn.Linear(size, 1)

    @classmethod
    def supports_constraints(cls, options: Mapping[str, Any]) -> bool:
        return True

    def score(self, states: Tensor) -> Tensor:
        """(batch, n) from the states (batch, n, size); (batch · labels, n) after `score_labels`."""
        return self.scorer(states).mT.flatten(0, 1)

    def score_labels(self, labels: int) -> None:
        """Score every word for each label: the rows of a batch are then texts × labels, the labels of a text next to
        each other. Masks, budgets and constraints must have as many rows."""
        bias = self.scorer.bias.detach()
        self.scorer = nn.Linear(self.scorer.in_features, labels)
        if bias.eq(1).all():
            nn.init.ones_(self.scorer.bias)


EXTRACTORS: Registry[type[Extractor]] = Registry("method")
register = EXTRACTORS.register


@torch.no_grad()
def largest_selection(scores: Tensor, mask: Tensor, budget: Tensor, constraints: LayerConstraints) -> Tensor:
    """Of the selections with the most words that budget and constraints allow, the one with the highest total; 0/1.

    Without constraints these are the `budget` words with the highest scores, under `spans=1` the best window of that
    length.
    """
    real = scores.double().masked_fill(~mask, 0.0)
    low, high = real.amin(-1, keepdim=True), real.amax(-1, keepdim=True)
    # One more word outweighs any difference between the scores of all others.
    shifted = real - low + (high - low + 1) * (budget[:, None] + 1)
    return ops.spans_map(shifted, budget, mask=mask, **constraints.arguments()).to(scores.dtype)


def neighbours(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Pairs of adjacent words after masked words are removed: the left words' values, the right words', and whether
    both are real."""
    order = (~mask).to(torch.uint8).argsort(dim=-1, stable=True)
    closed = values.gather(-1, order)
    real = mask.gather(-1, order)
    return closed[:, :-1], closed[:, 1:], real[:, 1:]
