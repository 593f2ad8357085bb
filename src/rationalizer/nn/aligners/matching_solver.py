"""The matchings that the aligners ask for, with and without constraints, relaxed or decided."""

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
from rationalizer.nn.aligners import graph_alignment as factored


class Solver(NamedTuple):
    """The best matching, or the relaxation of it, of a batch of score matrices."""

    in_any_order: Callable[..., Tensor]
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
        limits: PairLayerConstraints | None = None,
    ) -> Tensor:
        """Each word has one partner at most.

        Args:
            scores: (batch, m, n).
            premise_mask, hypothesis_mask: which words can be aligned.
            budget: how many pairs may be.
            exactly: whether so many must be.
            complete: whether each word of the shorter text has a partner.
            limits: what constraints ask besides; a number of pairs takes the place of the budget.
        """
        limits = limits or PairLayerConstraints()
        if limits.exactly is not None:
            budget, exactly = limits.exactly, True
        if limits.factors:
            asked: dict[str, Any] = {"budget": budget, "exactly": exactly, "complete": complete}
            plain = replace(limits, factors=(), texts=())

            def without_own(scores: Tensor) -> Tensor:
                return decide(scores, premise_mask, hypothesis_mask, **asked, limits=plain)

            return factored.solved(self.graph, scores, premise_mask, hypothesis_mask, limits, without_own, **asked)
        if not complete:
            return self._matched(scores, premise_mask, hypothesis_mask, limits, budget=budget, exactly=exactly)
        short, long, turned = _ordered(premise_mask, hypothesis_mask)

        def turn(pairs: Tensor) -> Tensor:
            square = functional.pad(pairs, (0, long.shape[1] - pairs.shape[2], 0, long.shape[1] - pairs.shape[1]))
            return torch.where(turned[:, None, None], square.mT, square)

        fixed = None if limits.fixed is None else turn(limits.fixed)
        whole: dict[str, Any] = {"rows": "exactly_one"}
        if limits.monotone:
            whole = {"budget": short.sum(-1), "exactly": True}
        z = self._matched(turn(scores), short, long, replace(limits, fixed=fixed), **whole)
        return torch.where(turned[:, None, None], z.mT, z)[:, : scores.shape[1], : scores.shape[2]]

    def _matched(
        self, scores: Tensor, row_mask: Tensor, column_mask: Tensor, limits: PairLayerConstraints, **how: Any
    ) -> Tensor:
        solve = self.monotone if limits.monotone else self.in_any_order
        return solve(scores, row_mask=row_mask, column_mask=column_mask, fixed=limits.fixed, **how)


def _ordered(premise_mask: Tensor, hypothesis_mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The words of the shorter text and of the longer, and where the shorter is the hypothesis. Both are padded to one
    length, so that all pairs are solved in one call and nothing has to be counted on the host."""
    side = max(premise_mask.shape[1], hypothesis_mask.shape[1])
    premise, hypothesis = (functional.pad(mask, (0, side - mask.shape[1])) for mask in (premise_mask, hypothesis_mask))
    turned = premise.sum(-1) > hypothesis.sum(-1)
    short = torch.where(turned[:, None], hypothesis, premise)
    return short, torch.where(turned[:, None], premise, hypothesis), turned


decide = Solver(ops.matching_map, ops.monotone_matching_map, FactorGraph.map)


def relax(temperature: float) -> Solver:
    """Z = argmin ‖Z − scores/T‖² over the convex hull of what may be decided."""
    layers: tuple[Callable[..., Tensor], ...] = (ops.matching, ops.monotone_matching)
    in_any_order, monotone = (partial(layer, temperature=temperature) for layer in layers)
    return Solver(in_any_order, monotone, partial(FactorGraph.lp_sparsemap, temperature=temperature))
