"""Each text attends to the other independently: plain ESIM, and its Gumbel version."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from rationalizer import ops
from rationalizer.nn.aligners.base import Aligner, Alignment, register
from rationalizer.nn.precision import at_least_float32


class TwoWayAttention(Aligner):
    uses_budget = False
    has_annotation_loss = True

    def logits(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Which pairs are real, and scores/T, masked elsewhere."""
        real = premise_mask[:, :, None] & hypothesis_mask[:, None, :]
        # A finite value instead of -inf keeps rows of padding free of NaN.
        return real, (at_least_float32(scores) / self.temperature).masked_fill(~real, torch.finfo(torch.float32).min)

    def annotation_loss(
        self, alignment: Alignment, annotation: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor
    ) -> Tensor:
        """The cross-entropy of each aligned word's weights, in both directions, against equal weights on its annotated
        partners."""
        _, logits = self.logits(alignment.scores, premise_mask, hypothesis_mask)
        losses, words = torch.zeros_like(logits[:, 0, 0]), torch.zeros_like(logits[:, 0, 0])
        for dim in (-1, -2):
            target = annotation / annotation.sum(dim, keepdim=True).clamp(min=1)
            losses = losses - (target * logits.log_softmax(dim)).masked_fill(~annotation, 0.0).sum((-2, -1))
            words = words + annotation.any(dim).sum(-1)
        return losses / words.clamp(min=1)


@register("softmax")
class SoftmaxAttention(TwoWayAttention):
    """Every word takes a weighted average of all words of the other text: nothing is left out."""

    def forward(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        real, logits = self.logits(scores, premise_mask, hypothesis_mask)
        rows, columns = (logits.softmax(dim).masked_fill(~real, 0.0).to(scores.dtype) for dim in (-1, -2))
        return Alignment(rows, columns, scores)

    decode = forward


@register("gumbel")
class GumbelAttention(TwoWayAttention):
    """softmax((scores + Gumbel noise)/T) in each direction in training, each word's best partner in decoding."""

    def forward(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        return self._align(scores, premise_mask, hypothesis_mask, training=True)

    @torch.no_grad()
    def decode(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        return self._align(scores, premise_mask, hypothesis_mask, training=False)

    def _align(self, scores: Tensor, row_mask: Tensor, column_mask: Tensor, *, training: bool) -> Alignment:
        sample = partial(ops.gumbel_matching, temperature=self.temperature, training=training)
        matching = sample(scores, row_mask=row_mask, column_mask=column_mask)
        return Alignment(matching.rows, matching.columns, scores)
