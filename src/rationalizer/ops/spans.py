"""Selections under constraints: so many spans, so long, whole units, fixed words, so much of each sentence."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._convergence import Info, reports_info, warn_unless_converged
from rationalizer.ops._fixed_words import free_words
from rationalizer.ops._span_constraints import as_constraints, require_constraints, require_feasible
from rationalizer.ops.kernels.numba_runtime import for_slow_rows
from rationalizer.ops.kernels.spans_cpu import spans_rows
from rationalizer.ops.sequence_budget import _sequence_budget, _sequence_budget_backward


@reports_info
def spans(
    scores: Tensor,
    budget: int | Tensor,
    *,
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
    """SparseMAP over the selections that keep to all constraints: z = E_p[y], with p the distribution that solves

    max E_p[s·y + Σ r_i y_i y_{i+1}] − ½‖E_p[y]‖²  s.t. every y of p is a 0/1 selection that keeps to them,

    s = scores/temperature and r = transition/temperature. Exact: an active set over selections, the best of which is
    found by one dynamic programme with a counter for each constraint that can bind; with `fixed` alone, or nothing, it
    is `sequence_budget` on the free words. Selecting nothing keeps to all constraints unless a word must be selected.
    As the temperature falls it becomes `spans_map`.

    Words are neighbours with the masked ones between them closed up; a span is a run of selected neighbours with
    unselected ones, or an end of the text, at both sides.

    Args:
        scores: (batch, n) word scores; any number of leading dimensions.
        budget: how many words may be selected; an int, or an int tensor (batch,).
        transition: the bonus r for selecting both of two neighbours, as in `sequence_budget`.
        mask: (batch, n) bool, True on real words. The others count as absent and get exactly 0.
        temperature: divides scores and transitions.
        spans: at most so many spans; an int, or an int tensor (batch,).
        shortest: each span has at least so many words.
        longest: each span has at most so many words.
        unit: (batch, n) int: neighbours with the same number are selected together or not at all.
        fixed: (batch, n) int: 1 where a word must be selected, −1 where never, 0 where free.
        group: (batch, n) int, non-decreasing: the group (a sentence, say) that each word is in; with `per_group`.
        per_group: at most so many words of each group.
        tolerance: how far z may be from the exact answer, in any word, as in `sequence_budget`.
        max_iterations: where to stop a row, at the latest: 1,000 + 20n is the most there is. z is then feasible but
            not optimal.
        return_info: also return per-row `Info(converged, iterations, gap)`. Without it, a row that stopped short warns
            (not on CUDA).

    Returns:
        (batch, n), z in the dtype of `scores`, or (z, info). A row for which no selection keeps to all constraints
        raises a ValueError that names it.

    On CUDA the programme runs on the host, which waits for the device. With `fixed` alone, or nothing, all is done on
    the device: a row that has no answer is not raised for but has z = 0, `converged` False and `gap` inf.
    """
    rows = _inputs.as_rows(scores, mask, temperature)
    limit = _inputs.as_budget(budget, rows.shape[:-1], scores.device)
    edges = _inputs.as_transition(transition, rows, temperature)
    edges = edges.masked_fill((limit <= 1)[:, None], 0.0)  # one word has no neighbour to be selected with
    constraints = as_constraints(rows, spans, shortest, longest, unit, fixed, group, per_group)
    _inputs.check_iterations(max_iterations)
    _inputs.check_tolerance(tolerance)
    if constraints.fixed_alone:
        free = free_words(rows.scores, edges, rows.mask, constraints.fixed, limit)
        z, *_, converged, iterations, gap = _sequence_budget(*free[:4], max_iterations, float(tolerance))
        z, converged, gap = free.with_fixed(z), converged & free.feasible, gap.masked_fill(~free.feasible, torch.inf)
    else:
        z, _, _, converged, iterations, gap = _spans(
            rows.scores, edges, rows.mask, limit, *constraints.arguments, max_iterations, float(tolerance)
        )
    info = Info(*map(rows.restore_rows, (converged, iterations, gap)))
    if return_info:
        return rows.restore(z), info
    warn_unless_converged(info, "spans", "raise max_iterations, or the temperature")
    return rows.restore(z)


_Outputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def _outputs(scores: Tensor) -> _Outputs:
    rows, n = scores.shape
    count = scores.new_empty(rows, dtype=torch.int64)
    return (
        scores.new_empty(scores.shape),  # z
        count,  # how many selections are in the support
        # Room for them, packed. Only the pages that are written to are ever backed by memory.
        scores.new_empty((rows, n + 1, (n + 63) // 64), dtype=torch.int64),
        scores.new_empty(rows, dtype=torch.bool),  # converged
        torch.empty_like(count),  # iterations
        scores.new_empty(rows),  # gap
    )


@_inputs.opaque("spans")
def _spans(
    scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor, spans: Tensor, unit: Tensor, fixed: Tensor,
    group: Tensor, shortest: int, longest: int, per_group: int, max_iterations: int, tolerance: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    return _inputs.on_host(
        _spans, scores, transition, mask, budget, spans, unit, fixed, group, shortest, longest, per_group,
        max_iterations, tolerance,
    )  # fmt: skip


@_spans.register_kernel("cpu")
def _(
    scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor, spans: Tensor, unit: Tensor, fixed: Tensor,
    group: Tensor, shortest: int, longest: int, per_group: int, max_iterations: int, tolerance: float,
) -> _Outputs:  # fmt: skip
    _inputs.require_finite_scores(scores, mask)
    _inputs.require_finite_transition(transition)
    _inputs.require_budget(budget)
    require_constraints(mask, spans, fixed, group)
    outputs = _outputs(scores)
    z, kept, support, converged, iterations, gap = map(_inputs.host, outputs)
    inputs = map(_inputs.host, (scores, transition, mask, budget, spans, unit, fixed, group))
    for_slow_rows(
        spans_rows, scores.shape[0], *inputs, shortest, longest, per_group, max_iterations, tolerance,
        z, kept, support.view("uint64"), iterations, gap, converged,
    )  # fmt: skip
    require_feasible(outputs[1] > 0)
    return outputs


@_spans.register_fake
def _(
    scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor, spans: Tensor, unit: Tensor, fixed: Tensor,
    group: Tensor, shortest: int, longest: int, per_group: int, max_iterations: int, tolerance: float,
) -> _Outputs:  # fmt: skip
    return _outputs(scores)


def _save(ctx, inputs, output):  # type: ignore[no-untyped-def]
    transition, mask = inputs[1:3]
    z, kept, support, converged, *status = output
    ctx.save_for_backward(z, transition, mask, converged, kept, support)
    ctx.mark_non_differentiable(kept, support, converged, *status)
    ctx.set_materialize_grads(False)


def _backward(ctx, g, *_):  # type: ignore[no-untyped-def]
    """The support always has a selection here, so that nothing is read of the closed form's `tight`."""
    rest = (None,) * 11
    if g is None:
        return None, None, *rest
    return *_sequence_budget_backward(g, *ctx.saved_tensors), *rest


_spans.register_autograd(_backward, setup_context=_save)
