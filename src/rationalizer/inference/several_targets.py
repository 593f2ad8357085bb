"""Predictions of several labels or targets: the part of each, its thresholds and its scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.inference.predict import Predictions
from rationalizer.metrics import Scores, TextEvaluation, compute_scores
from rationalizer.metrics.multi_label import (
    MultiLabelEvaluation,
    calibrate_thresholds,
    label_f1,
    mean_of_targets,
    score_multi_label,
)
from rationalizer.metrics.registry import compute_values
from rationalizer.models.trained_model import Description, TrainedModel
from rationalizer.text import Example

COUNTS = ("documents", "annotated_documents")


def split_outputs(description: Description, outputs: NDArray[Any]) -> list[NDArray[Any]]:
    """The outputs of each label or target: (texts,) probabilities or values, or (texts, classes) probabilities."""
    if description.task == "multi-label":
        return list(outputs.T)
    widths = [max(1, len(target.classes)) for target in description.targets]
    parts = np.split(outputs, np.cumsum(widths)[:-1], axis=1)
    return [part if target.classes else part[:, 0] for part, target in zip(parts, description.targets, strict=True)]


def predicted_values(trained: TrainedModel, outputs: NDArray[Any]) -> list[NDArray[Any]]:
    """By label 1 or 0, by target the index of a class or the value, for each text."""
    parts = split_outputs(trained.description, outputs)
    if trained.task == "multi-label":
        return [(part >= limit).astype(np.int64) for part, limit in zip(parts, trained.thresholds, strict=True)]
    return [part.argmax(-1) if part.ndim == 2 else part for part in parts]


def truth_table(examples: Sequence[Example]) -> NDArray[np.float64]:
    """(examples, labels or targets) with NaN for what is not given."""
    return np.array([example.label for example in examples], dtype=np.float64)


def find_thresholds(examples: Sequence[Any], predictions: Predictions) -> list[float]:
    return calibrate_thresholds(truth_table(examples), predictions.outputs.astype(np.float64))


def score_outputs(
    description: Description, truth: NDArray[Any], outputs: NDArray[Any], thresholds: Any = None
) -> dict[str, float]:
    """The scores over all labels or targets; without `thresholds` of labels, with those that are best on these texts."""
    if description.task == "multi-label":
        limits = calibrate_thresholds(truth, outputs) if thresholds is None else thresholds
        return score_multi_label(MultiLabelEvaluation(truth=truth, probabilities=outputs, thresholds=limits))
    scores = []
    for target, column, part in zip(description.targets, truth.T, split_outputs(description, outputs), strict=True):
        known = ~np.isnan(column)
        if known.any():
            scores.append(_score_target(target.classes, column[known], part[known]))
    return mean_of_targets(scores)


def _score_target(classes: Sequence[str], truth: NDArray[Any], outputs: NDArray[Any]) -> dict[str, float]:
    from rationalizer.metrics.task_scores import score_task

    if not classes:
        return score_task("regression", truth.tolist(), outputs.tolist())
    return score_task("classification", truth.astype(int).tolist(), outputs.argmax(-1).tolist(), range(len(classes)))


def evaluate_several(trained: TrainedModel, examples: Sequence[Example], predictions: Predictions) -> Scores:
    """The scores of each label or target in `Scores.by_label`, and their means; with micro-F1 over all labels."""
    description, names = trained.description, trained.description.labels.names
    labelled = all(example.label is not None for example in examples)
    truth = truth_table(examples) if labelled else np.full((len(examples), len(names)), np.nan)
    values = predicted_values(trained, predictions.outputs)
    parts = split_outputs(description, predictions.outputs)
    counted = [trained.encoder.counted(text.tokens) for text in examples]
    by_label: dict[str, Scores] = {}
    for k, name in enumerate(names):
        known = np.flatnonzero(~np.isnan(truth[:, k])).tolist() if labelled else range(len(examples))
        if not known:
            continue
        classes = ("no", "yes") if trained.task == "multi-label" else description.targets[k].classes
        shown = (f"without {name}", name) if trained.task == "multi-label" else classes
        outputs = parts[k]
        if trained.task == "multi-label":
            outputs = np.stack([1 - outputs, outputs], axis=1)
        own: dict[str, Any] = {"task": None, "truth": None, "classes": None, "class_names": None, "outputs": None}
        if labelled:
            column = truth[known, k].astype(int).tolist() if classes else truth[known, k].tolist()
            own = {"task": "classification" if classes else "regression", "truth": column}
            own["classes"] = range(len(classes)) if classes else None
            own |= {"class_names": shown or None, "outputs": outputs[known] if classes else None}
        scores = compute_scores(
            TextEvaluation(
                predictions=values[k][known].tolist(),
                masks=[_own(predictions.weights[i], k) != 0 for i in known],
                weights=[_own(predictions.scores[i], k) for i in known],
                annotations=[_annotation(examples[i], name) for i in known],
                counted=[counted[i] for i in known],
                **own,
            )
        )
        if trained.task == "multi-label" and labelled:
            one = MultiLabelEvaluation(
                truth=truth[:, [k]], probabilities=parts[k][:, None], thresholds=trained.thresholds[k]
            )
            scores = scores.replace(macro_f1=None, **compute_values(one))
        by_label[name] = scores
    means: dict[str, Any] = mean_of_targets([dict(scores) for scores in by_label.values()])
    means |= {name: float(len(examples)) for name in ("documents",) if name in means}
    means["seconds_per_epoch"] = trained.history.get("seconds_per_epoch")
    if trained.task == "multi-label" and labelled:
        all_labels = MultiLabelEvaluation(truth=truth, probabilities=predictions.outputs, thresholds=trained.thresholds)
        means |= {**compute_values(all_labels), "macro_f1": float(label_f1(all_labels).mean())}
    findings = tuple(finding for scores in by_label.values() for finding in scores.findings)
    return Scores(findings=findings, by_label=by_label, **means)


def _own(values: NDArray[Any], k: int) -> NDArray[Any]:
    """The row of one label, or what all labels share."""
    return values[k] if values.ndim == 2 else values


def _annotation(example: Example, name: str) -> Any:
    """The annotation of a label; that of the text if there is none for single labels."""
    if example.label_annotations is not None:
        return example.label_annotations.get(name)
    return example.annotation
