"""Alignments under user-defined factors, by the factor graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rationalizer.constraints import PairLayerConstraints
from rationalizer.graph import Factor, FactorGraph, Literals, Solution
from rationalizer.nn.user_factors import solve_with_user_factors

if TYPE_CHECKING:
    from rationalizer.graph.program import Builder


def solve_matching_graph(
    solve: Callable[[FactorGraph], Solution],
    scores: Tensor,
    premise_mask: Tensor,
    hypothesis_mask: Tensor,
    constraints: PairLayerConstraints,
    best_matching: Callable[[Tensor], Tensor],
    *,
    budget: int | Tensor | None,
    exactly: bool,
    complete: bool,
) -> Tensor:
    """The problem of `MatchingSolver` with the user's factors.

    `solve` is MAP or LP-SparseMAP, over the local polytope of the matchings and the factors; `best_matching` solves
    the problem without the user's factors.
    """
    allowed = premise_mask[:, :, None] & hypothesis_mask[:, None, :]
    required = [torch.zeros_like(premise_mask), torch.zeros_like(hypothesis_mask)]  # words that must have a partner
    if complete:
        short = (premise_mask.sum(-1) <= hypothesis_mask.sum(-1))[:, None]
        required = [premise_mask & short, hypothesis_mask & ~short]
    if constraints.fixed is not None:
        must = (constraints.fixed > 0) & allowed
        has_partner = must.any(2)[:, :, None] | must.any(1)[:, None, :]
        allowed = allowed & (constraints.fixed >= 0) & (must | ~has_partner)
        required = [side | must.any(dim) for side, dim in zip(required, (2, 1), strict=True)]
    graph = FactorGraph()
    z = graph.variable(scores, allowed)
    if constraints.monotone:  # no small set of inequalities excludes crossing links
        graph.add(_Matchings(z, best_matching))
    else:
        graph.add(_SumBounds(z, required[0], 1, dim=2))
        graph.add(_SumBounds(z, required[1], 1, dim=1))
        if budget is not None:
            most = torch.as_tensor(budget, device=scores.device).expand(len(scores))[:, None]
            graph.add(_SumBounds(z, most if exactly else torch.zeros_like(most), most))
    return solve_with_user_factors(graph, z, constraints, solve)


class _SumBounds(Factor):
    """lower <= Σ literals <= upper. These inequalities are the whole polytope: its corners are matchings."""

    def __init__(self, literals: Literals, lower: Tensor, upper: int | Tensor, dim: int | None = None) -> None:
        super().__init__(literals, dim)
        self.lower = lower.cpu().numpy().astype(float)  # (batch, count)
        self.upper = upper.cpu().numpy().astype(float) if isinstance(upper, Tensor) else float(upper)

    def compile(self, builder: Builder) -> None:
        active = builder.present(self.group).any(-1) | (self.lower > 0)
        builder.literal_rows(self, self.group, 1.0, self.lower, self.upper, active)


class _Matchings(Factor):
    """The matchings that satisfy everything but the user's factors, by an oracle for the best of them."""

    def __init__(self, literals: Literals, best_matching: Callable[[Tensor], Tensor]) -> None:
        super().__init__(literals)
        self.shape, self.best_matching = literals.shape, best_matching

    def map(self, scores: Tensor) -> Tensor:
        return self.best_matching(scores.reshape(self.shape)).flatten(1)
