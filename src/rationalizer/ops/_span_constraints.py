"""The constraints of `spans` and `spans_map`: checked, and in the form that the kernels take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._declare import declare
from rationalizer.ops._errors import InfeasibleError
from rationalizer.ops._inputs import Rows


class Constraints(NamedTuple):
    """Arguments of the custom ops, in their order. Constraints that are not given are values that exclude nothing."""

    spans: Tensor  # (rows,)
    unit: Tensor  # (rows, n)
    fixed: Tensor  # (rows, n)
    group: Tensor  # (rows, n)
    shortest: int
    longest: int
    per_group: int
    only_fixed: bool  # whether no constraint other than `fixed` is given; not an argument of the ops

    # Not a property: torch.compile of PyTorch 2.5 cannot read properties of named tuples.
    def arguments(self) -> tuple[Tensor | int, ...]:
        return self[:-1]


def as_constraints(
    rows: Rows,
    spans: int | Tensor | None,
    shortest: int,
    longest: int | None,
    unit: Tensor | None,
    fixed: Tensor | None,
    group: Tensor | None,
    per_group: int | None,
) -> Constraints:
    n, device = rows.shape[-1], rows.scores.device
    max_spans = _inputs.as_budget(n if spans is None else spans, rows.shape[:-1], device, "spans")
    low = _count(shortest, "shortest", 1)
    high = max(n, low) if longest is None else _count(longest, "longest", 1)
    if high < low:
        raise ValueError(f"longest must be at least shortest ({low}), got {high}")
    if (group is None) != (per_group is None):
        given, missing = ("group", "per_group") if per_group is None else ("per_group", "group")
        raise ValueError(f"{given} needs {missing}: per_group is the maximum number of selected words in each group")
    each = n if per_group is None else _count(per_group, "per_group", 0)
    positions = torch.arange(n, device=device).expand(rows.scores.shape)
    zeros = torch.zeros_like(positions)
    return Constraints(
        max_spans,
        _integers(unit, rows, "unit", positions),
        _integers(fixed, rows, "fixed", zeros),
        _integers(group, rows, "group", zeros),
        min(low, n + 1),
        min(high, n + 1),
        min(each, n),
        spans is None and shortest == 1 and longest is None and unit is None and group is None,
    )


def _count(value: int, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a number of words (int), got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def _integers(values: Tensor | None, rows: Rows, name: str, default: Tensor) -> Tensor:
    if values is None:
        return default
    _inputs.check_integers(values, rows.shape, name)
    return values.to(device=rows.scores.device, dtype=torch.int64, non_blocking=True).reshape(rows.scores.shape)


def require_constraints(mask: Tensor, spans: Tensor, fixed: Tensor, group: Tensor) -> None:
    """Check the constraints whose check reads the data; runs on the CPU only."""
    _inputs.require_budget(spans, "spans")
    _inputs.require_fixed(fixed, mask)
    if group.numel() == 0:
        return
    present = group.masked_fill(~mask, torch.iinfo(torch.int64).min)
    decreasing = (present < present.cummax(-1).values) & mask
    if decreasing.any():
        index = _inputs.first_index(decreasing)
        raise ValueError(
            f"group{index} is {int(group[tuple(index)])}, less than an earlier one; groups must not decrease"
        )


def require_feasible(feasible: Tensor) -> None:
    if not feasible.all():
        row = _inputs.first_index(~feasible)[0]
        raise InfeasibleError(
            f"row {row} of the batch has no feasible selection: words that must be selected, or at_least, violate "
            "another constraint (budget, spans, span lengths, units, words per group, excluded words); fix fewer "
            "words, lower at_least or allow more",
            row,
        )


class FreeWords(NamedTuple):
    """The problem on the free words: fixed words and a budget, without other constraints, reduce to it."""

    scores: Tensor
    transition: Tensor
    mask: Tensor
    budget: Tensor  # without the words that must be selected
    must: Tensor  # (rows, n) bool
    feasible: Tensor  # (rows,) bool; always True on the CPU, where infeasible rows raise
    at_least: Tensor | None  # without the words that must be selected

    def restore_fixed(self, z: Tensor) -> Tensor:
        """Add the words that must be selected to a solution on the free words."""
        return (z + self.must.to(z)).masked_fill(~self.feasible[:, None], 0.0)


def remove_fixed_words(
    scores: Tensor, transition: Tensor, mask: Tensor, fixed: Tensor, budget: Tensor, at_least: Tensor | None
) -> FreeWords:
    """Reduce a problem with fixed words to the free words.

    The transition between a free word and a neighbour that must be selected is added to the score of the free word.
    There is no transition across a fixed word.
    """
    rows, n = scores.shape
    pad = torch.nn.functional.pad
    fixed_words = fixed.masked_fill(~mask, 0)
    positions = torch.arange(n, device=scores.device).expand(rows, n)
    following = positions.masked_fill(~mask, n).flip(-1).cummin(-1).values.flip(-1)
    following = pad(following, (0, 1), value=n)[:, 1:]  # the next word; n if there is none
    before = positions.masked_fill(~mask, -1).cummax(-1).values
    before = pad(before, (1, 0), value=-1)[:, :n]
    leaving = pad(transition, (0, n - transition.shape[1]))
    next_fixed = pad(fixed_words, (0, 1)).gather(-1, following)
    previous_fixed = fixed_words.gather(-1, before.clamp(min=0)).masked_fill(before < 0, 0)
    entering = leaving.gather(-1, before.clamp(min=0))
    bonus = leaving.masked_fill(next_fixed != 1, 0.0) + entering.masked_fill(previous_fixed != 1, 0.0)
    edges = leaving.masked_fill(next_fixed != 0, 0.0)[:, : transition.shape[1]]
    must = fixed_words == 1
    count = must.sum(-1)
    remaining = _remaining_budget(budget, count, fixed, mask, at_least)
    edges = edges.masked_fill((remaining <= 1)[:, None], 0.0)  # with one word there are no selected neighbours
    feasible = (budget >= count) | (budget < 0)
    lower = None
    if at_least is not None:
        reachable = _reaches(at_least, fixed, mask)
        feasible = feasible & reachable
        lower = torch.where(at_least < 0, at_least, (torch.minimum(at_least, mask.sum(-1)) - count).clamp(min=0))
        lower = torch.where(at_least > budget, remaining + 1, lower.masked_fill(~reachable, 0))
    return FreeWords(scores + bonus, edges, mask & (fixed_words == 0), remaining, must, feasible, lower)


def _reaches(at_least: Tensor, fixed: Tensor, mask: Tensor) -> Tensor:
    """Return whether enough words may be selected in each row; of a row with fewer words, all are enough."""
    return (mask & (fixed != -1)).sum(-1) >= torch.minimum(at_least, mask.sum(-1))


def _remaining_without_checks(
    budget: Tensor, count: Tensor, fixed: Tensor, mask: Tensor, at_least: Tensor | None = None
) -> Tensor:
    return torch.where(budget < 0, budget, (budget - count).clamp(min=0))


@declare("spans_remaining_budget", fake=lambda budget: torch.empty_like(budget), elsewhere=_remaining_without_checks)
def _remaining_budget(
    budget: Tensor, count: Tensor, fixed: Tensor, mask: Tensor, at_least: Tensor | None = None
) -> Tensor:
    _inputs.require_bounds(budget, at_least)
    _inputs.require_fixed(fixed, mask)
    require_feasible(budget >= count)
    if at_least is not None:
        require_feasible(_reaches(at_least, fixed, mask))
    return budget - count
