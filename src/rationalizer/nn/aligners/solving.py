"""The matchings that the aligners ask for, with and without constraints, relaxed or decided."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor

from rationalizer import ops
from rationalizer.constraints import PairLimits


class Solver(NamedTuple):
    """The best matching, or the relaxation of it, of a batch of score matrices."""

    in_any_order: Callable[..., Tensor]
    monotone: Callable[..., Tensor]

    def __call__(
        self,
        scores: Tensor,
        row_mask: Tensor,
        column_mask: Tensor,
        *,
        rows: str = "at_most_one",
        budget: Tensor | None = None,
        exactly: bool = False,
        limits: PairLimits | None = None,
    ) -> Tensor:
        """Under `limits` a number of pairs that they ask for takes the place of the budget."""
        asked: dict[str, Any] = {"row_mask": row_mask, "column_mask": column_mask}
        asked |= {"budget": budget, "exactly": exactly}
        if limits is not None:
            asked["fixed"] = limits.fixed
            if limits.exactly is not None:
                asked |= {"budget": limits.exactly, "exactly": True}
            if limits.monotone:
                if rows == "exactly_one":
                    asked |= {"budget": row_mask.sum(-1), "exactly": True}
                return self.monotone(scores, **asked)
        return self.in_any_order(scores, rows=rows, **asked)


decide = Solver(ops.matching_map, ops.monotone_matching_map)


def relax(temperature: float) -> Solver:
    """Z = argmin ‖Z − scores/T‖² over the convex hull of what may be decided."""
    return Solver(*(partial(op, temperature=temperature) for op in (ops.matching, ops.monotone_matching)))
