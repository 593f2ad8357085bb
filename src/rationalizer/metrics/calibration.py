"""Calibration: whether a model that says 80% is right four times out of five."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rationalizer.metrics._validation import require_same_count

BINS = 10


@dataclass(frozen=True)
class Bin:
    """The predictions whose confidence lies above `low` and up to `high`."""

    low: float
    high: float
    count: int
    confidence: float  # their mean
    accuracy: float  # the share of them that is right


@dataclass(frozen=True)
class Calibration:
    """The bins that hold predictions, and the expected calibration error Σ count / all · |accuracy − confidence|."""

    bins: tuple[Bin, ...]
    error: float


def calibration(confidences: Sequence[float], right: Sequence[Any], *, bins: int = BINS) -> Calibration:
    """How far confidence and accuracy lie apart, in bins of equal width.

    Args:
        confidences: per document, the probability of the class that was predicted.
        right: per document, whether that is the true class.
        bins: into which the confidences from 0 to 1 are divided.
    """
    sure = np.asarray(confidences, dtype=np.float64)
    hits = np.asarray(right, dtype=np.bool_)
    count = require_same_count(confidences=sure, right=hits)
    bad = ~((sure >= 0) & (sure <= 1 + 1e-6))
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(f"document {i}: the confidence is {sure[i]}; a probability lies in [0, 1]")
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    number = np.clip(np.ceil(sure * bins).astype(np.int64) - 1, 0, bins - 1)
    found = []
    for k in range(bins):
        inside = number == k
        if inside.any():
            mean, share = float(sure[inside].mean()), float(hits[inside].mean())
            found.append(Bin(k / bins, (k + 1) / bins, int(inside.sum()), mean, share))
    error = sum(each.count / count * abs(each.accuracy - each.confidence) for each in found)
    return Calibration(tuple(found), error)
