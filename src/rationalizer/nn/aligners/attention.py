"""Each text attends to the other on its own: plain ESIM, and its Gumbel version."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer import ops
from rationalizer.nn.aligners.base import Aligner, Alignment, register


@register("softmax")
class Softmax(Aligner):
    """Every word takes a weighted average of all words of the other text: nothing is left out."""

    uses_budget = False

    def forward(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        real = premise_mask[:, :, None] & hypothesis_mask[:, None, :]
        # A finite stand-in for -inf keeps rows of padding free of NaN.
        masked = (scores.float() / self.temperature).masked_fill(~real, torch.finfo(torch.float32).min)
        rows, columns = (masked.softmax(dim).masked_fill(~real, 0.0).to(scores.dtype) for dim in (-1, -2))
        return Alignment(rows, columns, scores)

    def decode(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        return self(scores, premise_mask, hypothesis_mask, budget)


@register("gumbel")
class GumbelMatching(Aligner):
    """softmax((scores + Gumbel noise)/T) in each direction in training, each word's best partner in use."""

    uses_budget = False

    def forward(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        return self._align(scores, premise_mask, hypothesis_mask, training=True)

    @torch.no_grad()
    def decode(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        return self._align(scores, premise_mask, hypothesis_mask, training=False)

    def _align(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, *, training: bool) -> Alignment:
        found = ops.gumbel_matching(
            scores,
            temperature=self.temperature,
            training=training,
            row_mask=premise_mask,
            column_mask=hypothesis_mask,
        )
        return Alignment(found.rows, found.columns, scores)
