"""The MAP of H:SeqBudget: what the layer becomes at test time."""

from __future__ import annotations

from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops.kernels.numba_runtime import for_rows
from rationalizer.ops.kernels.sequence_budget_map_cpu import sequence_budget_map_rows


def sequence_budget_map(
    scores: Tensor,
    budget: int | Tensor,
    *,
    transition: float | Tensor = 0.0,
    mask: Tensor | None = None,
) -> Tensor:
    """The best sequence, exactly 0/1: argmax scores·y + Σ transition_i y_i y_{i+1} s.t. Σy <= budget.

    Budgeted Viterbi, O(n · budget). Tokens that do not raise the score are left out, so fewer than `budget` may be
    selected. Ties go to fewer tokens, then to earlier ones. No gradient.

    Args:
        scores: (batch, n) token scores; any number of leading dimensions.
        budget: how many tokens may be selected; an int, or an int tensor (batch,).
        transition: the bonus for selecting both of two neighbours; a number, (n − 1,) or (batch, n − 1), any sign.
        mask: (batch, n) bool, True on real tokens. The others count as absent and get exactly 0.

    Returns:
        (batch, n), y in the dtype of `scores`.
    """
    rows = _inputs.as_rows(scores.detach() if isinstance(scores, Tensor) else scores, mask, 1.0)
    limit = _inputs.as_budget(budget, rows.shape[:-1], scores.device)
    edges = _inputs.as_transition(transition, rows, 1.0)
    return rows.restore(_sequence_budget_map(rows.scores, edges.detach(), rows.mask, limit))


@_inputs.opaque("sequence_budget_map", cuda="sequence_budget_map_cuda.sequence_budget_map")
def _sequence_budget_map(scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor) -> Tensor:
    return _inputs.on_host(_sequence_budget_map, scores, transition, mask, budget)


@_sequence_budget_map.register_kernel("cpu")
def _(scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor) -> Tensor:
    _inputs.require_finite_scores(scores, mask)
    _inputs.require_finite_transition(transition)
    _inputs.require_budget(budget)
    z = scores.new_empty(scores.shape)
    arrays = map(_inputs.host, (scores, transition, mask, budget, z))
    work = 20 * scores.numel() * int(budget.clamp(max=scores.shape[1]).max()) if scores.numel() else 0
    for_rows(sequence_budget_map_rows, scores.shape[0], work, *arrays)
    return z


@_sequence_budget_map.register_fake
def _(scores: Tensor, transition: Tensor, mask: Tensor, budget: Tensor) -> Tensor:
    return scores.new_empty(scores.shape)
