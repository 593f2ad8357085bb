"""H:SeqBudget: a sparse distribution over sequences of at most B words, with a contiguity bonus."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._convergence import Info, report, reports_info
from rationalizer.ops._declare import declare, has_triton
from rationalizer.ops.kernels import parallel_compilation
from rationalizer.ops.kernels.numba_runtime import for_rows, for_slow_rows, host, unsigned
from rationalizer.ops.kernels.sequence_budget_backward_cpu import sequence_budget_backward_rows
from rationalizer.ops.kernels.sequence_budget_cpu import sequence_budget_rows, sequence_budget_uncertified_rows
from rationalizer.ops.pair_budget import gradients_like

# Two halves of the work of compiling, with the types of the arguments.
KERNELS = (
    [(sequence_budget_uncertified_rows, "i i c1 i1 f2 f2 b2 i1 i1 i f f2 i1 u3 i1 f1 b1")],
    [
        (sequence_budget_rows, "i i f2 f2 b2 i1 i1 f2 b1 i1 i1 f1 b1"),
        (sequence_budget_backward_rows, "i i f2 f2 f2 b2 b1 i1 u3 f2 f2"),
    ],
)


@reports_info
def sequence_budget(
    scores: Tensor,
    budget: int | Tensor,
    *,
    at_least: int | Tensor = 0,
    transition: float | Tensor = 0.0,
    mask: Tensor | None = None,
    temperature: float = 1.0,
    tolerance: float = 0.0,
    max_iterations: int = 100_000,
    return_info: bool = False,
) -> Tensor | tuple[Tensor, Info]:
    """SparseMAP of the factor H:SeqBudget: z = E_p[y] for the distribution p over binary sequences that solves

    max E_p[s·y + Σ r_i y_i y_{i+1}] − ½‖E_p[y]‖²  s.t. at_least ≤ Σy ≤ budget for every y in the support of p,

    s = scores/temperature and r = transition/temperature. Exact: a closed form if a certificate proves it optimal, an
    active-set method over sequences otherwise. As the temperature goes to 0, z goes to `sequence_budget_map`.

    Args:
        scores: (batch, n) word scores; any number of leading dimensions.
        budget: the maximum of Σy; an int, or an int tensor (batch,).
        at_least: the minimum of Σy; an int, or an int tensor (batch,). `at_least=budget` selects exactly `budget`
            words. In a row with fewer words, all of them. Above the budget it is an error (NaN on CUDA).
        transition: the bonus r for selecting two neighbours together; a number, (n − 1,) or (batch, n − 1), of any sign
            (negative values are exact, but never have the closed form). Differentiable. If words between a and b are
            masked, the transition of the neighbours a < b is that at a.
        mask: (batch, n) bool, True on words. Masked positions are absent and get exactly 0.
        temperature: divides scores and transitions. Every finite quotient has a solution; above 1e16 it equals
            `sequence_budget_map` except at ties, as everything else is below rounding.
        tolerance: the allowed error of z in any word: a row ends once ‖z − z*‖₂ ≤ tolerance is proven. 0 solves
            exactly. z never violates the bounds, and the gradient is that of the face on which z lies.
        max_iterations: limit on the iterations of a row's active-set method, which are never more than 1,000 + 20n. At
            the limit z is feasible but not optimal.
        return_info: also return `Info(converged, iterations, gap)` per row. Otherwise, rows that did not converge cause
            a warning (not on CUDA, where it would make the host wait).

    Returns:
        (batch, n), z in the dtype of `scores`, or (z, info). Differentiable in `scores` and `transition`.
    """
    rows = _inputs.as_rows(scores, mask, temperature)
    limit = _inputs.as_budget(budget, rows.shape[:-1], scores.device)
    edges = _inputs.as_transition(transition, rows, temperature)
    edges = edges.masked_fill((limit <= 1)[:, None], 0.0)  # with one word there are no selected neighbours
    _inputs.check_iterations(max_iterations)
    _inputs.check_number(tolerance, "tolerance")
    lower = _inputs.as_lower_bound(at_least, rows.shape[:-1], scores.device)
    solution = _sequence_budget(rows.scores, edges, rows.mask, limit, max_iterations, float(tolerance), lower)
    info = Info(*map(rows.restore_rows, solution[4:]))
    remedy = "raise max_iterations or the temperature"
    return report(rows.restore(solution[0]), info, return_info, "sequence_budget", remedy)


def compile_sequence_budget() -> None:
    """Start to compile the kernels in the background, so that the first call waits less for them."""
    parallel_compilation.start(KERNELS)


def active_set_outputs(scores: Tensor, *, queued: bool = False) -> tuple[Tensor, ...]:
    """Empty outputs of an active-set solver: z, support_size, support, converged, iterations, gap.

    The support of the distribution is stored as bits, with room for n + 1 sequences; on the CPU only the pages that are
    written use memory. If CUDA rows are `queued` for the CPU, their support stays there (`kernels.open_rows_cuda`).
    """
    rows, n = scores.shape[0], math.prod(scores.shape[1:])
    queued = queued and scores.is_cuda and has_triton()
    supports, device = (rows + 1, "cpu") if queued else (rows, scores.device)
    return (
        scores.new_empty(scores.shape),
        scores.new_empty(rows, dtype=torch.int64),
        scores.new_empty((supports, n + 1, (n + 63) // 64), dtype=torch.int64, device=device),
        scores.new_empty(rows, dtype=torch.bool),
        scores.new_empty(rows, dtype=torch.int64),
        scores.new_empty(rows),
    )


def _outputs(scores: Tensor) -> tuple[Tensor, ...]:
    z, *others = active_set_outputs(scores, queued=True)
    tight = scores.new_empty(scores.shape[0], dtype=torch.bool)  # whether a bound binds in the closed form
    return z, tight, *others


@declare(
    "sequence_budget_backward",
    fake=gradients_like,
    cuda="sequence_budget_cuda.sequence_budget_backward",
    host_outputs=True,
)
def sequence_budget_backward(
    g: Tensor, z: Tensor, transition: Tensor, mask: Tensor, tight: Tensor, support_size: Tensor, support: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of scores and transitions. `support_size` is 0 in rows solved by the closed form."""
    gradients = gradients_like(z, transition)
    inputs = (g, z, transition, mask, tight, support_size, unsigned(support))
    for_rows(sequence_budget_backward_rows, z.shape[0], 20 * z.numel(), *inputs, *gradients)
    return gradients


@declare(
    "sequence_budget",
    fake=_outputs,
    outputs=("z", "tight", "support_size", "support", "converged", "iterations", "gap"),
    backward=sequence_budget_backward,
    cuda="sequence_budget_cuda.sequence_budget",
    host_outputs=True,
)
def _sequence_budget(
    scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor, max_iterations: int, tolerance: float,
    at_least: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    _inputs.require_solvable(scores, mask, budget, transition, at_least)
    z, tight, size, support, converged, iterations, gap = _outputs(scores)
    inputs = (scores, transition, mask, _inputs.lower_bounds(budget, at_least), budget)
    status = (iterations, gap, converged)
    for_rows(sequence_budget_rows, scores.shape[0], 50 * scores.numel(), *inputs, z, tight, size, *status)
    uncertified_rows = np.flatnonzero(host(size) < 0)
    if uncertified_rows.size:
        limits = (max_iterations, tolerance)
        outputs = (z, size, unsigned(support), *status)
        for_slow_rows(
            sequence_budget_uncertified_rows, uncertified_rows.size, uncertified_rows, *inputs, *limits, *outputs
        )
    return z, tight, size, support, converged, iterations, gap
