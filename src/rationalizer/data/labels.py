"""The meaning of labels: classes by name or number, or regression values; several labels or targets of a text.

`parse_label` turns what users write into a `Label`, `Names` or `Cells`; `infer_labels` finds the task of all of them;
`Labels.encode` turns each into the label of an `Example`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from rationalizer.data.annotation_parsing import json_list
from rationalizer.data.corpus import SEVERAL, Target, Task
from rationalizer.suggestions import did_you_mean
from rationalizer.text.errors import DataError, short_repr
from rationalizer.text.example import LabelValue

Label = int | float | str
LARGEST = 1e15  # value: squares of larger ones overflow 32-bit floats
LONGEST_NAME = 1000  # characters: longer ones are texts in the wrong column
SEPARATORS = re.compile("[;|,]")  # between the labels of a text, in a column of strings
_YES_NO = {"1": 1, "true": 1, "yes": 1, "0": 0, "false": 0, "no": 0}
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d*)")  # 007 is a name
_NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


class Names(tuple[str, ...]):
    """The names of the labels that a text has; it does not have the others."""


@dataclass(frozen=True)
class Cells:
    """A value for each label or target, or None: the columns of a table, or a row of a matrix, which has no names."""

    names: tuple[str, ...] | None
    values: tuple[Label | None, ...]


Parsed = Label | Names | Cells


@dataclass(frozen=True)
class Labels:
    """How labels become numbers: the index in `classes`, or for regression the value itself.

    For "multi-label" they become a tuple with 0, 1 or None for each of the `classes`, for "multi-target" one with an
    index, a value or None for each of the `targets`.
    """

    task: Task
    classes: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of several labels or targets."""
        return self.classes if self.task == "multi-label" else tuple(target.name for target in self.targets)

    def encode(self, value: Any) -> LabelValue:
        """Encode a label from a file or an array; DataError if it is unknown or missing."""
        if self.task in SEVERAL:
            parsed = parse_label(value, self.task)
            return self._encode_cells(parsed) if isinstance(parsed, Cells) else self._encode_names(parsed)
        return self.encode_one(value)

    def _encode_names(self, names: Any) -> tuple[int, ...]:
        if self.task != "multi-label" or not isinstance(names, Names):
            raise DataError(
                f"a value for each of the targets {', '.join(self.names)} was expected, got {short_repr(names)}",
                "name one column for each target (on the command line: --column label=NAME,NAME)",
            )
        index = {name: k for k, name in enumerate(self.classes)}
        folded = {name.casefold(): k for name, k in reversed(index.items())}
        found = set()
        for name in names:
            number = index.get(name, folded.get(name.casefold()))
            if number is None and _INTEGER.fullmatch(name) and self._is_index(int(name)):
                number = int(name)
            if number is None:
                raise DataError(f"the label {name!r} is unknown", did_you_mean(name, self.classes))
            found.add(number)
        return tuple(int(k in found) for k in range(len(self.classes)))

    def _encode_cells(self, cells: Cells) -> tuple[int | float | None, ...]:
        if cells.names is None and len(cells.values) != len(self.names):
            raise DataError(
                f"a row of the matrix has {len(cells.values)} entries, but there are {len(self.names)} labels "
                f"({', '.join(self.names[:5])}{', ...' if len(self.names) > 5 else ''})",
                "give one column for each label",
            )
        for name in cells.names or ():
            if name not in self.names:
                raise DataError(f"the label {name!r} is unknown", did_you_mean(name, self.names))
        given = dict(zip(cells.names or self.names, cells.values, strict=True))
        if all(value is None for value in given.values()):
            raise DataError("the row has no label", "fill in at least one, or leave the row out")
        if self.task == "multi-label":
            return tuple(_yes_no(name, given.get(name)) for name in self.classes)
        encoded = []
        for target in self.targets:
            try:
                value, scheme = given.get(target.name), Labels(target.task, target.classes)
                encoded.append(None if value is None else scheme.encode_one(value))
            except DataError as error:
                raise error.prefixed(f"{target.name}: ") from None
        return tuple(encoded)

    def encode_one(self, value: Any) -> int | float:
        """Encode the only label of a text, or the value of one target."""
        label = plain(value)
        if self.task == "regression":
            if isinstance(label, str):
                raise DataError(f"the label {label!r} is not a number", "for classes use task='classification'")
            return _value(label)
        if str(label) in self.classes:
            return self.classes.index(str(label))
        if isinstance(label, float) and label.is_integer():
            label = int(label)
        name = str(label)
        if name in self.classes:
            return self.classes.index(name)
        if isinstance(label, int) and self._is_index(label):
            return label
        folded = [known.casefold() for known in self.classes]
        if name.casefold() in folded:
            return folded.index(name.casefold())
        raise DataError(f"the label {label!r} is unknown", f"the classes are {', '.join(self.classes)}")

    def _is_index(self, number: int) -> bool:
        """Whether a number means the class at this index: not all classes are named by numbers."""
        return 0 <= number < len(self.classes) and not all(map(_INTEGER.fullmatch, self.classes))


