"""Optimal transport with dummy words, after Swanson et al. (2020): an entropic plan in training, its limit in use.

These keep to constraints where they decode; the plan that they learn by knows none.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from rationalizer import ops
from rationalizer.constraints import PairLayerConstraints
from rationalizer.nn.aligners.base import Alignment, MatchingAligner, register


class _Transport(MatchingAligner):
    def forward(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        limits: PairLayerConstraints | None = None,
    ) -> Alignment:
        plan = self.planned(budget)
        z = ops.sinkhorn(scores, epsilon=self.temperature, row_mask=premise_mask, column_mask=hypothesis_mask, **plan)
        return Alignment(z, z, scores)

    def planned(self, budget: Tensor) -> dict[str, Any]:
        """Arguments of `ops.sinkhorn`."""
        raise NotImplementedError


@register("ot-relaxed")
class RelaxedTransport(_Transport):
    """Relaxed 1:1: a word may stay unaligned, at the score 0. Without entropy this is `at-most-one`'s MAP."""

    uses_budget = False

    def planned(self, budget: Tensor) -> dict[str, Any]:
        return {"kind": "relaxed"}

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any]:
        return {}


@register("ot-exact-k")
class ExactTransport(_Transport):
    """Exact k: `budget` pairs are aligned, whatever their scores."""

    def planned(self, budget: Tensor) -> dict[str, Any]:
        return {"kind": "exact_k", "k": budget}

    def asked(self, budget: Tensor) -> dict[str, Any]:
        return {"budget": budget, "exactly": True}

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any]:
        return {"budget": budget, "exact": True}
