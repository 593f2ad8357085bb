"""Validate the arguments of metrics and convert them to NumPy arrays.

Metrics take a list of documents; every error names the document (counted from 0) and, inside it, the token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

Mask: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Task = Literal["classification", "regression"]
Probabilities: TypeAlias = Callable[[list[Mask]], Any]  # from keep-masks to (documents, classes) probabilities


def first_index(flags: Any) -> int | None:
    """The index of the first True; None if there is none."""
    return int(np.argmax(flags)) if flags.any() else None


def as_mask(values: Any, name: str, document: int) -> Mask:
    """Convert one document's selection to a bool vector; values other than 0 and 1 are an error."""
    array = _as_vector(values, name, document)
    if array.dtype == np.bool_:
        return array
    if (token := first_index((array != 0) & (array != 1))) is not None:
        raise ValueError(
            f"document {document}: {name}[{token}] is {array[token]!s}; a selection contains only 0 and 1 "
            "(for soft weights, pass weights > 0)"
        )
    return array.astype(np.bool_)


def as_masks(documents: Iterable[Any], name: str) -> list[Mask]:
    return [as_mask(values, name, i) for i, values in enumerate(documents)]


def as_annotations(documents: Iterable[Any], name: str) -> list[Mask | None]:
    """Convert annotations; None if nobody annotated the document."""
    return [None if values is None else as_mask(values, name, i) for i, values in enumerate(documents)]


def as_scores(documents: Iterable[Any], name: str) -> list[Floats]:
    """Convert token scores: one finite number per token."""
    scores = []
    for i, values in enumerate(documents):
        array = _as_vector(values, name, i).astype(np.float64)
        if (token := first_index(~np.isfinite(array))) is not None:
            raise ValueError(f"document {i}: {name}[{token}] is {array[token]}; token scores must be finite")
        scores.append(array)
    return scores


def as_probabilities(values: Any, name: str, documents: int) -> Floats:
    """Convert (documents, classes) probabilities: in [0, 1], each row with sum 1."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != documents or array.shape[1] < 2:
        raise ValueError(
            f"{name} must have shape (documents, classes) = ({documents}, at least 2), got {array.shape}; "
            "for a two-class model with one output p, pass [1 - p, p]"
        )
    slack = 1e-4  # rounding of a softmax in half precision
    if (i := first_index(~((array >= -slack) & (array <= 1 + slack)).all(axis=1))) is not None:
        raise ValueError(f"document {i}: {name} is {array[i]}; probabilities lie in [0, 1] (apply softmax to logits)")
    if (i := first_index(np.abs(array.sum(axis=1) - 1) > 10 * slack)) is not None:
        raise ValueError(f"document {i}: {name} sums to {array[i].sum():.6g} over the classes; it must sum to 1")
    return array


def require_same_count(**arguments: Sequence[Any] | NDArray[Any]) -> int:
    """Check that every argument has one entry per document, and return the number of documents."""
    counts = {name: len(values) for name, values in arguments.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise ValueError(f"every argument needs one entry per document, but {listed}")
    count = next(iter(counts.values()))
    if count == 0:
        raise ValueError(f"{' and '.join(counts)} contain no documents")
    return count


def require_same_lengths(**arguments: Sequence[NDArray[Any] | None]) -> None:
    """Check that every argument has one entry per token in every document; None entries are skipped."""
    require_same_count(**arguments)
    for i, row in enumerate(zip(*arguments.values(), strict=True)):
        lengths = {name: len(values) for name, values in zip(arguments, row, strict=True) if values is not None}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise ValueError(f"document {i}: every argument needs one entry per token, but {listed}")


def require_task(task: str) -> str:
    if task not in get_args(Task):
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}")
    return task


def as_labels(values: Sequence[Any], name: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must contain one class per document, got shape {array.shape}")
    if array.dtype.kind == "f" and (i := first_index(~np.isfinite(array))) is not None:
        raise ValueError(f"document {i}: {name} is {array[i]}; a class is a string or a finite number")
    return array


def as_label_pair(truth: Sequence[Any], predictions: Sequence[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    y, guess = as_labels(truth, "truth"), as_labels(predictions, "predictions")
    require_same_count(truth=y, predictions=guess)
    if (y.dtype.kind in "biuf") != (guess.dtype.kind in "biuf"):
        raise TypeError(
            f"truth contains {y.dtype} such as {y[0]!s}, predictions {guess.dtype} such as {guess[0]!s}; "
            "use class names in both, or class numbers in both"
        )
    return y, guess


def as_numbers(values: Sequence[float], name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must contain one number per document, got shape {array.shape}")
    if (i := first_index(~np.isfinite(array))) is not None:
        raise ValueError(f"document {i}: {name} is {array[i]}; regression needs finite numbers")
    return array


def require_known(labels: NDArray[Any], classes: NDArray[Any], name: str) -> None:
    if (i := first_index(~np.isin(labels, classes))) is not None:
        raise ValueError(f"document {i}: {name} is {labels[i]!s}, which is not among the classes {classes.tolist()}")


def _as_vector(values: Any, name: str, document: int) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"document {document}: {name} must be one-dimensional, got shape {array.shape}")
    if array.size == 0:
        return array.astype(np.bool_)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"document {document}: {name} must contain numbers, got {array.dtype} such as {array[0]!r}")
    return array
