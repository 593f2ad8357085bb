"""What agreement with people depends on: how much was selected, how much was marked, and what the budget allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rationalizer.metrics.evaluation import TextEvaluation
from rationalizer.metrics.plausibility import f1_of
from rationalizer.metrics.registry import Metric, computes

_GROUP = "Agreement with people"


class Ceiling(NamedTuple):
    f1: float  # mean over texts
    micro: float  # tokens pooled over texts


def token_f1_ceiling(marked: Sequence[int], limits: Sequence[int], *, exactly: bool = False) -> Ceiling:
    """The token-F1 of the best rationales that a budget allows.

    Args:
        marked: per text, the number of annotated words, at least 1.
        limits: per text, the largest number of words of a rationale, at least 1.
        exactly: whether all rationales have that number of words, as when a budget is always used up.
    """
    right = np.minimum(marked, limits)
    chosen = np.array(limits) if exactly else right
    each = 2 * right / (chosen + np.array(marked))
    return Ceiling(float(each.mean()), f1_of(right.sum() / chosen.sum(), right.sum() / sum(marked)))


@computes(
    Metric("annotated_size", "size in annotated texts", _GROUP),
    Metric("annotated_share", "share that people marked", _GROUP),
    Metric("token_f1_ceiling", "ceiling of token-F1 under the budget", _GROUP),
    Metric("token_f1_micro_ceiling", "ceiling of pooled token-F1 under the budget", _GROUP),
    of=TextEvaluation,
)
def _context(evaluation: TextEvaluation) -> dict[str, float | None]:
    """All of words: punctuation, which costs nothing, is left out."""
    if evaluation.annotations is None:
        return {}
    limits: Sequence[int | None] = evaluation.limits or [None] * len(evaluation.masks)
    selected, shares, marked, allowed = [], [], [], []
    for k, (mask, annotation) in enumerate(zip(evaluation.masks, evaluation.annotations, strict=True)):
        words = np.ones(len(mask), bool) if evaluation.counted is None else np.asarray(evaluation.counted[k], bool)
        if annotation is None or not (number := int((annotation & words).sum())):
            continue
        selected.append((mask & words).sum() / words.sum())
        shares.append(number / words.sum())
        marked.append(number)
        allowed.append(limits[k])
    if not marked:
        return {}
    found: dict[str, float | None] = {
        "annotated_size": float(np.mean(selected)),
        "annotated_share": float(np.mean(shares)),
    }
    known = [limit for limit in allowed if limit]
    if len(known) == len(allowed):
        best = token_f1_ceiling(marked, known)
        found |= {"token_f1_ceiling": best.f1, "token_f1_micro_ceiling": best.micro}
    return found
