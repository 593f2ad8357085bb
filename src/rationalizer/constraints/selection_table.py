"""The size of the dynamic program that selects words under constraints, from the numbers of words alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rationalizer.work_limits import most_entries

EXCESS_REMEDY = "lower the budget, allow fewer or shorter spans, or shorten the text"

if TYPE_CHECKING:
    from rationalizer.constraints.layer_arguments import LayerConstraints, TextRequirements


class Counters(NamedTuple):
    """What the states of the dynamic program count; `ops/kernels/constraint_graph_cpu.py` counts the same."""

    budget: int  # an upper bound on the number of selected words
    shortest: int
    cap: int  # the length of a span is counted up to here
    any_length: bool  # whether the budget allows no span that is too long
    count_spans: bool
    count_group: bool
    uses: int  # numbers of words selected in a group
    states: int


def count_states(
    free: int, group_sizes: list[int], budget: int, spans: int, shortest: int, longest: int, per_group: int
) -> Counters:
    """Return the counters for a text with `free` words that may be selected, in groups of these sizes."""
    budget = min(budget, free, sum(min(size, per_group) for size in group_sizes))
    longest = min(longest, budget)
    budget = min(budget, spans * longest)
    shortest = min(shortest, budget + 1)  # a span of budget + 1 words is infeasible, as is any longer one
    any_length = longest >= budget
    cap = shortest if any_length else longest
    count_spans = spans < budget // shortest
    count_group = per_group < min(budget, max(group_sizes, default=0))
    uses = per_group + 1 if count_group else 1
    states = (spans + 1 if count_spans else 1) * (cap + 1) * uses
    return Counters(budget, shortest, cap, any_length, count_spans, count_group, uses, states)


def find_excess(layer: LayerConstraints, text: TextRequirements, counted: NDArray[np.bool_], budget: int) -> str | None:
    """Return why the selection would take too much memory; None if it would not."""
    has_counters = layer.shortest > 1 or not layer.spans is layer.longest is layer.per_group is None
    if not has_counters and layer.unit is None and not text.together.any():
        return None  # without these constraints there is no table
    n = int(counted.sum())
    unit = text.unit[counted]
    free = int((~np.isin(unit, unit[text.never[counted]])).sum()) if text.never.any() else n
    sizes = [n] if layer.per_group is None else np.unique(text.sentence[counted], return_counts=True)[1].tolist()
    counters = count_states(
        free,
        sizes,
        budget,
        n if layer.spans is None else min(layer.spans, n),
        layer.shortest,
        n if layer.longest is None else layer.longest,
        n if layer.per_group is None else layer.per_group,
    )
    entries = counters.states * (len(np.unique(unit)) + 1) * (counters.budget + 1)
    if entries <= most_entries():
        return None
    needed, allowed = (f"{each * 8 / 2**30:,.2g} GiB" for each in (entries, most_entries()))
    return f"all of them together need {needed} for this text, at most {allowed} is allowed"
