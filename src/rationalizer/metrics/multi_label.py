"""Scores of texts with several labels: F1 over all labels and per label, average precision, thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.metrics.registry import Metric, computes

Table = NDArray[np.float64]  # (documents, labels)
PRIOR = 20.0  # texts with a label that all labels together count as, in the calibration of its threshold
COMMON = 501  # thresholds that are tried for all labels, quantiles of all probabilities


@dataclass(kw_only=True)
class MultiLabelEvaluation:
    """Predictions of several labels.

    Args:
        truth: (documents, labels), 1, 0, or NaN where it is unknown.
        probabilities: (documents, labels).
        thresholds: the probability of each label from which a text has it; 0.5 by default.
    """

    truth: Any
    probabilities: Any
    thresholds: Any = 0.5

    def __post_init__(self) -> None:
        self.truth = np.asarray(self.truth, dtype=np.float64)
        self.probabilities = np.asarray(self.probabilities, dtype=np.float64)
        if self.truth.ndim != 2 or self.truth.shape != self.probabilities.shape:
            raise ValueError(
                f"truth and probabilities must be (documents, labels), got {self.truth.shape} and "
                f"{self.probabilities.shape}"
            )
        self.predicted = self.probabilities >= np.asarray(self.thresholds)

    def counts(self) -> tuple[Table, Table, Table]:
        """By label: how often it was found, how often it is true, how often it was predicted."""
        known = ~np.isnan(self.truth)
        hits = ((self.truth == 1) & self.predicted).sum(0)
        return hits, (self.truth == 1).sum(0), (known & self.predicted).sum(0)


@computes(
    Metric("micro_f1", "micro-F1 (over all labels)", "Task", heading="micro-F1", headline=True, large=True),
    Metric("average_precision", "average precision (mean over labels)", "Task", headline=True),
    Metric("label_precision", "precision (over all labels)", "Task"),
    Metric("label_recall", "recall (over all labels)", "Task"),
    of=MultiLabelEvaluation,
)
def _over_labels(evaluation: MultiLabelEvaluation) -> dict[str, float | None]:
    hits, true, predicted = (float(part.sum()) for part in evaluation.counts())
    ranked = average_precisions(evaluation.truth, evaluation.probabilities)
    return {
        "micro_f1": _share(2 * hits, true + predicted),
        "average_precision": None if np.isnan(ranked).all() else float(np.nanmean(ranked)),
        "label_precision": _share(hits, predicted),
        "label_recall": _share(hits, true),
    }


def label_f1(evaluation: MultiLabelEvaluation) -> Table:
    """(labels,) F1 = 2·hits / (times true + times predicted), 0 if the denominator is 0; their mean is macro-F1."""
    hits, true, predicted = evaluation.counts()
    return np.asarray(2 * hits / np.maximum(true + predicted, 1))


def average_precisions(truth: Table, probabilities: Table) -> Table:
    """(labels,) Σ over the texts that have the label of the precision among all texts that are at least as probable,
    divided by their number; NaN if no text has the label. As in scikit-learn, texts with equal probability count
    together."""
    found = []
    for column, p in zip(truth.T, probabilities.T, strict=True):
        known = ~np.isnan(column)
        order = np.argsort(-p[known], kind="stable")
        hits, ranked = np.cumsum(column[known][order] == 1), p[known][order]
        if not len(hits) or not hits[-1]:
            found.append(np.nan)
            continue
        ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))  # the last text of each probability
        gained = np.diff(hits[ends], prepend=0)
        found.append(float((gained * hits[ends] / (ends + 1)).sum() / hits[-1]))
    return np.array(found)


def calibrate_thresholds(truth: Table, probabilities: Table, *, prior: float = PRIOR) -> list[float]:
    """The threshold of each label with the highest F1 on these texts; of several the nearest to 0.5.

    A label that few of these texts have would get a threshold by chance. So all labels together count as `prior` more
    texts with the label: F1 = 2(h + a·H) / (g + t + a(G + T)), where h, g and t are how often the label was found,
    predicted and true, H, G and T the same over all labels, and a = prior / T. It is 0.5 if no text has any label.
    """
    known = ~np.isnan(truth)
    everything = _Ranked(truth[known], probabilities[known])
    if not everything.true:
        return [0.5] * truth.shape[1]
    weight = prior / everything.true
    common = np.quantile(everything.p, np.linspace(0, 1, COMMON)) if prior else np.zeros(0)
    limits = []
    for column, p, given in zip(truth.T, probabilities.T, known.T, strict=True):
        own = _Ranked(column[given], p[given])
        if not prior and not own.true:
            limits.append(0.5)
            continue
        distinct = np.unique(own.p)
        tried = np.concatenate([(distinct + np.append(0, distinct[:-1])) / 2, common])
        hits, guesses = own.counts(tried)
        all_hits, all_guesses = everything.counts(tried)
        f1 = 2 * (hits + weight * all_hits) / (guesses + own.true + weight * (all_guesses + everything.true))
        best = tried[f1 >= f1.max() - 1e-12]
        limits.append(float(best[np.abs(best - 0.5).argmin()]))
    return limits


class _Ranked:
    """Texts by their probability."""

    def __init__(self, truth: Table, p: Table) -> None:
        order = np.argsort(p, kind="stable")
        self.p = p[order]
        self.true = int((truth == 1).sum())
        self.above = np.append(np.cumsum((truth[order] == 1)[::-1])[::-1], 0)  # true ones from each place on

    def counts(self, limits: Table) -> tuple[NDArray[Any], NDArray[Any]]:
        """How many true texts, and how many in all, are at least as probable as each limit."""
        first = np.searchsorted(self.p, limits, side="left")
        return self.above[first], len(self.p) - first


def score_multi_label(evaluation: MultiLabelEvaluation) -> dict[str, float]:
    """The scores over all labels by name."""
    values = {name: value for name, value in _over_labels(evaluation).items() if value is not None}
    return values | {"macro_f1": float(label_f1(evaluation).mean())}


def mean_of_targets(scores: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of each score over the targets that have it."""
    names = dict.fromkeys(name for each in scores for name in each)
    return {name: float(np.mean([each[name] for each in scores if name in each])) for name in names}


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
