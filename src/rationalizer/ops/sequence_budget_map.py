"""The MAP of H:SeqBudget: the layer at test time."""

from __future__ import annotations

from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._declare import declare, like_scores
from rationalizer.ops.kernels.numba_runtime import for_rows
from rationalizer.ops.kernels.sequence_budget_map_cpu import sequence_budget_map_rows


def sequence_budget_map(
    scores: Tensor,
    budget: int | Tensor,
    *,
    at_least: int | Tensor = 0,
    transition: float | Tensor = 0.0,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the best sequence: argmax scores·y + Σ transition_i y_i y_{i+1} with y ∈ {0, 1}ⁿ and
    at_least ≤ Σy ≤ budget.

    Budgeted Viterbi, O(n · budget). Words that do not raise the score are selected only to reach `at_least`.
    Ties go to fewer words, then to earlier ones. No gradient.

    Args:
        scores: (batch, n) word scores; any number of leading dimensions.
        budget: the maximum of Σy; an int, or an int tensor (batch,).
        at_least: the minimum of Σy, as in `budget`.
        transition: the bonus for selecting two neighbours together; a number, (n − 1,) or (batch, n − 1), any sign.
        mask: (batch, n) bool, True on words. Masked positions are absent and get exactly 0.

    Returns:
        (batch, n), y in the dtype of `scores`.
    """
    rows = _inputs.as_rows(scores.detach() if isinstance(scores, Tensor) else scores, mask, 1.0)
    limit = _inputs.as_budget(budget, rows.shape[:-1], scores.device)
    edges = _inputs.as_transition(transition, rows, 1.0)
    lower = _inputs.as_lower_bound(at_least, rows.shape[:-1], scores.device)
    return rows.restore(_sequence_budget_map(rows.scores, edges.detach(), rows.mask, limit, lower))


def viterbi_work(scores: Tensor, budget: Tensor) -> int:
    """Return the number of states of the dynamic program over all rows."""
    return scores.numel() * int(budget.clamp(max=scores.shape[1]).max()) if scores.numel() else 0


@declare("sequence_budget_map", fake=like_scores, cuda="sequence_budget_map_cuda.sequence_budget_map")
def _sequence_budget_map(
    scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor, at_least: Tensor | None = None
) -> Tensor:
    _inputs.require_solvable(scores, mask, budget, transition, at_least)
    bounds = (_inputs.lower_bounds(budget, at_least), budget)
    y = scores.new_empty(scores.shape)
    work = 20 * viterbi_work(scores, budget)
    for_rows(sequence_budget_map_rows, scores.shape[0], work, scores, transition, mask, *bounds, y)
    return y
