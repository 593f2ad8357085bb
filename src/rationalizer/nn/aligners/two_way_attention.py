"""Each text attends to the other on its own: plain ESIM, and its Gumbel version."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer import ops
from rationalizer.nn.aligners.base import Aligner, Alignment, register
from rationalizer.nn.precision import single_or_more


class _Attention(Aligner):
    uses_budget = False
    imitates = True

    def masked(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Which pairs are real, and what the softmax is of."""
        real = premise_mask[:, :, None] & hypothesis_mask[:, None, :]
        # A finite stand-in for -inf keeps rows of padding free of NaN.
        return real, (single_or_more(scores) / self.temperature).masked_fill(~real, torch.finfo(torch.float32).min)

    def imitation(
        self, alignment: Alignment, marked: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor
    ) -> Tensor:
        """The cross-entropy of each aligned word's weights, in both directions, against equal ones on its partners."""
        _, masked = self.masked(alignment.scores, premise_mask, hypothesis_mask)
        losses, words = torch.zeros_like(masked[:, 0, 0]), torch.zeros_like(masked[:, 0, 0])
        for dim in (-1, -2):
            shares = marked / marked.sum(dim, keepdim=True).clamp(min=1)
            losses = losses - (shares * masked.log_softmax(dim)).masked_fill(~marked, 0.0).sum((-2, -1))
            words = words + marked.any(dim).sum(-1)
        return losses / words.clamp(min=1)


@register("softmax")
class Softmax(_Attention):
    """Every word takes a weighted average of all words of the other text: nothing is left out."""

    def forward(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        real, masked = self.masked(scores, premise_mask, hypothesis_mask)
        rows, columns = (masked.softmax(dim).masked_fill(~real, 0.0).to(scores.dtype) for dim in (-1, -2))
        return Alignment(rows, columns, scores)

    def decode(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        return self(scores, premise_mask, hypothesis_mask, budget)


@register("gumbel")
class GumbelMatching(_Attention):
    """softmax((scores + Gumbel noise)/T) in each direction in training, each word's best partner in use."""

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
