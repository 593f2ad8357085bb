"""A column of labels that is too long for memory: what they mean is known only when all have been seen."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.data.bad_rows import BadRows
from rationalizer.data.corpus import Task
from rationalizer.data.disk_examples import label_type
from rationalizer.data.labels import Label, Labels, MixedLabels, infer_labels, plain
from rationalizer.text.errors import DataError

UNUSABLE = -1  # in the place of a class that a label does not name; of a value it is NaN
PIECE = 1 << 20  # labels that are numbered at once


class LabelsBuilder:
    """Labels of the rows of several files, in 12 bytes each, and 8 more if fractional.

    Classes are few: each stands once in a list, and is numbered. Of fractions, which are all different, the value is
    kept; a class they cannot be.
    """

    def __init__(self) -> None:
        self._number: dict[tuple[type, Label], int] = {}
        self._seen: list[Label] = []  # different ones, in the order in which they first came
        self._places: list[tuple[Path, int]] = []  # where they did
        self._count = 0  # of all labels, those of rows without a text among them
        self._kept = array("i")  # for each row its label's number, or -1: the next of the fractions
        self._fractions = array("d")
        self._rows: list[tuple[Path, array[int]]] = []  # the numbers of the rows in their files

    def begin(self, path: Path) -> None:
        """The rows that follow are of this file."""
        self._rows.append((path, array("q")))

    def see(self, value: Any, number: int) -> Label:
        """The label of a row; ValueError where there is none."""
        label = plain(value)
        self._count += 1
        key = (type(label), label) if not _is_fraction(label) else (float, 0.5)
        if key not in self._number:
            self._number[key] = len(self._seen)
            self._seen.append(label)
            self._places.append((self._rows[-1][0], number))
        return label

    def keep(self, label: Label, number: int) -> None:
        """One that was seen, of a row that is used."""
        if isinstance(label, float) and _is_fraction(label):
            self._kept.append(-1)
            self._fractions.append(label)
        else:
            self._kept.append(self._number[type(label), label])
        self._rows[-1][1].append(number)

    def infer(self, task: Task | None, classes: Sequence[str] | None) -> Labels:
        """What the labels mean; DataError where they do not fit together."""
        try:
            return infer_labels(self._seen, task, classes, count=self._count)
        except MixedLabels as error:
            path, row = self._places[error.position]
            raise DataError.from_error(error, path=path, row=row) from None
        except ValueError as error:
            raise DataError.from_error(error, path=self._rows[0][0]) from None

    def encoded(self, labels: Labels, bad: BadRows) -> Iterator[NDArray[Any]]:
        """The labels as numbers, in pieces; rows whose label is none of these are added to `bad`."""
        wrong: dict[int, ValueError] = {}
        values = labels.task == "regression"
        table = np.array([_encoded(labels, label, k, wrong) for k, label in enumerate(self._seen)], dtype=np.float64)
        kept, fractions = np.frombuffer(self._kept, dtype=np.int32), 0
        for start in range(0, len(kept), PIECE):
            numbers = kept[start : start + PIECE]
            piece = table[numbers]
            for place in np.flatnonzero(numbers < 0).tolist():
                piece[place] = _encoded(labels, self._fractions[fractions], -1 - start - place, wrong)
                fractions += 1
            for place in np.flatnonzero(np.isnan(piece)).tolist():
                number = int(numbers[place])
                bad.add(*self._place(start + place), wrong[number if number >= 0 else -1 - start - place])
                if bad.is_full:
                    bad.raise_if_any()
            yield (piece if values else np.nan_to_num(piece, nan=UNUSABLE)).astype(label_type(values=values))

    def _place(self, position: int) -> tuple[Path, int]:
        for path, numbers in self._rows:
            if position < len(numbers):
                return path, numbers[position]
            position -= len(numbers)
        raise IndexError(position)


def usable(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the encoded labels are some."""
    found: NDArray[np.bool_] = ~np.isnan(labels) if labels.dtype.kind == "f" else labels != UNUSABLE
    return found


def _is_fraction(label: Label) -> bool:
    return isinstance(label, float) and not label.is_integer()


def _encoded(labels: Labels, label: Label, key: int, wrong: dict[int, ValueError]) -> float:
    try:
        return labels.encode(label)
    except ValueError as error:
        wrong[key] = error
        return np.nan
