"""Alignments without crossing pairs, for texts that say the same things in the same order."""

from __future__ import annotations

from torch import Tensor

from rationalizer.ops import _fixed_pairs, _inputs
from rationalizer.ops import _matrix_inputs as _matrices
from rationalizer.ops._convergence import Info, report, reports_info
from rationalizer.ops._declare import declare
from rationalizer.ops.kernels.monotone_matching_cpu import monotone_matching_rows
from rationalizer.ops.kernels.numba_runtime import for_slow_rows, unsigned
from rationalizer.ops.sequence_budget import active_set_outputs, sequence_budget_backward


@reports_info
def monotone_matching(
    scores: Tensor,
    budget: int | Tensor | None = None,
    *,
    exactly: bool = False,
    fixed: Tensor | None = None,
    row_mask: Tensor | None = None,
    column_mask: Tensor | None = None,
    temperature: float = 1.0,
    tolerance: float = 0.0,
    max_iterations: int = 100_000,
    return_info: bool = False,
) -> Tensor | tuple[Tensor, Info]:
    """SparseMAP over monotone alignments: argmin ‖Z − scores/temperature‖² over the convex hull of the 0/1 matrices

    with row and column sums ≤ 1, total ≤ `budget`, and without crossing pairs: for aligned pairs (i, j) and (k, l),
    i < k implies j < l. Exact: an active-set method over alignments; its MAP problem is the dynamic program of
    sequence alignment, O(m · n), times the budget if it can bind. As the temperature goes to 0, Z goes to
    `monotone_matching_map`.

    Tensors on other devices are copied to the host.

    Args:
        scores: (batch, m, n) scores of the pairs; any number of leading dimensions.
        budget: the maximum number of aligned pairs; None (no limit), an int, or an int tensor (batch,).
        exactly: align exactly `budget` pairs.
        fixed: (batch, m, n) integers: 1 for pairs that must be aligned, -1 for pairs that must not be, 0 for free
            pairs. Fixed pairs count towards the budget.
        row_mask: (batch, m) bool, True on words. Masked rows are absent and get exactly 0.
        column_mask: (batch, n) bool, the same for columns.
        temperature: divides the scores; lower is sparser.
        tolerance: the allowed error of Z in any pair: a matrix ends once ‖Z − Z*‖₂ ≤ tolerance is proven. 0 solves
            exactly.
        max_iterations: limit on the iterations for a matrix, which are never more than 1,000 + 20mn. At the limit Z is
            feasible but not optimal.
        return_info: also return `Info(converged, iterations, gap)` per matrix. Otherwise, matrices that did not
            converge cause a warning.

    Returns:
        (batch, m, n), Z in the dtype of `scores`, or (Z, Info). Differentiable in `scores`.

    Raises:
        InfeasibleError: no alignment satisfies the constraints; `instance` is the index in the batch.
    """
    _inputs.check_iterations(max_iterations)
    _inputs.check_number(tolerance, "tolerance")
    problem = _fixed_pairs.as_monotone(scores, budget, exactly, fixed, row_mask, column_mask, temperature)
    solution = _monotone_matching(*problem.arguments(), max_iterations, float(tolerance))
    info = Info(*map(problem.restore_batch, solution[3:]))
    remedy = "raise max_iterations or the temperature"
    return report(problem.restore(solution[0]), info, return_info, "monotone_matching", remedy)


def _monotone_backward(
    g: Tensor, z: Tensor, allowed: Tensor, converged: Tensor, support_size: Tensor, support: Tensor
) -> Tensor:
    # An alignment is a sequence of the allowed pairs, without transitions; its support is never empty, so that `tight`,
    # which is about the closed form, is not read: any flag will do.
    flat = z.flatten(1)
    edges = flat.new_zeros((len(flat), max(flat.shape[1] - 1, 0)))
    h, _ = sequence_budget_backward(g.flatten(1), flat, edges, allowed.flatten(1), converged, support_size, support)
    return h.reshape(z.shape)


@declare(
    "monotone_matching",
    fake=lambda scores: active_set_outputs(scores),
    outputs=("z", "support_size", "support", "converged", "iterations", "gap"),
    backward=_monotone_backward,
)
def _monotone_matching(
    scores: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, allowed: Tensor, exact: bool,
    max_iterations: int, tolerance: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    _matrices.require_solvable(scores, row_mask, column_mask, budget, allowed, total_exact=exact)
    z, size, support, converged, iterations, gap = active_set_outputs(scores)
    inputs = (scores, row_mask, column_mask, allowed, budget, exact, max_iterations, tolerance)
    outputs = (z, size, unsigned(support), iterations, gap, converged)
    for_slow_rows(monotone_matching_rows, scores.shape[0], *inputs, *outputs)
    _fixed_pairs.require_feasible(size > 0, exact)
    return z, size, support, converged, iterations, gap
