"""How well the model does its task: accuracy, F1 and calibration of classes, mean squared error of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rationalizer.metrics._validation import Floats, as_probabilities, require_same_count
from rationalizer.metrics.calibration import calibration

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
    return float(np.mean([scores.f1 for scores in class_scores(truth, predictions, classes)]))


@dataclass(frozen=True)
class ClassScores:
    """How well one class is told from the others; 0 where a share is one of nothing."""

    name: Any
    precision: float  # of those predicted to be of it, the share that is
    recall: float  # of those that are of it, the share that was found
    f1: float
    documents: int  # that are of it


def class_scores(
    truth: Sequence[Any], predictions: Sequence[Any], classes: Sequence[Any] | None = None
) -> list[ClassScores]:
    """Precision, recall and F1 of every class; arguments as of `macro_f1`."""
    table, names = _counted(truth, predictions, classes)
    hits, true, guessed = table.diagonal(), table.sum(1), table.sum(0)

    def share(part: Any, of: Any) -> float:
        return float(part / of) if of else 0.0

    return [
        ClassScores(name, share(h, g), share(h, t), share(2 * h, t + g), int(t))
        for name, h, t, g in zip(names.tolist(), hits, true, guessed, strict=True)
    ]


def confusions(
    truth: Sequence[Any], predictions: Sequence[Any], classes: Sequence[Any] | None = None
) -> NDArray[np.int64]:
    """(classes, classes) how many documents of the row's class were taken for the column's; see `macro_f1`."""
    return _counted(truth, predictions, classes)[0]


def _counted(
    truth: Sequence[Any], predictions: Sequence[Any], classes: Sequence[Any] | None
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    y, guess = as_label_pair(truth, predictions)
    names = np.unique(np.concatenate([y, guess])) if classes is None else as_labels(classes, "classes")
    _require_known(y, names, "truth")
    _require_known(guess, names, "predictions")
    number = {name: k for k, name in enumerate(names.tolist())}
    table = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(table, ([number[name] for name in y.tolist()], [number[name] for name in guess.tolist()]), 1)
    return table, names


def mse(truth: Sequence[float], predictions: Sequence[float]) -> float:
    """The mean over documents of (truth − prediction)²."""
    y, guess = as_numbers(truth, "truth"), as_numbers(predictions, "predictions")
    require_same_count(truth=y, predictions=guess)
    return float(np.mean((y - guess) ** 2))


def score_task(
    task: Task,
    truth: Sequence[Any],
    predictions: Sequence[Any],
    classes: Sequence[Any] | None = None,
    probabilities: Any = None,
) -> dict[str, float]:
    """The task's scores by name: `accuracy` and `macro_f1` of a classification, `mse` of a regression; with the
    (documents, classes) probabilities of a classification also `ece`, the expected calibration error."""
    if require_task(task) == "regression":
        return {"mse": mse(truth, predictions)}
    found = {"accuracy": accuracy(truth, predictions), "macro_f1": macro_f1(truth, predictions, classes)}
    if probabilities is None:
        return found
    y, guess = as_label_pair(truth, predictions)
    confidences = as_probabilities(probabilities, "probabilities", len(y)).max(axis=1)
    return found | {"ece": calibration(confidences, y == guess).error}


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
