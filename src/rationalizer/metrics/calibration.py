"""Calibration: whether predictions with a probability of 80% are correct in 80% of the cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rationalizer.metrics._validation import first_index, require_same_count

BINS = 10


@dataclass(frozen=True)
class Bin:
    """The predictions with a confidence in (low, high]."""

    low: float
    high: float
    count: int
    confidence: float  # mean
    accuracy: float  # share that is correct


@dataclass(frozen=True)
class Calibration:
    """The nonempty bins, and the expected calibration error Σ count / all · |accuracy − confidence|."""

    bins: tuple[Bin, ...]
    error: float


def calibration(confidences: Sequence[float], correct: Sequence[Any], *, bins: int = BINS) -> Calibration:
    """Compare confidence with accuracy in bins of equal width.

    Args:
        confidences: per document, the probability of the predicted class.
        correct: per document, whether the prediction is correct.
        bins: number of bins between 0 and 1.
    """
    confidence = np.asarray(confidences, dtype=np.float64)
    hits = np.asarray(correct, dtype=np.bool_)
    count = require_same_count(confidences=confidence, correct=hits)
    if (i := first_index(~((confidence >= 0) & (confidence <= 1 + 1e-6)))) is not None:
        raise ValueError(f"document {i}: the confidence is {confidence[i]}; it must be in [0, 1]")
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    number = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    nonempty = []
    for k in range(bins):
        inside = number == k
        if inside.any():
            mean, share = float(confidence[inside].mean()), float(hits[inside].mean())
            nonempty.append(Bin(k / bins, (k + 1) / bins, int(inside.sum()), mean, share))
    error = sum(each.count / count * abs(each.accuracy - each.confidence) for each in nonempty)
    return Calibration(tuple(nonempty), error)
