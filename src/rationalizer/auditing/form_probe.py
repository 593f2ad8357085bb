"""How much more of a label a probe reads from one set of features than from another, with an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rationalizer.metrics.label_probe import FOLDS, cross_validated

RESAMPLES = 1000
PERCENT = 95


@dataclass(frozen=True)
class Estimate:
    """A number and its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def form_skill(
    features: NDArray[np.float64],
    control: NDArray[np.float64],
    codes: NDArray[np.int64],
    rng: np.random.Generator,
) -> Estimate | None:
    """The skill of a linear probe: (a − b) / (1 − b), 0 for nothing and 1 for certainty.

    a and b are mean recalls over the classes, cross-validated, of a probe that sees `features` and of one that sees
    `control` only; b is at least 1 / classes. The interval is a bootstrap over the texts. None with too few texts.
    """
    _, codes, counts = np.unique(codes, return_inverse=True, return_counts=True)
    usable = counts[codes] >= 2 * FOLDS
    if not usable.any() or len(np.unique(codes[usable])) < 2:
        return None
    codes = np.unique(codes[usable], return_inverse=True)[1].astype(np.int64)
    right = [cross_validated(_scaled(table[usable]), codes) == codes for table in (features, control)]
    recalls = np.stack(
        [_resampled_recalls(hits, codes, np.random.default_rng(rng.integers(1 << 32))) for hits in right]
    )
    classes = int(codes.max()) + 1
    base = np.maximum(recalls[1], 1 / classes)
    skills = np.where(base < 1, (recalls[0] - base) / np.maximum(1 - base, 1e-9), 0.0)
    low, high = np.percentile(skills[1:], [(100 - PERCENT) / 2, (100 + PERCENT) / 2])
    return Estimate(float(skills[0]), float(low), float(high))


def bootstrap_mean(values: NDArray[np.float64], rng: np.random.Generator) -> Estimate:
    """The mean over texts and its interval."""
    if not len(values):
        return Estimate(0.0, 0.0, 0.0)
    drawn = values[rng.integers(len(values), size=(RESAMPLES, len(values)))].mean(1)
    low, high = np.percentile(drawn, [(100 - PERCENT) / 2, (100 + PERCENT) / 2])
    return Estimate(float(values.mean()), float(low), float(high))


def _resampled_recalls(
    hits: NDArray[np.bool_], codes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """The mean recall over the classes: first that of all texts, then those of resampled texts."""
    recalls = []
    for code in range(int(codes.max()) + 1):
        own = hits[codes == code].astype(np.float64)
        drawn = rng.binomial(len(own), own.mean(), RESAMPLES) / len(own)  # the bootstrap distribution of a mean of 0/1
        recalls.append(np.concatenate([[own.mean()], drawn]))
    return np.mean(recalls, axis=0)


def _scaled(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """A constant column, and all others with mean 0 and deviation 1."""
    deviation = table.std(0)
    scaled = (table - table.mean(0)) / np.where(deviation > 0, deviation, 1.0)
    return np.concatenate([np.ones((len(table), 1)), scaled], axis=1)
