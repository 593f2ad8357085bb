"""Selections under factors that users wrote, through the factor graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rationalizer import ops
from rationalizer.constraints import LayerConstraints
from rationalizer.graph import Budget, FactorGraph, Literals, Pair, SequenceBudget, Solution, Variable
from rationalizer.nn.user_factors import solve_with_own


class _Kept(SequenceBudget):
    """The selections that also keep to the other constraints, which have a programme of their own."""

    def __init__(self, literals: Literals, budget: Tensor, transition: float, limits: LayerConstraints) -> None:
        super().__init__(literals, budget, transition)
        self.limits = limits

    def map(self, scores: Tensor) -> Tensor:
        transition = self.transition.detach().reshape(self.rows, -1)
        return ops.spans_map(scores, self.budget, transition=transition, mask=self.mask, **self.limits.arguments())


def relax(
    scores: Tensor, mask: Tensor, budget: Tensor, limits: LayerConstraints, *, transition: float, temperature: float
) -> Tensor:
    """LP-SparseMAP: the local polytope of the budget, of neighbours that are rewarded, and of the users' factors."""
    return _solved(scores, mask, budget, limits, transition, lambda graph: graph.lp_sparsemap(temperature=temperature))


def decide(scores: Tensor, mask: Tensor, budget: Tensor, limits: LayerConstraints, *, transition: float) -> Tensor:
    """The best selection that keeps to all of it, exactly 0/1."""
    return _solved(scores, mask, budget, limits, transition, FactorGraph.map)


def _solved(
    scores: Tensor,
    mask: Tensor,
    budget: Tensor,
    limits: LayerConstraints,
    transition: float,
    solve: Callable[[FactorGraph], Solution],
) -> Tensor:
    graph = FactorGraph()
    z = graph.variable(scores, mask)
    if limits.has_programme:
        graph.add(_Kept(z, budget, transition, limits))
    else:
        _add_budget(graph, z, mask, budget, transition)
    return solve_with_own(graph, z, limits, solve)


def _add_budget(graph: FactorGraph, z: Variable, mask: Tensor, budget: Tensor, transition: float) -> None:
    graph.add(Budget(z, budget))
    if transition != 0.0 and z.shape[1] > 1:
        # Neighbours among the words that can be selected: the others are closed up, and stand at the end.
        order = (~mask).to(torch.uint8).argsort(dim=-1, stable=True)
        rows: Any = torch.arange(len(mask), device=mask.device)[:, None]
        graph.add(Pair(z[rows, order[:, :-1]], z[rows, order[:, 1:]], transition))
