"""SPECTRA's three matchings: relaxed in training, 0/1 in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from rationalizer.constraints import PairLimits
from rationalizer.nn.aligners.base import Alignment, MatchingAligner, register
from rationalizer.nn.aligners.solving import Solver, decide, relax


class _Matching(MatchingAligner):
    """Z = argmin ‖Z − scores/T‖² over the matchings that the method and its constraints allow; decoded by their MAP."""

    @classmethod
    def takes_constraints(cls, options: Mapping[str, Any]) -> bool:
        return True

    def forward(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        limits: PairLimits | None = None,
    ) -> Alignment:
        z = self.match(relax(self.temperature), scores, premise_mask, hypothesis_mask, budget, limits)
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
        z = self.match(decide, scores, premise_mask, hypothesis_mask, budget, limits)
        return Alignment(z, z, scores)

    def match(
        self,
        solve: Solver,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        limits: PairLimits | None,
    ) -> Tensor:
        """The method's problem, relaxed or decided by `solve`."""
        return solve(scores, premise_mask, hypothesis_mask, limits=limits)


@register("at-most-one")
class AtMostOne(_Matching):
    """M:AtMostOne2: each word of either text is aligned with at most one of the other."""

    uses_budget = False

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any]:
        return {}


@register("budget")
class Budget(_Matching):
    """M:Budget: at most one partner each, and at most `budget` pairs in all."""

    def match(
        self,
        solve: Solver,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        limits: PairLimits | None,
    ) -> Tensor:
        return solve(scores, premise_mask, hypothesis_mask, budget=budget, limits=limits)

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any]:
        return {"budget": budget}


@register("xor-at-most-one")
class XorAtMostOne(_Matching):
    """M:XorAtMostOne: each word of the shorter text is aligned with exactly one of the longer, no word twice.

    The paper asks for exactly one partner of every premise word. That has no solution where the premise is
    longer than the hypothesis, as it is in most pairs, so here the shorter text is the one that must be
    aligned completely.
    """

    uses_budget = False
    excludes: ClassVar[frozenset[str]] = frozenset({"exactly-k"})

    def match(
        self,
        solve: Solver,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        limits: PairLimits | None,
    ) -> Tensor:
        # Pairs with the longer premise are turned round within a square, so that all are solved in one call and
        # nothing has to be counted on the host.
        m, n = scores.shape[-2:]
        side = max(m, n)
        rows, columns = (functional.pad(mask, (0, side - mask.shape[1])) for mask in (premise_mask, hypothesis_mask))
        turned = rows.sum(-1) > columns.sum(-1)

        def turn(pairs: Tensor) -> Tensor:
            square = functional.pad(pairs, (0, side - n, 0, side - m))
            return torch.where(turned[:, None, None], square.mT, square)

        if limits is not None and limits.fixed is not None:
            limits = replace(limits, fixed=turn(limits.fixed))
        short, long = (torch.where(turned[:, None], a, b) for a, b in ((columns, rows), (rows, columns)))
        z = solve(turn(scores), short, long, rows="exactly_one", limits=limits)
        return torch.where(turned[:, None, None], z.mT, z)[:, :m, :n]

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any]:
        return {"rows": "exactly_one"} if m <= n else {"columns": "exactly_one"}
