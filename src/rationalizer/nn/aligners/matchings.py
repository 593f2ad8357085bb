"""SPECTRA's three matchings: relaxed in training, 0/1 in decoding."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from rationalizer.nn.aligners.base import MatchingAligner, register


@register("at-most-one")
class AtMostOneMatching(MatchingAligner):
    """M:AtMostOne2: each word of either text is aligned with at most one of the other."""

    uses_budget = False


@register("budget")
class BudgetMatching(MatchingAligner):
    """M:Budget: at most one partner per word, and at most `budget` pairs in all."""

    def matching_arguments(self, budget: Tensor) -> dict[str, Any]:
        return {"budget": budget}


@register("xor-at-most-one")
class CompleteMatching(MatchingAligner):
    """M:XorAtMostOne: each word of the shorter text is aligned with exactly one of the longer, no word twice.

    The paper requires exactly one partner for every premise word. That is infeasible if the premise is longer than
    the hypothesis, as in most pairs, so here the shorter text must be aligned completely.
    """

    uses_budget = False
    excluded_constraints: ClassVar[frozenset[str]] = frozenset({"exactly-k"})

    def matching_arguments(self, budget: Tensor) -> dict[str, Any]:
        return {"complete": True}
