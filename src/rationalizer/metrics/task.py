"""How well the model does its task: accuracy and macro-F1 of classes, mean squared error of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rationalizer.metrics._inputs import Floats, require_same_count

Task = Literal["classification", "regression"]


def accuracy(truth: Sequence[Any], predictions: Sequence[Any]) -> float:
    """The share of documents whose predicted class is the true one."""
    y, guess = as_label_pair(truth, predictions)
    return float(np.mean(y == guess))


def macro_f1(truth: Sequence[Any], predictions: Sequence[Any], classes: Sequence[Any] | None = None) -> float:
    """The mean over classes of F1 = 2·hits / (times true + times predicted).

    A class that is neither true nor predicted anywhere scores 0 and counts in the mean, as in scikit-learn's
    `f1_score(truth, predictions, labels=classes, average="macro", zero_division=0)`. So a test set that lacks
    one of the `classes` cannot reach 1.

    Args:
        truth: one class per document.
        predictions: one class per document.
        classes: all classes of the task; by default those that occur in `truth` or `predictions`.
    """
    y, guess = as_label_pair(truth, predictions)
    names = np.unique(np.concatenate([y, guess])) if classes is None else as_labels(classes, "classes")
    if classes is not None:
        _require_known(y, names, "truth")
        _require_known(guess, names, "predictions")
    scores = []
    for name in names:
        hits = np.sum((y == name) & (guess == name))
        occurrences = np.sum(y == name) + np.sum(guess == name)
        scores.append(2 * hits / occurrences if occurrences else 0.0)
    return float(np.mean(scores))


def mse(truth: Sequence[float], predictions: Sequence[float]) -> float:
    """The mean over documents of (truth − prediction)²."""
    y, guess = as_numbers(truth, "truth"), as_numbers(predictions, "predictions")
    require_same_count(truth=y, predictions=guess)
    return float(np.mean((y - guess) ** 2))


def score_task(
    task: Task, truth: Sequence[Any], predictions: Sequence[Any], classes: Sequence[Any] | None = None
) -> dict[str, float]:
    """The task's scores by name: `accuracy` and `macro_f1` of a classification, `mse` of a regression."""
    if require_task(task) == "regression":
        return {"mse": mse(truth, predictions)}
    return {"accuracy": accuracy(truth, predictions), "macro_f1": macro_f1(truth, predictions, classes)}


def require_task(task: str) -> str:
    if task not in ("classification", "regression"):
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}")
    return task


def as_labels(values: Sequence[Any], name: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must hold one class per document, got shape {array.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        i = int(np.argmin(np.isfinite(array)))
        raise ValueError(f"document {i}: {name} is {array[i]}; a class is a name or a number")
    return array


def as_label_pair(truth: Sequence[Any], predictions: Sequence[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    y, guess = as_labels(truth, "truth"), as_labels(predictions, "predictions")
    require_same_count(truth=y, predictions=guess)
    if (y.dtype.kind in "biuf") != (guess.dtype.kind in "biuf"):
        raise TypeError(
            f"truth holds {y.dtype} such as {y[0]!s}, predictions {guess.dtype} such as {guess[0]!s}; "
            "use class names in both, or class numbers in both"
        )
    return y, guess


def as_numbers(values: Sequence[float], name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must hold one number per document, got shape {array.shape}")
    if not np.isfinite(array).all():
        i = int(np.argmin(np.isfinite(array)))
        raise ValueError(f"document {i}: {name} is {array[i]}; regression needs finite numbers")
    return array


def _require_known(labels: NDArray[Any], classes: NDArray[Any], name: str) -> None:
    unknown = ~np.isin(labels, classes)
    if unknown.any():
        i = int(np.argmax(unknown))
        raise ValueError(f"document {i}: {name} is {labels[i]!s}, which is not among the classes {classes.tolist()}")
