"""What the rationales look like, whatever they say: how long they are and in how many pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.metrics._inputs import Floats, as_masks, require_same_count
from rationalizer.metrics.spans import mask_to_spans


@dataclass(frozen=True)
class Statistic:
    """One number per document, and its summary."""

    values: Floats
    histogram: NDArray[np.int64]  # documents per bin
    edges: Floats  # of the bins, one more than there are bins; the last bin holds its right edge

    @property
    def mean(self) -> float:
        # Rounding would put the mean of equal values beside them.
        return float(np.clip(self.values.mean(), self.minimum, self.maximum))

    @property
    def minimum(self) -> float:
        return float(self.values.min())

    @property
    def maximum(self) -> float:
        return float(self.values.max())


@dataclass(frozen=True)
class RationaleStatistics:
    """Sizes and spans of a set of rationales."""

    fraction: Statistic  # selected tokens / tokens; bins of 5 points from 0 to 1
    tokens: Statistic  # selected tokens; one bin per number
    spans: Statistic  # maximal runs of selected tokens; one bin per number


def rationale_statistics(masks: Sequence[Any]) -> RationaleStatistics:
    """Size (share and count of selected tokens) and number of spans, per document and in summary.

    A text without tokens has size 0.

    Args:
        masks: per document, the rationale: one 0/1 per token.
    """
    rationales = as_masks(masks, "masks")
    require_same_count(masks=rationales)
    tokens = np.array([np.sum(mask) for mask in rationales], dtype=np.float64)
    lengths = np.array([len(mask) for mask in rationales], dtype=np.float64)
    spans = np.array([len(mask_to_spans(mask)) for mask in rationales], dtype=np.float64)
    return RationaleStatistics(
        fraction=_statistic(tokens / np.maximum(lengths, 1), np.arange(21) / 20),
        tokens=_counts(tokens),
        spans=_counts(spans),
    )


def _counts(values: Floats) -> Statistic:
    return _statistic(values, np.arange(values.max() + 2))


def _statistic(values: Floats, edges: Floats) -> Statistic:
    histogram, _ = np.histogram(values, edges)
    return Statistic(values, histogram.astype(np.int64), edges)
