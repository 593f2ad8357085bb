"""SPECTRA's three matchings: relaxed in training, 0/1 in use."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rationalizer import ops
from rationalizer.nn.aligners.base import Aligner, Alignment, register


class _Matching(Aligner):
    """Z = argmin ‖Z − scores/T‖² over the matchings that the method allows; decoded by their MAP."""

    def __init__(self, *, temperature: float = 1.0) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        z = self.solve(scores, premise_mask, hypothesis_mask, budget, temperature=self.temperature)
        return Alignment(z, z, scores)

    @torch.no_grad()
    def decode(self, scores: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor, budget: Tensor) -> Alignment:
        z = self.solve(scores, premise_mask, hypothesis_mask, budget, temperature=None)
        return Alignment(z, z, scores)

    def solve(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        *,
        temperature: float | None,
    ) -> Tensor:
        """The relaxation, or without a temperature the best matching."""
        raise NotImplementedError


@register("at-most-one")
class AtMostOne(_Matching):
    """M:AtMostOne2: each word of either text is aligned with at most one of the other."""

    uses_budget = False

    def solve(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        *,
        temperature: float | None,
    ) -> Tensor:
        return _match(scores, premise_mask, hypothesis_mask, temperature)

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any]:
        return {}


@register("budget")
class Budget(_Matching):
    """M:Budget: at most one partner each, and at most `budget` pairs in all."""

    def solve(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        *,
        temperature: float | None,
    ) -> Tensor:
        return _match(scores, premise_mask, hypothesis_mask, temperature, budget=budget)

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

    def solve(
        self,
        scores: Tensor,
        premise_mask: Tensor,
        hypothesis_mask: Tensor,
        budget: Tensor,
        *,
        temperature: float | None,
    ) -> Tensor:
        # Pairs with the longer premise are turned round within a square, so that all are solved in one call and
        # nothing has to be counted on the host.
        m, n = scores.shape[-2:]
        side = max(m, n)
        square = functional.pad(scores, (0, side - n, 0, side - m))
        rows, columns = (functional.pad(mask, (0, side - mask.shape[1])) for mask in (premise_mask, hypothesis_mask))
        turned = rows.sum(-1) > columns.sum(-1)
        square = torch.where(turned[:, None, None], square.mT, square)
        short, long = (torch.where(turned[:, None], a, b) for a, b in ((columns, rows), (rows, columns)))
        z = _match(square, short, long, temperature, rows="exactly_one")
        return torch.where(turned[:, None, None], z.mT, z)[:, :m, :n]

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any]:
        return {"rows": "exactly_one"} if m <= n else {"columns": "exactly_one"}


def _match(scores: Tensor, row_mask: Tensor, column_mask: Tensor, temperature: float | None, **kinds: Any) -> Tensor:
    if temperature is None:
        return ops.matching_map(scores, row_mask=row_mask, column_mask=column_mask, **kinds)
    return ops.matching(scores, row_mask=row_mask, column_mask=column_mask, temperature=temperature, **kinds)
