"""Which texts are most useful to annotate: uncertain label, unsure selection, disagreement with people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.inference.predict import Predictions
from rationalizer.models.trained_model import TrainedModel
from rationalizer.text import AnyExample

Values = NDArray[np.float64]


def annotation_usefulness(trained: TrainedModel, examples: Sequence[AnyExample], predictions: Predictions) -> Values:
    """A number from 0 to 1 per text, higher for texts that are more useful to annotate.

    It is the mean of three ranks among the texts: by the uncertainty of the label (entropy; not for a regression), by
    the unsureness of the selection (how little the scores of selected words exceed those of the best others), and by
    the disagreement with people, if there are labels or annotations (the error of the prediction, and one minus the F1
    of rationale and annotation).
    """
    trained.require_single("a ranking of texts by how useful their annotation is")
    found = zip(examples, predictions.selected, predictions.scores, strict=True)
    unsure = np.array([_unsureness(selected, scores) for _, selected, scores in found])
    ranks = [_ranks(unsure)]
    if predictions.outputs.ndim == 2:
        p = np.clip(predictions.outputs.astype(np.float64), 1e-9, 1)
        ranks.append(_ranks(-(p * np.log(p)).sum(1)))
    disagreement = np.zeros(len(examples))
    for k, (example, selected) in enumerate(zip(examples, predictions.selected, strict=True)):
        disagreement[k] = _error(predictions.outputs[k], example.label) + _distance(example, selected)
    if disagreement.any():
        ranks.append(_ranks(disagreement))
    return np.mean(ranks, axis=0)


def _unsureness(selected: NDArray[np.bool_], scores: NDArray[np.float32]) -> float:
    """How close the mean score of the selected words is to that of as many of the best others, in their spread."""
    inside, outside = scores[selected], np.sort(scores[~selected])[::-1]
    if not len(inside) or not len(outside) or not scores.std():
        return 1.0
    gap = (inside.mean() - outside[: len(inside)].mean()) / scores.std()
    return float(1 / (1 + max(gap, 0)))


def _error(output: Any, label: Any) -> float:
    if label is None:
        return 0.0
    if isinstance(label, tuple):  # several labels
        return float(np.mean([abs(p - truth) for p, truth in zip(output, label, strict=True) if truth is not None]))
    return float(1 - output[int(label)]) if np.ndim(output) else float(abs(output - label))


def _distance(example: AnyExample, selected: NDArray[np.bool_]) -> float:
    marked = example.annotated
    if not marked:
        return 0.0
    both = sum(bool(selected[index]) for index in marked)
    return float(1 - 2 * both / (len(marked) + selected.sum()))


def _ranks(values: Values) -> Values:
    """The mean rank of equal values, from 0 to 1."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts + 1) / 2
    return middle[inverse] / max(len(values) - 1, 1)
