"""Sparse attention: weights on the simplex, most of them 0. There is no budget."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from rationalizer import ops
from rationalizer.nn.annotation_losses import fenchel_young_loss
from rationalizer.nn.extractors.base import Extraction, Extractor, register
from rationalizer.ranges import Temperature, Weight


class SparseAttention(Extractor):
    """Scores v·tanh(W h + b)/√d, and weights on the simplex, in training and in decoding.

    Args:
        temperature: scores are divided by it: a high one spreads the weights over more words.
    """

    uses_budget = False
    has_annotation_loss = True

    def __init__(self, size: int, *, temperature: Temperature = 0.1) -> None:
        super().__init__(size)
        self.hidden = nn.Linear(size, size)
        self.scorer = nn.Linear(size, 1, bias=False)
        # Unit variance, as the division by √d assumes. With smaller scores fusedmax fuses all words at the start,
        # its gradient is exactly 0, and it never learns.
        nn.init.normal_(self.scorer.weight)
        self.temperature = temperature

    def forward(self, states: Tensor, mask: Tensor, budget: Tensor) -> Extraction:
        scores = self.scorer(self.hidden(states).tanh()).squeeze(-1) / math.sqrt(states.shape[-1])
        return Extraction(self.attend(scores, mask), scores)

    decode = forward

    def attend(self, scores: Tensor, mask: Tensor) -> Tensor:
        raise NotImplementedError

    def annotation_loss(self, extraction: Extraction, annotation: Tensor, mask: Tensor, budget: Tensor) -> Tensor:
        """The layer's Fenchel–Young loss against equal weights on the annotated words."""
        target = annotation / annotation.sum(-1, keepdim=True).clamp(min=1)
        return fenchel_young_loss(extraction.scores, extraction.z, target, self.temperature)


@register("sparsemax")
class Sparsemax(SparseAttention):
    """argmin ‖z − scores/T‖² over the simplex."""

    def attend(self, scores: Tensor, mask: Tensor) -> Tensor:
        return ops.sparsemax(scores, mask=mask, temperature=self.temperature)


@register("fusedmax")
class Fusedmax(SparseAttention):
    """argmin ½‖z − scores/T‖² + tv Σ|z_i − z_{i+1}| over the simplex.

    Args:
        tv: penalty for each difference between neighbours: the larger, the longer the spans of equal weight.
    """

    def __init__(self, size: int, *, tv: Weight = 0.7, **settings: Any) -> None:
        super().__init__(size, **settings)
        self.tv = tv

    def attend(self, scores: Tensor, mask: Tensor) -> Tensor:
        return ops.fusedmax(scores, tv=self.tv, mask=mask, temperature=self.temperature)
