"""Optimal transport with dummy words, after Swanson et al. (2020): an entropic plan in training, its limit in decoding.

Only decoding satisfies constraints; the plan used in training ignores them.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from rationalizer import ops
from rationalizer.constraints import PairLayerConstraints
from rationalizer.nn.aligners.base import MatchingAligner, register


class TransportAligner(MatchingAligner):
    def relax(self, scores: Tensor, *masks: Tensor, budget: Tensor, constraints: PairLayerConstraints | None) -> Tensor:
        rows, columns = masks
        plan = self.sinkhorn_arguments(budget)
        return ops.sinkhorn(scores, epsilon=self.temperature, row_mask=rows, column_mask=columns, **plan)

    def sinkhorn_arguments(self, budget: Tensor) -> dict[str, Any]:
        raise NotImplementedError


@register("ot-relaxed")
class RelaxedTransport(TransportAligner):
    """Relaxed 1:1: a word may stay unaligned, at the score 0. Without entropy this is the MAP of `at-most-one`."""

    uses_budget = False

    def sinkhorn_arguments(self, budget: Tensor) -> dict[str, Any]:
        return {"kind": "relaxed"}


@register("ot-exact-k")
class ExactTransport(TransportAligner):
    """Exact k: `budget` pairs are aligned, whatever their scores."""

    def sinkhorn_arguments(self, budget: Tensor) -> dict[str, Any]:
        return {"kind": "exact_k", "k": budget}

    def matching_arguments(self, budget: Tensor) -> dict[str, Any]:
        return {"budget": budget, "exactly": True}
