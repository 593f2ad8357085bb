"""Matchings under a method's restrictions and constraints: the best one (MAP), or a relaxation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rationalizer import ops
from rationalizer.constraints import PairLayerConstraints
from rationalizer.graph import FactorGraph, Solution
from rationalizer.nn.aligners.graph_alignment import solve_matching_graph


class MatchingSolver(NamedTuple):
    """Solves for matchings of a batch of score matrices."""

    any_order: Callable[..., Tensor]
    monotone: Callable[..., Tensor]
    graph: Callable[[FactorGraph], Solution]

    def __call__(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        *,
        budget: int | Tensor | None = None,
        exactly: bool = False,
        complete: bool = False,
        at_least: Tensor | None = None,
        constraints: PairLayerConstraints | None = None,
    ) -> Tensor:
        """A matching: each word has at most one partner.

        Args:
            scores: (batch, m, n).
            premise_mask, hypothesis_mask: which words can be aligned.
            budget: the largest number of pairs.
            exactly: whether the number of pairs must equal the budget.
            complete: whether each word of the shorter text must have a partner.
            at_least: the smallest number of pairs; only without factors, and in any order.
            constraints: further constraints; their number of pairs, if any, replaces the budget.
        """
        constraints = constraints or PairLayerConstraints()
        if constraints.exactly is not None:
            budget, exactly = constraints.exactly, True
        if constraints.factors:
            method: dict[str, Any] = {"budget": budget, "exactly": exactly, "complete": complete}
            builtin = replace(constraints, factors=(), texts=())

            def best_without_factors(scores: Tensor) -> Tensor:
                return MAP(scores, premise_mask, hypothesis_mask, **method, constraints=builtin)

            return solve_matching_graph(
                self.graph, scores, premise_mask, hypothesis_mask, constraints, best_without_factors, **method
            )
        if not complete:
            bounds: dict[str, Any] = {"budget": budget, "exactly": exactly}
            bounds |= {} if at_least is None else {"at_least": at_least}
            return self._match(scores, premise_mask, hypothesis_mask, constraints, **bounds)
        short, long, transposed = _by_length(premise_mask, hypothesis_mask)

        def transpose(pairs: Tensor) -> Tensor:
            square = functional.pad(pairs, (0, long.shape[1] - pairs.shape[2], 0, long.shape[1] - pairs.shape[1]))
            return torch.where(transposed[:, None, None], square.mT, square)

        fixed = None if constraints.fixed is None else transpose(constraints.fixed)
        completeness: dict[str, Any] = {"rows": "exactly_one"}
        if constraints.monotone:
            completeness = {"budget": short.sum(-1), "exactly": True}
        z = self._match(transpose(scores), short, long, replace(constraints, fixed=fixed), **completeness)
        return torch.where(transposed[:, None, None], z.mT, z)[:, : scores.shape[1], : scores.shape[2]]

    def _match(
        self, scores: Tensor, row_mask: Tensor, column_mask: Tensor, constraints: PairLayerConstraints, **method: Any
    ) -> Tensor:
        solve = self.monotone if constraints.monotone else self.any_order
        return solve(scores, row_mask=row_mask, column_mask=column_mask, fixed=constraints.fixed, **method)


def _by_length(premise_mask: Tensor, hypothesis_mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The masks of the shorter and the longer text of each pair, and whether the shorter one is the hypothesis.

    Both are padded to one length, so that one call solves all pairs and the host need not wait for counts.
    """
    side = max(premise_mask.shape[1], hypothesis_mask.shape[1])
    premise, hypothesis = (functional.pad(mask, (0, side - mask.shape[1])) for mask in (premise_mask, hypothesis_mask))
    transposed = premise.sum(-1) > hypothesis.sum(-1)
    short = torch.where(transposed[:, None], hypothesis, premise)
    return short, torch.where(transposed[:, None], premise, hypothesis), transposed


MAP = MatchingSolver(ops.matching_map, ops.monotone_matching_map, FactorGraph.map)


def relaxation(temperature: float) -> MatchingSolver:
    """Z = argmin ‖Z − scores/T‖² over the convex hull of the feasible matchings."""
    layers: tuple[Callable[..., Tensor], ...] = (ops.matching, ops.monotone_matching)
    any_order, monotone = (partial(layer, temperature=temperature) for layer in layers)
    return MatchingSolver(any_order, monotone, partial(FactorGraph.lp_sparsemap, temperature=temperature))
