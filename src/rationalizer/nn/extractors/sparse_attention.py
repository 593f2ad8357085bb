"""Sparse attention: a distribution over the tokens, few of them with weight. No budget."""

from __future__ import annotations

import math

from torch import Tensor, nn

from rationalizer import ops
from rationalizer.nn.annotation_losses import layer_loss
from rationalizer.nn.extractors.base import Extraction, Extractor, register
from rationalizer.ranges import Temperature, Weight


class _Attention(Extractor):
    """Scores v·tanh(W h + b)/√d; weights on the simplex, in training as in use."""

    uses_budget = False
    imitates = True

    def __init__(self, size: int, *, temperature: Temperature = 0.1) -> None:
        super().__init__(size)
        self.hidden = nn.Linear(size, size)
        self.scorer = nn.Linear(size, 1, bias=False)
        # Unit variance, which the division by √d is for. With smaller scores fusedmax fuses all tokens at the
        # start, its gradient is exactly 0, and it stays there.
        nn.init.normal_(self.scorer.weight)
        self.temperature = temperature

    def forward(self, states: Tensor, mask: Tensor, budget: Tensor) -> Extraction:
        scores = self.scorer(self.hidden(states).tanh()).squeeze(-1) / math.sqrt(states.shape[-1])
        return Extraction(self.attend(scores, mask), scores)

    def decode(self, states: Tensor, mask: Tensor, budget: Tensor) -> Extraction:
        return self(states, mask, budget)

    def attend(self, scores: Tensor, mask: Tensor) -> Tensor:
        raise NotImplementedError

    def imitation(self, extraction: Extraction, marked: Tensor, mask: Tensor, budget: Tensor) -> Tensor:
        """The layer's own loss against equal weights on what is marked."""
        wanted = marked / marked.sum(-1, keepdim=True).clamp(min=1)
        return layer_loss(extraction.scores, extraction.z, wanted, self.temperature)


@register("sparsemax")
class Sparsemax(_Attention):
    """argmin ‖z − scores/T‖² over the simplex."""

    def attend(self, scores: Tensor, mask: Tensor) -> Tensor:
        return ops.sparsemax(scores, mask=mask, temperature=self.temperature)


@register("fusedmax")
class Fusedmax(_Attention):
    """argmin ½‖z − scores/T‖² + tv Σ|z_i − z_{i+1}| over the simplex."""

    def __init__(self, size: int, *, temperature: Temperature = 0.1, tv: Weight = 0.7) -> None:
        super().__init__(size, temperature=temperature)
        self.tv = tv

    def attend(self, scores: Tensor, mask: Tensor) -> Tensor:
        return ops.fusedmax(scores, tv=self.tv, mask=mask, temperature=self.temperature)
