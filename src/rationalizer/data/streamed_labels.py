"""The labels of files larger than memory: what they mean is known only when all have been seen."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.data.bad_rows import BadRows
from rationalizer.data.corpus import SEVERAL, Task
from rationalizer.data.labels import Labels, MixedLabels, Parsed, infer_labels, parse_label
from rationalizer.text.errors import DataError

UNUSABLE = -1  # the class of a label that is not among the classes; as a value it is NaN


class LabelsBuilder:
    """Collects the labels of several files. Each takes 12 bytes, fractions 8 bytes more.

    Each distinct class is stored once and numbered. Fractions are mostly distinct, and cannot be classes: their values
    are stored.
    """

    def __init__(self, task: Task | None = None) -> None:
        self._task = task
        self._number: dict[tuple[type, Parsed], int] = {}
        self._distinct: list[Parsed] = []  # in order of appearance
        self._places: list[tuple[Path, int]] = []  # file and row where each distinct label first appeared
        self._count = 0  # number of labels, including labels of rows without a text
        self._numbers = array("i")  # one per row: index into `_distinct`, or -1 for the next value of `_fractions`
        self._fractions = array("d")
        self._rows: list[tuple[Path, array[int]]] = []  # row numbers in their files

    def begin(self, path: Path) -> None:
        """Start a file."""
        self._rows.append((path, array("q")))

    def parse(self, value: Any, row: int) -> Parsed:
        """Parse and register the label of a row, even if the row cannot be used; DataError if the label is missing."""
        label = parse_label(value, self._task)
        self._count += 1
        key = (type(label), label) if not _is_fraction(label) else (float, 0.5)
        if key not in self._number:
            self._number[key] = len(self._distinct)
            self._distinct.append(label)
            self._places.append((self._rows[-1][0], row))
        return label

    def add(self, label: Parsed, row: int) -> None:
        """Add a parsed label of a row that is used."""
        if isinstance(label, float) and _is_fraction(label):
            self._numbers.append(-1)
            self._fractions.append(label)
        else:
            self._numbers.append(self._number[type(label), label])
        self._rows[-1][1].append(row)

    def infer(self, task: Task | None, classes: Sequence[str] | None) -> Labels:
        """Infer the task and the classes; DataError if the labels do not fit together."""
        try:
            return infer_labels(self._distinct, task, classes, count=self._count)
        except MixedLabels as error:
            path, row = self._places[error.position]
            raise DataError.from_error(error, path=path, row=row) from None
        except ValueError as error:
            raise DataError.from_error(error, path=self._rows[0][0]) from None

    def encode(self, labels: Labels, bad: BadRows) -> NDArray[Any]:
        """The labels as int64 class indices or float64 values, in one column for each of several labels or targets.
        Rows with an unknown label are added to `bad`."""
        errors: dict[Parsed, ValueError] = {}
        unusable: Any = [np.nan] * len(labels.names) if labels.task in SEVERAL else np.nan

        def encode(label: Parsed) -> Any:
            try:
                return labels.encode(label)
            except ValueError as error:
                errors[label] = error
                return unusable

        numbers = np.frombuffer(self._numbers, dtype=np.int32)
        encoded = np.array([*map(encode, self._distinct), unusable], dtype=np.float64)[numbers]
        fractions = iter(self._fractions)
        for k in np.flatnonzero(numbers < 0).tolist():
            label = next(fractions)
            encoded[k] = encode(label)
            if label in errors:
                bad.add(*self._place(k), errors[label])
            if bad.is_full:
                bad.raise_if_any()
        for k in np.flatnonzero(~is_usable(encoded) & (numbers >= 0)).tolist():
            bad.add(*self._place(k), errors[self._distinct[numbers[k]]])
            if bad.is_full:
                bad.raise_if_any()
        return encoded if labels.task != "classification" else np.nan_to_num(encoded, nan=UNUSABLE).astype(np.int64)

    def _place(self, index: int) -> tuple[Path, int]:
        for path, numbers in self._rows:
            if index < len(numbers):
                return path, numbers[index]
            index -= len(numbers)
        raise IndexError(index)


def is_usable(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the encoded labels are usable."""
    if labels.ndim == 2:
        return ~np.isnan(labels).all(1)
    return np.asarray(~np.isnan(labels) if labels.dtype.kind == "f" else labels != UNUSABLE)


def _is_fraction(label: Parsed) -> bool:
    return isinstance(label, float) and not label.is_integer()
