"""The base classes of methods for two texts, and their registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rationalizer.constraints import PairLayerConstraints
from rationalizer.discovery import Registry
from rationalizer.nn.aligners.matching_solver import MAP, relaxation
from rationalizer.nn.annotation_losses import fenchel_young_loss, per_annotated, prioritize_links
from rationalizer.nn.method import Method, MethodLoss
from rationalizer.ranges import Temperature
from rationalizer.text.budget import AverageBounds
from rationalizer.work_limits import check_time


class Alignment(NamedTuple):
    """Weights in [0, 1], 0 on padding. Both matrices are the same unless each text chooses for itself."""

    rows: Tensor  # (batch, m, n) the weights of hypothesis words for each premise word
    columns: Tensor  # (batch, m, n) the weights of premise words for each hypothesis word
    scores: Tensor  # (batch, m, n) scores that rank the pairs; undefined on padding
    constraints: PairLayerConstraints | None = None  # those it was selected under, for `annotation_loss`
    average: AverageBounds | None = None  # the same for an average budget

    @property
    def z(self) -> Tensor:
        """(batch, m, n) the alignment to show: nonzero exactly if information passes between the two words."""
        return self.rows if self.rows is self.columns else torch.maximum(self.rows, self.columns)


class Aligner(Method):
    """Aligns m premise words with n hypothesis words by their scores (batch, m, n).

    `budget` is (batch,) int64, the largest number of aligned pairs, at most min(m, n). The temperature divides the
    scores in training: the lower, the closer to 0/1. If the method `supports_constraints`, `forward` and `decode` also
    take `constraints`, a `PairLayerConstraints`, when there are any.

    Args:
        temperature: scores are divided by it in training: a high one spreads the weights over more word pairs.
    """

    def __init__(self, *, temperature: Temperature = 1.0) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        raise NotImplementedError

    def decode(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        raise NotImplementedError

    def loss(self, alignment: Alignment, task_loss: Tensor, *masks_and_budget: Tensor) -> MethodLoss:
        """The loss to minimise, from the (batch,) losses of the task; by default their mean."""
        return MethodLoss(task_loss.mean())

    @staticmethod
    def size(z: Tensor, *masks: Tensor) -> Tensor:
        return (z != 0).sum((-2, -1)).to(z.dtype)

    def guarantees(self, m: int, n: int, budget: int) -> dict[str, Any] | None:
        """Constraints that `decode` satisfies on m × n words, as arguments of `metrics.violations`; None if none."""
        return None


class MatchingAligner(Aligner):
    """Z = argmax ⟨scores/T, Z⟩ − Ω(Z) over the matchings that the method and the constraints allow: relaxed in
    training, with Ω = ½‖Z‖² by default; in decoding the best matching, 0/1."""

    has_annotation_loss = True
    supports_factors = True

    @classmethod
    def supports_constraints(cls, options: Mapping[str, Any]) -> bool:
        return True

    def matching_arguments(self, budget: Tensor) -> dict[str, Any]:
        """The method's own restrictions, as arguments of `MatchingSolver`."""
        return {}

    def guarantees(self, m: int, n: int, budget: int) -> dict[str, Any]:
        arguments = self.matching_arguments(torch.tensor(budget))
        if arguments.get("complete"):
            return {"rows" if m <= n else "columns": "exactly_one"}
        return {"budget": budget, "exact": "exactly" in arguments} if "budget" in arguments else {}

    def forward(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        constraints: PairLayerConstraints | None = None,
    ) -> Alignment:
        z = self.relax(scores, premise_mask, hypothesis_mask, budget=budget, constraints=constraints)
        return Alignment(z, z, scores, constraints)

    def relax(self, scores: Tensor, *masks: Tensor, budget: Tensor, constraints: PairLayerConstraints | None) -> Tensor:
        """The relaxed matching Z of training."""
        return relaxation(self.temperature)(scores, *masks, **self.matching_arguments(budget), constraints=constraints)

    @torch.no_grad()
    def decode(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        constraints: PairLayerConstraints | None = None,
    ) -> Alignment:
        z = MAP(scores, premise_mask, hypothesis_mask, **self.matching_arguments(budget), constraints=constraints)
        return Alignment(z, z, scores, constraints)

    def decode_budgets(
        self,
        selection: Alignment,
        masks: Sequence[Tensor],
        budget: Tensor,
        most: int,
        constraints: PairLayerConstraints | None = None,
    ) -> Tensor:
        """(batch, most, m, n) what `decode` aligns under the budgets 1 … `most`, but at most `budget` and at least as
        many pairs as are required."""
        premise, hypothesis = masks
        required = torch.zeros_like(budget)
        if constraints is not None and constraints.fixed is not None:
            required = (constraints.fixed > 0).sum((-2, -1))
        found = []
        for pairs in range(1, most + 1):
            check_time()
            allowed = torch.minimum(required.clamp(min=pairs), budget)
            found.append(self.decode(selection.scores, premise, hypothesis, allowed, constraints).z)
        return torch.stack(found, 1)

    def annotation_loss(
        self, alignment: Alignment, annotation: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor
    ) -> Tensor:
        """The layer's Fenchel–Young loss against the feasible matching nearest to the annotation, which may align
        phrases."""
        possible = premise_mask[:, :, None] & hypothesis_mask[:, None, :]
        scores = prioritize_links(alignment.scores, annotation, possible)
        optional = {} if alignment.average is None else {"average": alignment.average}
        target = self.decode(scores, premise_mask, hypothesis_mask, budget, alignment.constraints, **optional).z
        losses = fenchel_young_loss(alignment.scores, alignment.z, target, self.temperature)
        return per_annotated(losses, target)


ALIGNERS: Registry[type[Aligner]] = Registry("method")
register = ALIGNERS.register
