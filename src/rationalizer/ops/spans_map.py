"""The best selection under constraints: `spans` at test time."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._declare import declare, like_scores
from rationalizer.ops._span_constraints import (
    as_constraints,
    remove_fixed_words,
    require_constraints,
    require_feasible,
)
from rationalizer.ops.kernels.numba_runtime import for_rows
from rationalizer.ops.kernels.spans_map_cpu import spans_map_rows
from rationalizer.ops.sequence_budget_map import _sequence_budget_map, viterbi_work


def spans_map(
    scores: Tensor,
    budget: int | Tensor,
    *,
    at_least: int | Tensor = 0,
    transition: float | Tensor = 0.0,
    mask: Tensor | None = None,
    spans: int | Tensor | None = None,
    shortest: int = 1,
    longest: int | None = None,
    unit: Tensor | None = None,
    fixed: Tensor | None = None,
    group: Tensor | None = None,
    per_group: int | None = None,
) -> Tensor:
    """Return the best selection: argmax scores·y + Σ transition_i y_i y_{i+1} s.t. y ∈ {0, 1}ⁿ meets all constraints.

    One dynamic program with a counter for each constraint that can bind. Words that do not raise the score are selected
    only if a constraint requires it. Ties go to fewer words. No gradient.

    Args:
        scores: (batch, n) word scores; any number of leading dimensions.
        budget: the maximum number of selected words; an int, or an int tensor (batch,).
        at_least: the minimum number of selected words; an int, or an int tensor (batch,). In a row with fewer words,
            all of them. Above the budget it is an error (NaN on CUDA).
        transition: the bonus for selecting two neighbours together; a number, (n − 1,) or (batch, n − 1), any sign.
        mask: (batch, n) bool, True on words. Masked positions are absent and get exactly 0.
        spans, shortest, longest, unit, fixed, group, per_group: the constraints, as in `spans`.

    Returns:
        (batch, n), y in the dtype of `scores`.

    Raises:
        InfeasibleError: a row has no feasible selection; `instance` is its index.

    On CUDA the dynamic program runs on the host, which waits for the device. With no constraint, or only `fixed`,
    everything runs on the device, and an infeasible row does not raise but is NaN.
    """
    rows = _inputs.as_rows(scores.detach() if isinstance(scores, Tensor) else scores, mask, 1.0)
    limit = _inputs.as_budget(budget, rows.shape[:-1], scores.device)
    edges = _inputs.as_transition(transition, rows, 1.0).detach()
    lower = _inputs.as_lower_bound(at_least, rows.shape[:-1], scores.device)
    constraints = as_constraints(rows, spans, shortest, longest, unit, fixed, group, per_group)
    if constraints.only_fixed:
        free = remove_fixed_words(rows.scores, edges, rows.mask, constraints.fixed, limit, lower)
        y = free.restore_fixed(_sequence_budget_map(*free[:4], free.at_least))
        return rows.restore(y.masked_fill(~free.feasible[:, None] & rows.mask, torch.nan))
    return rows.restore(_spans_map(rows.scores, edges, rows.mask, limit, *constraints.arguments(), lower))


@declare("spans_map", fake=like_scores)
def _spans_map(
    scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor, spans: Tensor, unit: Tensor, fixed: Tensor,
    group: Tensor, shortest: int, longest: int, per_group: int, at_least: Tensor | None = None,
) -> Tensor:  # fmt: skip
    _inputs.require_solvable(scores, mask, budget, transition, at_least)
    require_constraints(mask, spans, fixed, group)
    y, feasible = scores.new_empty(scores.shape), scores.new_empty(scores.shape[0], dtype=torch.bool)
    for_rows(
        spans_map_rows, scores.shape[0], 100 * viterbi_work(scores, budget), scores, transition, mask,
        _inputs.lower_bounds(budget, at_least), budget, spans, unit, fixed.to(torch.int8), group, shortest, longest,
        per_group, y, feasible,
    )  # fmt: skip
    require_feasible(feasible)
    return y
