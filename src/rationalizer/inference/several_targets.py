"""Predictions of several labels or targets: the part of each, its thresholds and its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.data import Corpus
from rationalizer.inference.predict import Predictions
from rationalizer.metrics import Finding, Scores, TextEvaluation, compute_scores, find_degeneration
from rationalizer.metrics.degeneration import NAMED_CLASSES, UNPREDICTED_TEXTS, list_classes
from rationalizer.metrics.multi_label import (
    MultiLabelEvaluation,
    calibrate_thresholds,
    label_f1,
    mean_of_targets,
    score_multi_label,
)
from rationalizer.metrics.registry import compute_values
from rationalizer.models.description import Description
from rationalizer.models.trained_model import TrainedModel
from rationalizer.text import Example

PROBED = 20  # of more labels, signs of degeneration are looked for in the rationales of the first one only


def split_outputs(description: Description | Corpus, outputs: NDArray[Any]) -> list[NDArray[Any]]:
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
    description: Description | Corpus, truth: NDArray[Any], outputs: NDArray[Any], thresholds: Any = None
) -> dict[str, float]:
    """The scores over all labels or targets. Without `thresholds`, labels get those that are best on these texts."""
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
    names = trained.description.labels.names
    labelled = all(example.label is not None for example in examples)
    truth = truth_table(examples) if labelled else np.full((len(examples), len(names)), np.nan)
    values = predicted_values(trained, predictions.outputs)
    counted = [trained.encoder.counted(text.tokens) for text in examples]
    probed = len(names) <= PROBED
    by_label: dict[str, Scores] = {}
    for k, name in enumerate(names):
        known = np.flatnonzero(~np.isnan(truth[:, k])).tolist() if labelled else list(range(len(examples)))
        if not known:
            continue
        evaluation = TextEvaluation(
            predictions=values[k][known].tolist(),
            masks=[_own(predictions.weights[i], k) != 0 for i in known],
            weights=[_own(predictions.scores[i], k) for i in known],
            annotations=[_annotation(examples[i], name) for i in known],
            counted=[counted[i] for i in known],
            **(_task_of(trained, predictions, truth, known, k) if labelled else {}),
        )
        scores = compute_scores(evaluation) if probed else Scores().replace(**compute_values(evaluation))
        if trained.task == "multi-label" and labelled:
            one = MultiLabelEvaluation(
                truth=truth[:, [k]], probabilities=predictions.outputs[:, [k]], thresholds=trained.thresholds[k]
            )
            scores = scores.replace(macro_f1=None, **compute_values(one))
        by_label[name] = scores
    means: dict[str, Any] = mean_of_targets([dict(scores) for scores in by_label.values()])
    means |= {name: float(len(examples)) for name in ("documents",) if name in means}
    means["seconds_per_epoch"] = trained.history.get("seconds_per_epoch")
    findings = name_labels({name: scores.findings for name, scores in by_label.items()})
    if not probed:
        findings += find_degeneration([_own(weights, 0) != 0 for weights in predictions.weights])
    if trained.task == "multi-label" and labelled:
        all_labels = MultiLabelEvaluation(truth=truth, probabilities=predictions.outputs, thresholds=trained.thresholds)
        means |= {**compute_values(all_labels), "macro_f1": float(label_f1(all_labels).mean())}
        findings = [one for one in findings if one.kind != "unpredicted_classes"] + unpredicted_labels(
            all_labels, names
        )
    return Scores(findings=tuple(findings), by_label=by_label, **means)


def _task_of(
    trained: TrainedModel, predictions: Predictions, truth: NDArray[Any], known: list[int], k: int
) -> dict[str, Any]:
    """The arguments of an evaluation that depend on the task of a label or target."""
    column = truth[known, k]
    if trained.task == "multi-label":
        p = predictions.outputs[known, k]
        binary = {"truth": column.astype(int).tolist(), "classes": range(2), "outputs": np.stack([1 - p, p], axis=1)}
        return {"task": "classification", **binary}
    target = trained.description.targets[k]
    if not target.classes:
        return {"task": "regression", "truth": column.tolist()}
    return {
        "task": "classification",
        "truth": column.astype(int).tolist(),
        "classes": range(len(target.classes)),
        "class_names": target.classes,
        "outputs": split_outputs(trained.description, predictions.outputs)[k][known],
    }


def name_labels(findings: Mapping[str, Sequence[Finding]]) -> list[Finding]:
    """One finding of each kind, with the names of the labels that have it."""
    by_kind: dict[str, list[tuple[str, Finding]]] = {}
    for name, each in findings.items():
        for finding in each:
            by_kind.setdefault(finding.kind, []).append((name, finding))
    named = []
    for (first, finding), *others in by_kind.values():
        listed = ", ".join(name for name, _ in others[:NAMED_CLASSES])
        more = len(others) - NAMED_CLASSES
        also = f"; the same holds for {listed}{f' and {more} more' if more > 0 else ''}" if others else ""
        named.append(replace(finding, message=f"{first}: {finding.message}{also}"))
    return named


def unpredicted_labels(evaluation: MultiLabelEvaluation, names: Sequence[str]) -> list[Finding]:
    """Look for labels that some texts have, and the model never predicts."""
    _, true, predicted = evaluation.counts()
    counts = zip(names, true.tolist(), predicted.tolist(), strict=True)
    missing = {name: count for name, count, found in counts if count >= UNPREDICTED_TEXTS and not found}
    if not missing:
        return []
    message = (
        f"the model never predicts {list_classes(missing)}; add training texts with such labels, or lower their "
        "thresholds (model.thresholds)"
    )
    return [Finding("unpredicted_classes", message, len(missing) / len(names))]


def _own(values: NDArray[Any], k: int) -> NDArray[Any]:
    """The row of one label, or what all labels share."""
    return values[k] if values.ndim == 2 else values


def _annotation(example: Example, name: str) -> Any:
    """The annotation of a label; that of the text if there is none for single labels."""
    if example.label_annotations is not None:
        return example.label_annotations.get(name)
    return example.annotation
