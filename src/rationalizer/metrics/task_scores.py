"""Scores of the task: accuracy, F1 and calibration for classification, errors and R² for regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.metrics._validation import (
    Task,
    as_label_pair,
    as_labels,
    as_numbers,
    as_probabilities,
    require_known,
    require_same_count,
    require_task,
)
from rationalizer.metrics.calibration import calibration
from rationalizer.metrics.evaluation import Evaluation
from rationalizer.metrics.registry import Metric, computes


def accuracy(truth: Sequence[Any], predictions: Sequence[Any]) -> float:
    """The share of documents whose predicted class is correct."""
    y, guess = as_label_pair(truth, predictions)
    return float(np.mean(y == guess))


def macro_f1(truth: Sequence[Any], predictions: Sequence[Any], classes: Sequence[Any] | None = None) -> float:
    """The mean over classes of F1 = 2·hits / (times true + times predicted).

    A class that neither occurs nor is predicted scores 0 and is part of the mean, as in scikit-learn's
    `f1_score(truth, predictions, labels=classes, average="macro", zero_division=0)`. A test set without one of the
    `classes` therefore cannot reach 1.

    Args:
        truth: one class per document.
        predictions: one class per document.
        classes: all classes of the task; by default the classes that occur in `truth` or `predictions`.
    """
    return float(np.mean([scores.f1 for scores in class_scores(truth, predictions, classes)]))


@dataclass(frozen=True)
class ClassScores:
    """Scores of one class; 0 if the denominator is 0."""

    name: Any
    precision: float
    recall: float
    f1: float
    documents: int  # number of documents of this class


def class_scores(
    truth: Sequence[Any], predictions: Sequence[Any], classes: Sequence[Any] | None = None
) -> list[ClassScores]:
    """Precision, recall and F1 of every class; arguments as for `macro_f1`."""
    table, names = _confusions(truth, predictions, classes)
    hits, true, guessed = table.diagonal(), table.sum(1), table.sum(0)

    def share(part: Any, total: Any) -> float:
        return float(part / total) if total else 0.0

    return [
        ClassScores(name, share(h, g), share(h, t), share(2 * h, t + g), int(t))
        for name, h, t, g in zip(names.tolist(), hits, true, guessed, strict=True)
    ]


def confusions(
    truth: Sequence[Any], predictions: Sequence[Any], classes: Sequence[Any] | None = None
) -> NDArray[np.int64]:
    """(classes, classes) counts: rows are true classes, columns predicted ones; arguments as for `macro_f1`."""
    return _confusions(truth, predictions, classes)[0]


def _confusions(
    truth: Sequence[Any], predictions: Sequence[Any], classes: Sequence[Any] | None
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    y, guess = as_label_pair(truth, predictions)
    names = np.unique(np.concatenate([y, guess])) if classes is None else as_labels(classes, "classes")
    require_known(y, names, "truth")
    require_known(guess, names, "predictions")
    number = {name: k for k, name in enumerate(names.tolist())}
    table = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(table, ([number[name] for name in y.tolist()], [number[name] for name in guess.tolist()]), 1)
    return table, names


def mse(truth: Sequence[float], predictions: Sequence[float]) -> float:
    """The mean over documents of (truth − prediction)²."""
    y, guess = as_numbers(truth, "truth"), as_numbers(predictions, "predictions")
    require_same_count(truth=y, predictions=guess)
    return float(np.mean((y - guess) ** 2))


def _regression_scores(truth: Sequence[float], predictions: Sequence[float]) -> dict[str, float]:
    y, guess = as_numbers(truth, "truth"), as_numbers(predictions, "predictions")
    error = mse(truth, predictions)
    scores = {"mse": error, "mae": float(np.mean(np.abs(y - guess)))}
    return scores | ({"r2": 1 - error / float(y.var())} if np.ptp(y) else {})


def score_task(
    task: Task,
    truth: Sequence[Any],
    predictions: Sequence[Any],
    classes: Sequence[Any] | None = None,
    probabilities: Any = None,
) -> dict[str, float]:
    """Compute the task's scores by name: `accuracy` and `macro_f1`, with (documents, classes) `probabilities` also
    `ece`, the expected calibration error; for regression `mse`, `mae`, and `r2` unless all true values are equal."""
    if require_task(task) == "regression":
        return _regression_scores(truth, predictions)
    scores = {"accuracy": accuracy(truth, predictions), "macro_f1": macro_f1(truth, predictions, classes)}
    if probabilities is None:
        return scores
    y, guess = as_label_pair(truth, predictions)
    confidences = as_probabilities(probabilities, "probabilities", len(y)).max(axis=1)
    return scores | {"ece": calibration(confidences, y == guess).error}


@computes(
    Metric("accuracy", "accuracy", "Task", headline=True, large=True),
    Metric("macro_f1", "macro-F1", "Task", heading="macro-F1", headline=True, large=True, paper="task"),
    Metric("ece", "expected calibration error (10 bins)", "Task", lower_is_better=True),
    Metric(
        "mse",
        "mean squared error",
        "Task",
        "error",
        lower_is_better=True,
        heading="MSE (lower is better)",
        headline=True,
        large=True,
        abbreviation="MSE",
        paper="task",
    ),
    Metric("mae", "mean absolute error", "Task", "error", lower_is_better=True, abbreviation="MAE"),
    Metric("r2", "R²", "Task", headline=True, large=True),
    of=Evaluation,
)
def _task(evaluation: Evaluation) -> dict[str, float]:
    if evaluation.task is None or evaluation.truth is None:
        return {}
    return score_task(evaluation.task, evaluation.truth, evaluation.predictions, evaluation.classes, evaluation.outputs)
