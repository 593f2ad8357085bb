"""Selections under user-defined factors, by the factor graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rationalizer import ops
from rationalizer.constraints import LayerConstraints
from rationalizer.graph import Budget, FactorGraph, Literals, Pair, SequenceBudget, Solution
from rationalizer.nn.user_factors import solve_with_user_factors


class _ConstrainedSequence(SequenceBudget):
    """The sequences within the budget that also satisfy the built-in constraints, by the dynamic program of spans."""

    def __init__(self, literals: Literals, budget: Tensor, transition: float, constraints: LayerConstraints) -> None:
        super().__init__(literals, budget, transition)
        self.constraints = constraints

    def map(self, scores: Tensor) -> Tensor:
        transition = self.transition.detach().reshape(self.rows, -1)
        constraints = self.constraints.arguments()
        return ops.spans_map(scores, self.budget, transition=transition, mask=self.mask, **constraints)


def relax(
    scores: Tensor,
    mask: Tensor,
    budget: Tensor,
    constraints: LayerConstraints,
    *,
    transition: float,
    temperature: float,
) -> Tensor:
    """LP-SparseMAP over the local polytope of the budget, the transitions and the user's factors."""
    return _solve(
        scores, mask, budget, constraints, transition, lambda graph: graph.lp_sparsemap(temperature=temperature)
    )


def decode(scores: Tensor, mask: Tensor, budget: Tensor, constraints: LayerConstraints, *, transition: float) -> Tensor:
    """The best selection that satisfies all constraints, exactly 0/1."""
    return _solve(scores, mask, budget, constraints, transition, FactorGraph.map)


def _solve(
    scores: Tensor,
    mask: Tensor,
    budget: Tensor,
    constraints: LayerConstraints,
    transition: float,
    solve: Callable[[FactorGraph], Solution],
) -> Tensor:
    graph = FactorGraph()
    z = graph.variable(scores, mask)
    if constraints.has_arguments:
        graph.add(_ConstrainedSequence(z, budget, transition, constraints))
    else:
        graph.add(Budget(z, budget))
        if transition != 0.0 and z.shape[1] > 1:
            # Neighbours among selectable words: the order puts all others at the end.
            order = (~mask).to(torch.uint8).argsort(dim=-1, stable=True)
            rows: Any = torch.arange(len(mask), device=mask.device)[:, None]
            graph.add(Pair(z[rows, order[:, :-1]], z[rows, order[:, 1:]], transition))
    return solve_with_user_factors(graph, z, constraints, solve)
