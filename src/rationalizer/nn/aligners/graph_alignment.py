"""Alignments under factors that users wrote, through the factor graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rationalizer.constraints import PairLayerConstraints
from rationalizer.graph import Factor, FactorGraph, Literals, Solution
from rationalizer.nn.user_factors import solve_with_own

if TYPE_CHECKING:
    from rationalizer.graph.program import Builder


def solved(
    solve: Callable[[FactorGraph], Solution],
    scores: Tensor,
    premise_mask: Tensor,
    hypothesis_mask: Tensor,
    limits: PairLayerConstraints,
    decide: Callable[[Tensor], Tensor],
    *,
    budget: int | Tensor | None,
    exactly: bool,
    complete: bool,
) -> Tensor:
    """The problem of `Solver` with the users' factors: `solve` says whether it is relaxed (LP-SparseMAP over the local
    polytope of the matchings and of these factors) or decided; `decide` solves it without them."""
    allowed = premise_mask[:, :, None] & hypothesis_mask[:, None, :]
    partners = [torch.zeros_like(premise_mask), torch.zeros_like(hypothesis_mask)]  # whether a word must have one
    if complete:
        short = (premise_mask.sum(-1) <= hypothesis_mask.sum(-1))[:, None]
        partners = [premise_mask & short, hypothesis_mask & ~short]
    if limits.fixed is not None:
        must = (limits.fixed > 0) & allowed
        with_partner = must.any(2)[:, :, None] | must.any(1)[:, None, :]
        allowed = allowed & (limits.fixed >= 0) & (must | ~with_partner)
        partners = [side | must.any(dim) for side, dim in zip(partners, (2, 1), strict=True)]
    graph = FactorGraph()
    z = graph.variable(scores, allowed)
    if limits.monotone:  # no few inequalities say what crosses
        graph.add(_Kept(z, decide))
    else:
        graph.add(_Sums(z, partners[0], 1, dim=2))
        graph.add(_Sums(z, partners[1], 1, dim=1))
        if budget is not None:
            most = torch.as_tensor(budget, device=scores.device).expand(len(scores))[:, None]
            graph.add(_Sums(z, most if exactly else torch.zeros_like(most), most))
    return solve_with_own(graph, z, limits, solve)


class _Sums(Factor):
    """lower <= Σ literals <= upper, whose polytope needs no more than these inequalities: matchings' has no other
    corners than matchings."""

    def __init__(self, literals: Literals, lower: Tensor, upper: int | Tensor, dim: int | None = None) -> None:
        super().__init__(literals, dim)
        self.lower = lower.cpu().numpy().astype(float)  # (batch, count)
        self.upper = upper.cpu().numpy().astype(float) if isinstance(upper, Tensor) else float(upper)

    def compile(self, builder: Builder) -> None:
        active = builder.present(self.group).any(-1) | (self.lower > 0)
        builder.literal_rows(self, self.group, 1.0, self.lower, self.upper, active)


class _Kept(Factor):
    """The matchings that keep to all but the users' factors, by what decides among them."""

    def __init__(self, literals: Literals, decide: Callable[[Tensor], Tensor]) -> None:
        super().__init__(literals)
        self.shape, self.decide = literals.shape, decide

    def map(self, scores: Tensor) -> Tensor:
        return self.decide(scores.reshape(self.shape)).flatten(1)