def _value(label: int | float) -> float:
    # Compared before the conversion: an integer may be larger than any float.
    if not -LARGEST <= label <= LARGEST:
        raise DataError(f"the label {short_repr(label)} is beyond {LARGEST:g}", "give values in a larger unit")
    return float(label)


def plain(value: Any) -> Label:
    """A label as int, float or str: numbers in text become numbers, NumPy scalars Python values."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, str):
        text = value.strip()
        if len(text) > LONGEST_NAME:
            raise DataError(f"the label {short_repr(text)} has {len(text):,} characters, but may have {LONGEST_NAME:,}")
        if _INTEGER.fullmatch(text):
            return int(text)
        value = float(text) if _NUMBER.fullmatch(text) else text
    if value is None or (isinstance(value, str) and value == "") or (isinstance(value, float) and math.isnan(value)):
        raise DataError("the label is missing", "fill it in or leave the row out")
    if isinstance(value, str) and value in ("nan", "NaN"):  # pandas' missing values
        raise DataError(
            f"the label {value!r} means a missing value", "fill it in, leave the row out, or rename the class"
        )
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > 3 * LONGEST_NAME:
        raise DataError(f"the label has more than {LONGEST_NAME * 9 // 10} digits", "write it as a float")
    if isinstance(value, float) and math.isinf(value):
        raise DataError(f"the label {value} is not finite")
    if isinstance(value, (list, tuple, set, frozenset)) or hasattr(value, "tolist"):
        remedy = "write the labels of every text as a list, also of texts with one label or none"
        raise DataError(f"the label {short_repr(value)} is several labels, but others are one", remedy)
    if not isinstance(value, (int, float, str)):
        raise DataError(f"a label must be a name or a number, got {type(value).__name__} {short_repr(value)}")
    if isinstance(value, str) and not _is_writable(value):
        raise DataError(f"the label {short_repr(value)} holds half a surrogate pair", "write it again")
    return value


def parse_label(value: Any, task: Task | None = None) -> Parsed:
    """Parse what users write: one label (see `plain`); a collection of names, or for the task "multi-label" a string
    such as "food;service"; or a mapping from names to values."""
    if isinstance(value, (Names, Cells)):
        return value
    if isinstance(value, Mapping):
        return Cells(tuple(map(str, value)), tuple(_plain_or_none(cell) for cell in value.values()))
    if isinstance(value, str) and value.lstrip().startswith("["):
        found = json_list(value)
        value = value if found is None else found
    if isinstance(value, (list, tuple, set, frozenset)) or getattr(value, "ndim", 0) == 1:
        return _names(value)
    if task != "multi-label":
        return plain(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):  # an empty cell of a file
        return Names()
    text = str(value).strip()
    return _names(SEPARATORS.split(text) if text else ())


def _names(values: Any) -> Names:
    names = []
    for value in values:
        if value is None or (isinstance(value, str) and not value.strip()):
            raise DataError("a label has an empty name", "leave it out; a text without labels has an empty list")
        names.append(str(plain(value)))
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        is_matrix = set(names) <= {"0", "1"}
        numbers = "; give a 0/1 matrix as an array, in a file as a column for each label" if is_matrix else ""
        raise DataError(f"the label {twice!r} comes twice in {short_repr(list(values))}", f"name it once{numbers}")
    return Names(sorted(names))


def _plain_or_none(cell: Any) -> Label | None:
    missing = cell is None or (isinstance(cell, float) and math.isnan(cell))
    return None if missing or (isinstance(cell, str) and not cell.strip()) else plain(cell)


def _yes_no(name: str, value: Label | None) -> int | None:
    if value is None:
        return None
    number = _YES_NO.get(str(int(value) if isinstance(value, float) and value.is_integer() else value).lower())
    if number is None:
        raise DataError(f"{name}: the value {value!r} is not 0 or 1", "write 1 if the text has the label, else 0")
    return number


def matrix_rows(matrix: Any) -> list[Cells]:
    """The rows of a matrix with one column for each label or target; of a table, with the names of its columns."""
    names = getattr(matrix, "columns", None)
    names = None if names is None else tuple(map(str, names))
    if names is not None:
        _check_names(names)
    values = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    rows = values.to_numpy() if hasattr(values, "to_numpy") else values
    return [Cells(names, tuple(map(_plain_or_none, row))) for row in rows.tolist()]


def _check_names(names: Sequence[str]) -> None:
    """Raise DataError if a label has an empty name, or if two have the same."""
    for k, name in enumerate(names):
        if not name.strip():
            raise DataError(f"label {k + 1} has an empty name", "name it")
        if name in names[:k]:
            raise DataError(f"there are two labels {name!r}", "rename one")


def _is_writable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _require_distinct(values: Sequence[Label], classes: Sequence[str]) -> None:
    """Raise MixedLabels if names differ only in case or spaces, which is more likely a typo than two classes."""
    seen: dict[str, str] = {}
    for name in classes:
        other = seen.setdefault("".join(name.split()).casefold(), name)
        if other != name:
            position = next(k for k, value in enumerate(values) if str(value) == name)
            raise MixedLabels(
                f"the labels {other!r} and {name!r} differ only in case or in spaces",
                "use one spelling, or pass `classes` if they are two classes",
                position,
            )


MANY = 20  # up to this many classes are plausible for any number of texts


def _are_whole_classes(values: Sequence[Label]) -> bool:
    """Whether numbers, some of them floats, are few distinct whole ones."""
    whole = all(not isinstance(value, str) and -LARGEST <= value <= LARGEST and value == int(value) for value in values)
    return whole and len(set(values)) <= MANY


def _require_classes(classes: Sequence[str], count: int) -> None:
    """Raise DataError if there are nearly as many classes as texts."""
    if len(classes) > MANY and 2 * len(classes) > count:
        raise DataError(
            f"there are {len(classes):,} different labels for {count:,} texts, such as "
            f"{', '.join(classes[:3])}: are they ids? Name the column of the classes (on the "
            "command line: --column label=NAME), use task='regression' (--task regression) for "
            "values, or task='classification' (--task classification) if all of them are classes"
        )


class MixedLabels(DataError):
    """Labels that do not fit together; `position` is the first one that does not fit."""

    def __init__(self, problem: str, remedy: str, position: int) -> None:
        super().__init__(problem, remedy)
        self.position = position


def infer_labels(
    values: Sequence[Any],
    task: Task | None = None,
    classes: Sequence[str] | None = None,
    *,
    count: int | None = None,
) -> Labels:
    """Infer the task and the classes from labels (as `parse_label` returns them), unless they are given.

    Integers are classes in numerical, names in alphabetical order. Floats mean regression, unless all labels are whole
    numbers and at most 20 of them are distinct: pandas turns the classes 0 and 1 into 0.0 and 1.0 if one is missing.
    `count` is the number of labels, if `values` has only the distinct ones.
    """
    if task not in (None, *get_args(Task)):
        raise DataError(f"task must be one of {', '.join(get_args(Task))}, got {task!r}")
    if task in SEVERAL or any(isinstance(value, (Names, Cells)) for value in values):
        return _infer_several(values, task, None if classes is None else tuple(map(str, classes)), count)
    if classes is not None:
        if task == "regression":
            raise DataError("regression has no classes", "leave classes out")
        return Labels("classification", tuple(classes))
    floats = [k for k, value in enumerate(values) if isinstance(value, float)]
    names = [k for k, value in enumerate(values) if isinstance(value, str)]
    if task == "regression" or (task is None and floats and not _are_whole_classes(values)):
        if names:
            raise MixedLabels(
                f"the label {values[names[0]]!r} is not a number while others are",
                "correct it, or use task='classification'",
                names[0],
            )
        return Labels("regression")
    for k in floats:
        if not float(values[k]).is_integer():
            raise MixedLabels(f"the label {values[k]!r} is not a class", "use task='regression' for values", k)
    if names:
        classes = sorted({str(value) for value in values})
        _require_distinct(values, classes)
    else:
        classes = [str(value) for value in sorted({int(value) for value in values})]
    if task is None:
        _require_classes(classes, len(values) if count is None else count)
    return Labels("classification", tuple(classes))


def _infer_several(
    values: Sequence[Parsed], task: Task | None, classes: tuple[str, ...] | None, count: int | None
) -> Labels:
    form = Cells if any(isinstance(value, Cells) for value in values) else Names
    other = next((k for k, value in enumerate(values) if not isinstance(value, form)), None)
    if other is not None:
        remedy = "write the labels of every text as a list, also of texts with one label or none"
        raise MixedLabels(f"{short_repr(values[other])} is one label, while other texts have several", remedy, other)
    if classes is not None:
        _check_names(classes)
    if form is Names:
        if task not in (None, "multi-label"):
            raise DataError(f"texts have several labels, which is not a {task}", "leave the task out")
        found = [name for names in values if isinstance(names, Names) for name in names]
        return Labels("multi-label", classes or _sorted_names(found, values))
    rows = [value for value in values if isinstance(value, Cells)]
    known = tuple(dict.fromkeys(name for row in rows for name in row.names or ()))
    _check_names(known)
    width = max(len(row.values) for row in rows)
    names = classes or known or tuple(f"label_{k}" for k in range(width))
    first = Labels("multi-label", names)
    for k, row in enumerate(rows):
        if row.names is None and len(row.values) != len(names):
            try:
                first._encode_cells(row)
            except DataError as error:
                raise MixedLabels(error.problem, error.remedy, k) from None
    columns: dict[str, list[Label]] = {name: [] for name in names}
    for row in rows:
        for name, value in zip(row.names or names, row.values, strict=True):
            if value is not None and name in columns:
                columns[name].append(value)
    if empty := [name for name, column in columns.items() if not column]:
        raise DataError(f"no row has a value for {empty[0]!r}", "leave the column out")
    if task in (None, "multi-label"):
        try:
            for name, column in columns.items():
                for value in set(column):
                    _yes_no(name, value)
            return first
        except DataError:
            if task == "multi-label":
                raise
    own = task if task in ("classification", "regression") else None
    targets = []
    for name, column in columns.items():
        try:
            targets.append(Target(name, infer_labels(column, own, count=count).classes))
        except DataError as error:
            raise DataError(f"{name}: {error.problem}", error.remedy) from None
    return Labels("multi-target", (), tuple(targets))


def _sorted_names(found: Sequence[str], values: Sequence[Parsed]) -> tuple[str, ...]:
    """The names of all labels: numbers in numerical, others in alphabetical order."""
    names = set(found)
    if not names:
        raise DataError("no text has a label", "check the column of the labels, or give `classes`")
    _require_distinct(found, sorted(names))
    numbered = all(_INTEGER.fullmatch(name) for name in names)
    return tuple(sorted(names, key=int) if numbered else sorted(names))
