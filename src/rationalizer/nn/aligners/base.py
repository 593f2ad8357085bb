"""What the methods for two texts have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from rationalizer.constraints import PairLayerConstraints
from rationalizer.nn.aligners.matching_solver import decide, relax
from rationalizer.nn.annotation_losses import layer_loss, lifted, per_marked
from rationalizer.nn.method import Method, Objective, register_in
from rationalizer.ranges import Temperature


class Alignment(NamedTuple):
    """Weights in [0, 1], 0 on padding. Both are the same matrix unless each text chooses for itself."""

    rows: Tensor  # (batch, m, n) what each premise word takes of the hypothesis words
    columns: Tensor  # (batch, m, n) what each hypothesis word takes of the premise words
    scores: Tensor  # (batch, m, n) what ranks the pairs; meaningless on padding

    @property
    def z(self) -> Tensor:
        """(batch, m, n) the alignment to show: not 0 exactly where one word reaches the other."""
        return self.rows if self.rows is self.columns else torch.maximum(self.rows, self.columns)


class Aligner(Method):
    """Aligns m premise words with n hypothesis words by their scores (batch, m, n).

    `budget` is (batch,) int64, how many pairs may be aligned, at most min(m, n). The temperature divides the scores
    in training: lower is closer to a decision. A method that `takes_constraints` also takes their `limits`.
    """

    def __init__(self, *, temperature: Temperature = 1.0) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        raise NotImplementedError

    def decode(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        raise NotImplementedError

    def objective(
        self,
        alignment: Alignment,
        task_loss: Tensor,
        *masks_and_budget: Tensor,
        limits: PairLayerConstraints | None = None,
    ) -> Objective:
        """What to minimise, from the (batch,) losses of the task; by default their mean."""
        return Objective(task_loss.mean())

    @staticmethod
    def size(z: Tensor, *masks: Tensor) -> Tensor:
        return (z != 0).sum((-2, -1)).to(z.dtype)

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any] | None:
        """What `decode` promises for m × n words, as arguments of `metrics.violations`; None: nothing."""
        return None


class MatchingAligner(Aligner):
    """Z = argmax ⟨scores/T, Z⟩ − Ω(Z) over the matchings that the method and its constraints allow: relaxed in
    training, with Ω = ½‖Z‖² unless a method has its own; the best matching, 0/1, in use."""

    imitates = True
    takes_factors = True

    @classmethod
    def takes_constraints(cls, options: Mapping[str, Any]) -> bool:
        return True

    def asked(self, budget: Tensor) -> dict[str, Any]:
        """What its matchings keep to without any constraints, as arguments of `Solver`."""
        return {}

    def forward(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        limits: PairLayerConstraints | None = None,
    ) -> Alignment:
        z = relax(self.temperature)(scores, premise_mask, hypothesis_mask, **self.asked(budget), limits=limits)
        return Alignment(z, z, scores)

    @torch.no_grad()
    def decode(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        limits: PairLayerConstraints | None = None,
    ) -> Alignment:
        z = decide(scores, premise_mask, hypothesis_mask, **self.asked(budget), limits=limits)
        return Alignment(z, z, scores)

    def imitation(
        self,
        alignment: Alignment,
        marked: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        limits: PairLayerConstraints | None = None,
    ) -> Tensor:
        """The layer's own loss against the matching nearest to what is marked: people align phrases, too."""
        possible = premise_mask[:, :, None] & hypothesis_mask[:, None, :]
        nearest = lifted(alignment.scores, marked, possible)
        wanted = self.decode(nearest, premise_mask, hypothesis_mask, budget, limits).z
        return per_marked(layer_loss(alignment.scores, alignment.z, wanted, self.temperature), wanted)


ALIGNERS: dict[str, type[Aligner]] = {}

_A = TypeVar("_A", bound=type[Aligner])


def register(name: str) -> Callable[[_A], _A]:
    """Makes an aligner class known as `name`."""
    return register_in(ALIGNERS, name)
