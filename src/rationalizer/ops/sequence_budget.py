"""H:SeqBudget: a distribution over sequences of at most B tokens, contiguity rewarded."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._convergence import Info, reports_info, warn_unless_converged
from rationalizer.ops.kernels.numba_runtime import for_rows, for_slow_rows
from rationalizer.ops.kernels.sequence_budget_cpu import (
    sequence_budget_backward_rows,
    sequence_budget_hard_rows,
    sequence_budget_rows,
)


@reports_info
def sequence_budget(
    scores: Tensor,
    budget: int | Tensor,
    *,
    transition: float | Tensor = 0.0,
    mask: Tensor | None = None,
    temperature: float = 1.0,
    tolerance: float = 0.0,
    max_iterations: int = 100_000,
    return_info: bool = False,
) -> Tensor | tuple[Tensor, Info]:
    """SparseMAP of the factor H:SeqBudget: z = E_p[y], with p the distribution over binary sequences that solves

    max E_p[s·y + Σ r_i y_i y_{i+1}] − ½‖E_p[y]‖²  s.t. Σy <= budget for every sequence y,

    s = scores/temperature and r = transition/temperature. Exact: a closed form where it is provably the answer, an
    active set over sequences elsewhere. As the temperature falls it becomes `sequence_budget_map`.

    Args:
        scores: (batch, n) token scores; any number of leading dimensions.
        budget: how many tokens a sequence may select; an int, or an int tensor (batch,).
        transition: the bonus r for selecting both of two neighbours; a number, (n − 1,) or (batch, n − 1), of any sign
            (negative ones are exact but take the slow path). Differentiable. Masked tokens are closed up: between
            neighbours a < b counts the edge that leaves a.
        mask: (batch, n) bool, True on real tokens. The others count as absent and get exactly 0.
        temperature: divides scores and transitions. Any finite quotient has an answer; beyond 1e16 in size only ties
            are split, all else is rounding, and the answer that of `sequence_budget_map`.
        tolerance: how far z may be from the exact answer, in any token: a row ends where ‖z − z*‖₂ is proven to be at
            most that. 0 asks for the answer itself. The budget is kept either way, and the gradient is that of the
            face that z was left on.
        max_iterations: where to stop a row's active set, at the latest: 1,000 + 20n is the most there is. z is then
            feasible but not optimal.
        return_info: also return per-row `Info(converged, iterations, gap)`. Without it, a row that stopped short warns
            (not on CUDA, where that would make the host wait).

    Returns:
        (batch, n), z in the dtype of `scores`, or (z, info).
    """
    rows = _inputs.as_rows(scores, mask, temperature)
    limit = _inputs.as_budget(budget, rows.shape[:-1], scores.device)
    edges = _inputs.as_transition(transition, rows, temperature)
    edges = edges.masked_fill((limit <= 1)[:, None], 0.0)  # one token has no neighbour to be selected with
    _inputs.check_iterations(max_iterations)
    _inputs.check_tolerance(tolerance)
    solved = _sequence_budget(rows.scores, edges, rows.mask, limit, max_iterations, float(tolerance))
    info = Info(*map(rows.restore_rows, solved[4:]))
    if return_info:
        return rows.restore(solved[0]), info
    warn_unless_converged(info, "sequence_budget", "raise max_iterations, or the temperature")
    return rows.restore(solved[0])


_Outputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def _outputs(scores: Tensor) -> _Outputs:
    rows, n = scores.shape
    flag = scores.new_empty(rows, dtype=torch.bool)
    count = scores.new_empty(rows, dtype=torch.int64)
    own = "cpu" if scores.is_cuda and _inputs.has_triton() else scores.device  # where the gradient is computed
    return (
        scores.new_empty(scores.shape),  # z
        flag,  # whether the budget binds
        torch.empty_like(count, device=own),  # how many sequences are in the support; 0: the closed form is the answer
        # Room for the sequences, packed. On the CPU only the pages that hard rows write to are ever backed by memory.
        torch.empty((rows, n + 1, (n + 63) // 64), dtype=torch.int64, device=own),
        torch.empty_like(flag),  # converged
        count,  # iterations
        scores.new_empty(rows),  # gap
    )


@_inputs.opaque("sequence_budget", cuda="sequence_budget_cuda.sequence_budget")
def _sequence_budget(
    scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor, max_iterations: int, tolerance: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    return _inputs.on_host(_sequence_budget, scores, transition, mask, budget, max_iterations, tolerance)


@_sequence_budget.register_kernel("cpu")
def _(
    scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor, max_iterations: int, tolerance: float
) -> _Outputs:
    _inputs.require_finite_scores(scores, mask)
    _inputs.require_finite_transition(transition)
    _inputs.require_budget(budget)
    outputs = _outputs(scores)
    z, tight, kept, support, converged, iterations, gap = map(_inputs.host, outputs)
    inputs = tuple(map(_inputs.host, (scores, transition, mask, budget)))
    status = (iterations, gap, converged)
    for_rows(sequence_budget_rows, scores.shape[0], 50 * scores.numel(), *inputs, z, tight, kept, *status)
    hard = np.flatnonzero(kept < 0)
    if hard.size:
        for_slow_rows(
            sequence_budget_hard_rows, hard.size, hard, *inputs, max_iterations, tolerance, z, kept,
            support.view("uint64"), *status,
        )  # fmt: skip
    return outputs


@_sequence_budget.register_fake
def _(
    scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor, max_iterations: int, tolerance: float
) -> _Outputs:
    return _outputs(scores)


@_inputs.opaque("sequence_budget_backward", cuda="sequence_budget_cuda.sequence_budget_backward")
def _sequence_budget_backward(
    g: Tensor, z: Tensor, transition: Tensor, mask: Tensor, tight: Tensor, kept: Tensor, support: Tensor
) -> tuple[Tensor, Tensor]:
    return _inputs.on_host(_sequence_budget_backward, g, z, transition, mask, tight, kept, support)


@_sequence_budget_backward.register_kernel("cpu")
def _(
    g: Tensor, z: Tensor, transition: Tensor, mask: Tensor, tight: Tensor, kept: Tensor, support: Tensor
) -> tuple[Tensor, Tensor]:
    grad_s, grad_r = z.new_empty(z.shape), z.new_empty(transition.shape)
    inputs = map(_inputs.host, (g, z, transition, mask, tight, kept))
    outputs = map(_inputs.host, (grad_s, grad_r))
    packed = _inputs.host(support).view("uint64")
    for_rows(sequence_budget_backward_rows, z.shape[0], 20 * z.numel(), *inputs, packed, *outputs)
    return grad_s, grad_r


@_sequence_budget_backward.register_fake
def _(
    g: Tensor, z: Tensor, transition: Tensor, mask: Tensor, tight: Tensor, kept: Tensor, support: Tensor
) -> tuple[Tensor, Tensor]:
    return z.new_empty(z.shape), z.new_empty(transition.shape)


def _save(ctx, inputs, output):  # type: ignore[no-untyped-def]
    _, transition, mask, _, _, _ = inputs
    z, tight, kept, support, *status = output
    ctx.save_for_backward(z, transition, mask, tight, kept, support)
    ctx.mark_non_differentiable(tight, kept, support, *status)
    ctx.set_materialize_grads(False)


def _backward(ctx, g, *_):  # type: ignore[no-untyped-def]
    if g is None:
        return None, None, None, None, None, None
    return *_sequence_budget_backward(g, *ctx.saved_tensors), None, None, None, None


_sequence_budget.register_autograd(_backward, setup_context=_save)
