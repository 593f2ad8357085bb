"""Faithfulness: how the prediction changes without the rationale, and with nothing but the rationale.

With x the full text, r the rationale and ŷ the class predicted from x:

    comprehensiveness = p(ŷ | x) − p(ŷ | x∖r)      high: without the rationale the prediction falls
    sufficiency       = p(ŷ | x) − p(ŷ | r)        low: the rationale alone carries it

A select-then-predict model never reads the full text. By default p(· | x) comes from the same predictor with nothing
masked; to use a separately trained full-text model, pass its probabilities as `full`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.metrics._validation import (
    Floats,
    Mask,
    Probabilities,
    as_masks,
    as_probabilities,
    as_scores,
    require_same_count,
)
from rationalizer.metrics.evaluation import TextEvaluation
from rationalizer.metrics.registry import Metric, computes

AOPC_FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class Faithfulness:
    """Means over documents, and each document's values."""

    comprehensiveness: float
    sufficiency: float
    comprehensiveness_by_document: Floats
    sufficiency_by_document: Floats


@dataclass(frozen=True)
class Aopc:
    """Means over documents and fractions, and the curve over the fractions."""

    comprehensiveness: float
    sufficiency: float
    fractions: tuple[float, ...]
    comprehensiveness_by_fraction: Floats
    sufficiency_by_fraction: Floats


def faithfulness(probabilities: Probabilities, masks: Sequence[Any], *, full: Any = None) -> Faithfulness:
    """Comprehensiveness and sufficiency of the given rationales.

    Args:
        probabilities: the model. Takes one keep-mask per document (True: the token is visible; none or all of them may
            be True) and returns (documents, classes) probabilities. Called three times, twice if `full` is given.
        masks: per document, the rationale: one 0/1 per token.
        full: (documents, classes), probabilities given the full text; by default the model's own with all-ones masks.
    """
    rationales = as_masks(masks, "masks")
    require_same_count(masks=rationales)
    before = _full_text(probabilities, rationales, full)
    without, alone = _drops(probabilities, rationales, before)
    return Faithfulness(float(without.mean()), float(alone.mean()), without, alone)


def aopc(
    probabilities: Probabilities,
    scores: Sequence[Any],
    *,
    fractions: Sequence[float] = AOPC_FRACTIONS,
    full: Any = None,
) -> Aopc:
    """Area over the perturbation curve: mean comprehensiveness and sufficiency of rationales that consist of the top
    1, 5, 10, 20 and 50% of the tokens by score.

    The top q of n tokens are ⌈q·n⌉ tokens, as in ERASER's models; ties go to the earlier token.

    Args:
        probabilities: the model, as in `faithfulness`. Called twice per fraction, and once for the full text.
        scores: per document, one finite number per token; larger means more important.
        fractions: the shares of tokens, in (0, 1].
        full: as in `faithfulness`.
    """
    rankings = as_scores(scores, "scores")
    require_same_count(scores=rankings)
    if not fractions or not all(0 < fraction <= 1 for fraction in fractions):
        raise ValueError(f"fractions must lie in (0, 1], got {tuple(fractions)}")
    before = _full_text(probabilities, rankings, full)
    curve = [
        [values.mean() for values in _drops(probabilities, [top_tokens(r, fraction) for r in rankings], before)]
        for fraction in fractions
    ]
    without, alone = np.array(curve, dtype=np.float64).T
    return Aopc(float(without.mean()), float(alone.mean()), tuple(fractions), without, alone)


def top_tokens(scores: Floats, fraction: float) -> Mask:
    """The mask of the ⌈fraction·n⌉ tokens with the largest scores; ties go to the earlier token."""
    # As a decimal: in binary, 0.07 · 100 exceeds 7 and would round up to 8.
    count = math.ceil(Fraction(repr(float(fraction))) * len(scores))
    mask = np.zeros(len(scores), dtype=np.bool_)
    mask[np.argsort(-scores, kind="stable")[:count]] = True
    return mask


def _full_text(probabilities: Probabilities, documents: Sequence[NDArray[Any]], full: Any) -> Floats:
    if full is not None:
        return as_probabilities(full, "full", len(documents))
    return _probabilities_of(
        probabilities, [np.ones(len(document), dtype=np.bool_) for document in documents], "the full texts"
    )


def _drops(probabilities: Probabilities, rationales: list[Mask], before: Floats) -> tuple[Floats, Floats]:
    """Per document, the drop of p(ŷ) without the rationale and with the rationale alone."""
    without = _probabilities_of(probabilities, [~mask for mask in rationales], "the texts without their rationales")
    alone = _probabilities_of(probabilities, rationales, "the rationales")
    if not before.shape == without.shape == alone.shape:
        raise ValueError(
            f"the full texts have probabilities of {before.shape[1]} classes, "
            f"the masked texts of {without.shape[1]} and {alone.shape[1]}; the numbers must be equal"
        )
    row, label = np.arange(len(before)), before.argmax(axis=1)
    return before[row, label] - without[row, label], before[row, label] - alone[row, label]


def _probabilities_of(probabilities: Probabilities, masks: list[Mask], what: str) -> Floats:
    return as_probabilities(probabilities(masks), f"probabilities of {what}", len(masks))


@computes(
    Metric("comprehensiveness", "comprehensiveness", "Faithfulness"),
    Metric("sufficiency", "sufficiency", "Faithfulness", lower_is_better=True),
    Metric("aopc_comprehensiveness", "comprehensiveness, AOPC", "Faithfulness"),
    Metric("aopc_sufficiency", "sufficiency, AOPC", "Faithfulness", lower_is_better=True),
    of=TextEvaluation,
)
def _faithfulness(evaluation: TextEvaluation) -> dict[str, float]:
    if evaluation.probabilities is None:
        return {}
    full = _full_text(evaluation.probabilities, as_masks(evaluation.masks, "masks"), evaluation.full)
    hard = faithfulness(evaluation.probabilities, evaluation.masks, full=full)
    scores = {"comprehensiveness": hard.comprehensiveness, "sufficiency": hard.sufficiency}
    if evaluation.weights is not None:
        curve = aopc(evaluation.probabilities, evaluation.weights, full=full)
        scores |= {"aopc_comprehensiveness": curve.comprehensiveness, "aopc_sufficiency": curve.sufficiency}
    return scores
