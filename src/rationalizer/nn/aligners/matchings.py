"""SPECTRA's three matchings: relaxed in training, 0/1 in use."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from rationalizer.nn.aligners.base import MatchingAligner, register


@register("at-most-one")
class AtMostOne(MatchingAligner):
    """M:AtMostOne2: each word of either text is aligned with at most one of the other."""

    uses_budget = False

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any]:
        return {}


@register("budget")
class Budget(MatchingAligner):
    """M:Budget: at most one partner each, and at most `budget` pairs in all."""

    def asked(self, budget: Tensor) -> dict[str, Any]:
        return {"budget": budget}

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any]:
        return {"budget": budget}


@register("xor-at-most-one")
class XorAtMostOne(MatchingAligner):
    """M:XorAtMostOne: each word of the shorter text is aligned with exactly one of the longer, no word twice.

    The paper asks for exactly one partner of every premise word. That has no solution where the premise is
    longer than the hypothesis, as it is in most pairs, so here the shorter text is the one that must be
    aligned completely.
    """

    uses_budget = False
    excludes: ClassVar[frozenset[str]] = frozenset({"exactly-k"})

    def asked(self, budget: Tensor) -> dict[str, Any]:
        return {"complete": True}

    def constraints(self, m: int, n: int, budget: int) -> dict[str, Any]:
        return {"rows": "exactly_one"} if m <= n else {"columns": "exactly_one"}
