"""Optimal transport with dummy words, after Swanson et al. (2020): an entropic plan in training, its limit in use."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rationalizer import ops
from rationalizer.nn.aligners.base import Aligner, Alignment, register


@register("ot-relaxed")
class RelaxedTransport(Aligner):
    """Relaxed 1:1: a word may stay unaligned, at the score 0. Without entropy this is `at-most-one`'s MAP."""

    uses_budget = False

    def forward(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        z = ops.sinkhorn(
            scores, kind="relaxed", epsilon=self.temperature, row_mask=premise_mask, column_mask=hypothesis_mask
        )
        return Alignment(z, z, scores)

    @torch.no_grad()
    def decode(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        z = ops.matching_map(scores, row_mask=premise_mask, column_mask=hypothesis_mask)
        return Alignment(z, z, scores)

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any]:
        return {}


@register("ot-exact-k")
class ExactTransport(Aligner):
    """Exact k: `budget` pairs are aligned, whatever their scores."""

    def forward(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        z = ops.sinkhorn(
            scores,
            kind="exact_k",
            k=budget,
            epsilon=self.temperature,
            row_mask=premise_mask,
            column_mask=hypothesis_mask,
        )
        return Alignment(z, z, scores)

    @torch.no_grad()
    def decode(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        # With positive scores a matching of fewer pairs than allowed can always be improved by one more.
        real = premise_mask[:, :, None] & hypothesis_mask[:, None, :]
        least = scores.masked_fill(~real, torch.inf).amin((-2, -1), keepdim=True)
        positive = torch.where(real, scores - least + 1, 0.0)
        z = ops.matching_map(positive, budget=budget, row_mask=premise_mask, column_mask=hypothesis_mask)
        return Alignment(z, z, scores)

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any]:
        return {"budget": budget, "exact": True}
