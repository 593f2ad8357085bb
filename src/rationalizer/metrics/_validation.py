"""What every metric does with its arguments: check them, and bring them into NumPy's form.

A metric sees a list of documents; every error names the document (counted from 0) and, inside it, the token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Mask: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]


def as_mask(values: Any, name: str, document: int) -> Mask:
    """One document's selection as a bool vector; anything but 0 and 1 is an error."""
    array = _as_vector(values, name, document)
    if array.dtype == np.bool_:
        return array
    bad = (array != 0) & (array != 1)
    if bad.any():
        token = int(np.argmax(bad))
        raise ValueError(
            f"document {document}: {name}[{token}] is {array[token]!s}; a selection holds only 0 and 1 "
            "(of soft weights, take weights > 0)"
        )
    return array.astype(np.bool_)


def as_masks(documents: Iterable[Any], name: str) -> list[Mask]:
    return [as_mask(values, name, i) for i, values in enumerate(documents)]


def as_annotations(documents: Iterable[Any], name: str) -> list[Mask | None]:
    """Human rationales: None where a document has not been annotated."""
    return [None if values is None else as_mask(values, name, i) for i, values in enumerate(documents)]


def as_scores(documents: Iterable[Any], name: str) -> list[Floats]:
    """Token scores, one finite number a token."""
    scores = []
    for i, values in enumerate(documents):
        array = _as_vector(values, name, i).astype(np.float64)
        bad = ~np.isfinite(array)
        if bad.any():
            token = int(np.argmax(bad))
            raise ValueError(f"document {i}: {name}[{token}] is {array[token]}; token scores must be finite")
        scores.append(array)
    return scores


def as_probabilities(values: Any, name: str, documents: int) -> Floats:
    """(documents, classes) class probabilities: in [0, 1], each row with sum 1."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != documents or array.shape[1] < 2:
        raise ValueError(
            f"{name} must have shape (documents, classes) = ({documents}, at least 2), got {array.shape}; "
            "a two-class model with one output p gives [1 - p, p]"
        )
    slack = 1e-4  # half-precision softmaxes do not sum to 1 more exactly than this
    bad = ~((array >= -slack) & (array <= 1 + slack)).all(axis=1)
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(f"document {i}: {name} is {array[i]}; probabilities lie in [0, 1] (apply softmax to logits)")
    bad = np.abs(array.sum(axis=1) - 1) > 10 * slack
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(f"document {i}: {name} sums to {array[i].sum():.6g} over the classes; it must sum to 1")
    return array


def require_same_count(**arguments: Sequence[Any] | NDArray[Any]) -> int:
    """Every argument has one entry per document."""
    counts = {name: len(values) for name, values in arguments.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise ValueError(f"every argument needs one entry per document, but {listed}")
    count = next(iter(counts.values()))
    if count == 0:
        raise ValueError(f"{' and '.join(counts)} hold no documents; there is nothing to measure")
    return count


def require_same_lengths(**arguments: Sequence[NDArray[Any] | None]) -> None:
    """Every argument has one entry per token, in every document (None: not there)."""
    require_same_count(**arguments)
    for i, row in enumerate(zip(*arguments.values(), strict=True)):
        lengths = {name: len(values) for name, values in zip(arguments, row, strict=True) if values is not None}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise ValueError(f"document {i}: every argument needs one entry per token, but {listed}")


def _as_vector(values: Any, name: str, document: int) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"document {document}: {name} must be one-dimensional, got shape {array.shape}")
    if array.size == 0:
        return array.astype(np.bool_)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"document {document}: {name} must hold numbers, got {array.dtype} such as {array[0]!r}")
    return array
