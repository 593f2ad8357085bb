"""Selections under constraints: number and length of spans, whole units, fixed words, words per group."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._convergence import Info, report, reports_info
from rationalizer.ops._declare import declare
from rationalizer.ops._span_constraints import (
    as_constraints,
    remove_fixed_words,
    require_constraints,
    require_feasible,
)
from rationalizer.ops.kernels.numba_runtime import for_slow_rows, unsigned
from rationalizer.ops.kernels.spans_cpu import spans_rows
from rationalizer.ops.sequence_budget import _sequence_budget, active_set_outputs, sequence_budget_backward


@reports_info
def spans(
    scores: Tensor,
    budget: int | Tensor,
    *,
    at_least: int | Tensor = 0,
    transition: float | Tensor = 0.0,
    mask: Tensor | None = None,
    temperature: float = 1.0,
    spans: int | Tensor | None = None,
    shortest: int = 1,
    longest: int | None = None,
    unit: Tensor | None = None,
    fixed: Tensor | None = None,
    group: Tensor | None = None,
    per_group: int | None = None,
    tolerance: float = 0.0,
    max_iterations: int = 100_000,
    return_info: bool = False,
) -> Tensor | tuple[Tensor, Info]:
    """SparseMAP over the selections that satisfy all constraints: z = E_p[y] for the distribution p that solves

    max E_p[s·y + Σ r_i y_i y_{i+1}] − ½‖E_p[y]‖²  s.t. every y ∈ {0, 1}ⁿ in the support of p satisfies the constraints,

    s = scores/temperature and r = transition/temperature. Exact: an active-set method over selections; its MAP
    problem is one dynamic program with a counter for each constraint that can bind. With no constraint, or only
    `fixed`, it is `sequence_budget` on the free words. Unless a word must be selected or `at_least` is given, the empty
    selection is feasible. As the temperature goes to 0, z goes to `spans_map`.

    Two words are neighbours if all positions between them are masked. A span is a maximal run of selected neighbours.

    Args:
        scores: (batch, n) word scores; any number of leading dimensions.
        budget: the maximum number of selected words; an int, or an int tensor (batch,).
        at_least: the minimum number of selected words; an int, or an int tensor (batch,). In a row with fewer words,
            all of them. Above the budget it is an error (NaN on CUDA).
        transition: the bonus r for selecting two neighbours together, as in `sequence_budget`.
        mask: (batch, n) bool, True on words. Masked positions are absent and get exactly 0.
        temperature: divides scores and transitions.
        spans: the maximum number of spans; an int, or an int tensor (batch,).
        shortest: the minimum number of words in a span.
        longest: the maximum number of words in a span.
        unit: (batch, n) int: neighbours with the same number are selected together or not at all.
        fixed: (batch, n) int: 1 for words that must be selected, −1 for words that must not be, 0 for free words.
        group: (batch, n) int, non-decreasing: the group (such as a sentence) of each word; needs `per_group`.
        per_group: the maximum number of selected words in each group.
        tolerance: the allowed error of z in any word, as in `sequence_budget`.
        max_iterations: limit on the iterations of a row, which are never more than 1,000 + 20n. At the limit z is
            feasible but not optimal.
        return_info: also return `Info(converged, iterations, gap)` per row. Otherwise, rows that did not converge cause
            a warning (not on CUDA).

    Returns:
        (batch, n), z in the dtype of `scores`, or (z, info). Differentiable in `scores` and `transition`.

    Raises:
        InfeasibleError: a row has no feasible selection; `instance` is its index. Not on CUDA.

    On CUDA the rows are solved on the CPU when the stream reaches them; Python does not wait. With no constraint, or
    only `fixed`, everything runs on the device. An infeasible row does not raise but has z = 0, `converged` False and
    `gap` inf.
    """
    rows = _inputs.as_rows(scores, mask, temperature)
    limit = _inputs.as_budget(budget, rows.shape[:-1], scores.device)
    edges = _inputs.as_transition(transition, rows, temperature)
    edges = edges.masked_fill((limit <= 1)[:, None], 0.0)  # with one word there are no selected neighbours
    lower = _inputs.as_lower_bound(at_least, rows.shape[:-1], scores.device)
    constraints = as_constraints(rows, spans, shortest, longest, unit, fixed, group, per_group)
    _inputs.check_iterations(max_iterations)
    _inputs.check_number(tolerance, "tolerance")
    if constraints.only_fixed:
        free = remove_fixed_words(rows.scores, edges, rows.mask, constraints.fixed, limit, lower)
        z, *_, converged, iterations, gap = _sequence_budget(*free[:4], max_iterations, float(tolerance), free.at_least)
        z, gap = free.restore_fixed(z), gap.masked_fill(~free.feasible, torch.inf)
        converged = converged & free.feasible
    else:
        z, _, _, converged, iterations, gap = _spans(
            rows.scores, edges, rows.mask, limit, *constraints.arguments(), max_iterations, float(tolerance), lower
        )
    info = Info(*map(rows.restore_rows, (converged, iterations, gap)))
    return report(rows.restore(z), info, return_info, "spans", "raise max_iterations or the temperature")


def _spans_backward(
    g: Tensor, z: Tensor, transition: Tensor, mask: Tensor, converged: Tensor, support_size: Tensor, support: Tensor
) -> tuple[Tensor, Tensor]:
    # The support is empty in rows without a solution only, where z is 0 or NaN: any `tight` gives their gradient.
    return sequence_budget_backward(g, z, transition, mask, converged, support_size, support)


@declare(
    "spans",
    fake=lambda scores: active_set_outputs(scores, queued=True),
    outputs=("z", "support_size", "support", "converged", "iterations", "gap"),
    backward=_spans_backward,
    cuda="spans_cuda.spans",
    host_outputs=True,
)
def _spans(
    scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor, spans: Tensor, unit: Tensor, fixed: Tensor,
    group: Tensor, shortest: int, longest: int, per_group: int, max_iterations: int, tolerance: float,
    at_least: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    _inputs.require_solvable(scores, mask, budget, transition, at_least)
    require_constraints(mask, spans, fixed, group)
    z, size, support, converged, iterations, gap = active_set_outputs(scores)
    for_slow_rows(
        spans_rows, scores.shape[0], scores, transition, mask, _inputs.lower_bounds(budget, at_least), budget, spans,
        unit, fixed.to(torch.int8), group, shortest, longest, per_group, max_iterations, tolerance, z, size,
        unsigned(support), iterations, gap, converged,
    )  # fmt: skip
    require_feasible(size > 0)
    return z, size, support, converged, iterations, gap
