"""How many tokens a rationale may have."""

from __future__ import annotations

import math
from numbers import Integral, Real

import torch
from torch import Tensor


def check_budget(budget: float | int) -> float | int:
    """A fraction of the text (a float in (0, 1]) or a count of tokens (an int >= 1), as a plain number."""
    if isinstance(budget, Integral) and not isinstance(budget, bool):
        if budget >= 1:
            return int(budget)
    elif isinstance(budget, Real) and not isinstance(budget, bool):
        if math.isfinite(budget) and 0 < budget <= 1:
            return float(budget)
        if budget > 1 and float(budget).is_integer():
            raise ValueError(f"budget {budget!r} is a float above 1; write {int(budget)} for a count of tokens")
    raise ValueError(
        f"budget must be a fraction of the text (a float in (0, 1]) or a count of tokens (an int >= 1), got {budget!r}"
    )


def token_budget(budget: float | int, *masks: Tensor) -> Tensor:
    """Each text's budget in tokens: max(1, round(fraction · length)), or the count; at most the length.

    Of two texts, the length of the shorter counts: no matching has more pairs.

    Args:
        budget: a fraction or a count; see `check_budget`.
        masks: (batch, n) bool, True on real tokens; one for each text.

    Returns:
        (batch,) int64; 0 only where a text has no token.
    """
    lengths = torch.stack([mask.sum(-1) for mask in masks]).amin(0)
    if isinstance(budget, int):
        return lengths.clamp(max=min(budget, torch.iinfo(torch.int64).max))
    # float64, as in Python's round(fraction * length): float32 would round some halves the other way.
    tokens = (lengths.to(torch.float64) * budget).round().long()
    return torch.minimum(tokens.clamp(min=1), lengths)
