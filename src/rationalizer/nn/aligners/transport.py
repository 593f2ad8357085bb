"""Optimal transport with dummy words, after Swanson et al. (2020): an entropic plan in training, its limit in use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rationalizer import ops
from rationalizer.constraints import PairLimits
from rationalizer.nn.aligners.base import Alignment, MatchingAligner, register
from rationalizer.nn.aligners.solving import decide


class _Transport(MatchingAligner):
    """Keeps to constraints where it decodes; the plan that it learns by knows none."""

    @classmethod
    def takes_constraints(cls, options: Mapping[str, Any]) -> bool:
        return True


@register("ot-relaxed")
class RelaxedTransport(_Transport):
    """Relaxed 1:1: a word may stay unaligned, at the score 0. Without entropy this is `at-most-one`'s MAP."""

    uses_budget = False

    def forward(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        limits: PairLimits | None = None,
    ) -> Alignment:
        z = ops.sinkhorn(
            scores, kind="relaxed", epsilon=self.temperature, row_mask=premise_mask, column_mask=hypothesis_mask
        )
        return Alignment(z, z, scores)

    @torch.no_grad()
    def decode(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        limits: PairLimits | None = None,
    ) -> Alignment:
        z = decide(scores, premise_mask, hypothesis_mask, limits=limits)
        return Alignment(z, z, scores)

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any]:
        return {}


@register("ot-exact-k")
class ExactTransport(_Transport):
    """Exact k: `budget` pairs are aligned, whatever their scores."""

    def forward(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        limits: PairLimits | None = None,
    ) -> Alignment:
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
    def decode(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        limits: PairLimits | None = None,
    ) -> Alignment:
        z = decide(scores, premise_mask, hypothesis_mask, budget=budget, exactly=True, limits=limits)
        return Alignment(z, z, scores)

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any]:
        return {"budget": budget, "exact": True}
