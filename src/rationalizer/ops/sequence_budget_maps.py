"""The MAP of H:SeqBudget for every budget from 1 word to the largest, by one dynamic program."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._declare import declare
from rationalizer.ops.kernels.numba_runtime import for_rows
from rationalizer.ops.kernels.sequence_budget_map_cpu import sequence_budget_maps_rows


def sequence_budget_maps(
    scores: Tensor, budget: int, *, transition: float | Tensor = 0.0, mask: Tensor | None = None
) -> Tensor:
    """Return the best sequences for the budgets 1, 2, …, `budget`: for each b,
    argmax scores·y + Σ transition_i y_i y_{i+1} with y ∈ {0, 1}ⁿ and Σy ≤ b.

    Exactly the results of `sequence_budget_map` for each budget alone, ties included, in O(n · budget) for all of them.
    No gradient.

    Args:
        scores: (batch, n) word scores; any number of leading dimensions.
        budget: the largest maximum of Σy.
        transition: the bonus for selecting two neighbours together; a number, (n − 1,) or (batch, n − 1), any sign.
        mask: (batch, n) bool, True on words. Masked positions are absent and get exactly 0.

    Returns:
        (batch, budget, n), y in the dtype of `scores`; position b − 1 has the budget b.

    On CUDA the dynamic program runs on the host, which waits for the device.
    """
    rows = _inputs.as_rows(scores.detach() if isinstance(scores, Tensor) else scores, mask, 1.0)
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise ValueError(f"budget must be an int of at least 1, got {budget!r}")
    edges = _inputs.as_transition(transition, rows, 1.0)
    y = _sequence_budget_maps(rows.scores, edges.detach(), rows.mask, budget)
    return y.reshape(*rows.shape[:-1], budget, rows.shape[-1]).to(rows.dtype)


def _fake(scores: Tensor, budget: int) -> Tensor:
    return scores.new_empty((scores.shape[0], budget, scores.shape[1]))


@declare("sequence_budget_maps", fake=_fake)
def _sequence_budget_maps(scores: Tensor, transition: Tensor, mask: Tensor, budget: int) -> Tensor:
    _inputs.require_solvable(scores, mask, torch.full((scores.shape[0],), budget), transition)
    y = _fake(scores, budget)
    work = 20 * scores.numel() * min(budget, scores.shape[1])
    for_rows(sequence_budget_maps_rows, scores.shape[0], work, scores, transition, mask, budget, y)
    return y
