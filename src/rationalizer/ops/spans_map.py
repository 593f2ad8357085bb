"""The best selection under constraints: what `spans` becomes at test time."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._fixed_words import free_words
from rationalizer.ops._span_constraints import as_constraints, require_constraints, require_feasible
from rationalizer.ops.kernels.numba_runtime import for_rows
from rationalizer.ops.kernels.spans_map_cpu import spans_map_rows
from rationalizer.ops.sequence_budget_map import _sequence_budget_map


def spans_map(
    scores: Tensor,
    budget: int | Tensor,
    *,
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
    """The best selection, exactly 0/1: argmax scores·y + Σ transition_i y_i y_{i+1} s.t. y keeps to all constraints.

    One dynamic programme with a counter for each constraint that can bind. Words that do not raise the score are left
    out unless a constraint asks for them. Ties go to fewer words. No gradient.

    Args:
        scores: (batch, n) word scores; any number of leading dimensions.
        budget: how many words may be selected; an int, or an int tensor (batch,).
        transition: the bonus for selecting both of two neighbours; a number, (n − 1,) or (batch, n − 1), any sign.
        mask: (batch, n) bool, True on real words. The others count as absent and get exactly 0.
        spans: at most so many spans (runs of selected neighbours); an int, or an int tensor (batch,).
        shortest: each span has at least so many words.
        longest: each span has at most so many words.
        unit: (batch, n) int: neighbours with the same number are selected together or not at all.
        fixed: (batch, n) int: 1 where a word must be selected, −1 where never, 0 where free.
        group: (batch, n) int, non-decreasing: the group (a sentence, say) that each word is in; with `per_group`.
        per_group: at most so many words of each group.

    Returns:
        (batch, n), y in the dtype of `scores`. A row for which no selection keeps to all constraints raises a
        ValueError that names it.

    On CUDA the programme runs on the host, which waits for the device. With `fixed` alone, or nothing, all is done on
    the device: a row that has no answer is not raised for but is NaN.
    """
    rows = _inputs.as_rows(scores.detach() if isinstance(scores, Tensor) else scores, mask, 1.0)
    limit = _inputs.as_budget(budget, rows.shape[:-1], scores.device)
    edges = _inputs.as_transition(transition, rows, 1.0)
    constraints = as_constraints(rows, spans, shortest, longest, unit, fixed, group, per_group)
    edges = edges.detach()
    if constraints.fixed_alone:
        free = free_words(rows.scores, edges, rows.mask, constraints.fixed, limit)
        y = free.with_fixed(_sequence_budget_map(*free[:4]))
        return rows.restore(y.masked_fill(~free.feasible[:, None] & rows.mask, torch.nan))
    return rows.restore(_spans_map(rows.scores, edges, rows.mask, limit, *constraints.arguments))


@_inputs.opaque("spans_map")
def _spans_map(
    scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor, spans: Tensor, unit: Tensor, fixed: Tensor,
    group: Tensor, shortest: int, longest: int, per_group: int,
) -> Tensor:  # fmt: skip
    return _inputs.on_host(
        _spans_map, scores, transition, mask, budget, spans, unit, fixed, group, shortest, longest, per_group
    )


@_spans_map.register_kernel("cpu")
def _(
    scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor, spans: Tensor, unit: Tensor, fixed: Tensor,
    group: Tensor, shortest: int, longest: int, per_group: int,
) -> Tensor:  # fmt: skip
    _inputs.require_finite_scores(scores, mask)
    _inputs.require_finite_transition(transition)
    _inputs.require_budget(budget)
    require_constraints(mask, spans, fixed, group)
    z, feasible = scores.new_empty(scores.shape), scores.new_empty(scores.shape[0], dtype=torch.bool)
    inputs = map(_inputs.host, (scores, transition, mask, budget, spans, unit, fixed, group))
    work = 100 * scores.numel() * int(budget.clamp(max=scores.shape[1]).max()) if scores.numel() else 0
    outputs = map(_inputs.host, (z, feasible))
    for_rows(spans_map_rows, scores.shape[0], work, *inputs, shortest, longest, per_group, *outputs)
    require_feasible(feasible)
    return z


@_spans_map.register_fake
def _(
    scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor, spans: Tensor, unit: Tensor, fixed: Tensor,
    group: Tensor, shortest: int, longest: int, per_group: int,
) -> Tensor:  # fmt: skip
    return scores.new_empty(scores.shape)
