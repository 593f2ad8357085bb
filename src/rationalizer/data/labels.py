"""The meaning of labels: classes by name or number, or regression values."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rationalizer.data.corpus import Task
from rationalizer.text.errors import DataError, short_repr

Label = int | float | str
LARGEST = 1e15  # value: squares of larger ones overflow 32-bit floats
LONGEST_NAME = 1000  # characters: longer ones are texts in the wrong column
MULTI_LABEL = "a text has one label; for several labels train one model per label, on texts with and without it"
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d*)")  # 007 is a name
_NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Labels:
    """How labels become numbers: the index in `classes`, or for regression the value itself."""

    task: Task
    classes: tuple[str, ...] = ()

    def encode(self, value: Any) -> int | float:
        """Encode a label from a file or an array; DataError if it is unknown or missing."""
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
        if isinstance(label, int) and 0 <= label < len(self.classes) and not self._numbered():
            return label
        folded = [known.casefold() for known in self.classes]
        if name.casefold() in folded:
            return folded.index(name.casefold())
        raise DataError(f"the label {label!r} is unknown", f"the classes are {', '.join(self.classes)}")

    def _numbered(self) -> bool:
        return all(_INTEGER.fullmatch(name) for name in self.classes)


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
        raise DataError(f"the label {short_repr(value)} is several labels", MULTI_LABEL)
    if not isinstance(value, (int, float, str)):
        raise DataError(f"a label must be a name or a number, got {type(value).__name__} {short_repr(value)}")
    if isinstance(value, str) and not _is_writable(value):
        raise DataError(f"the label {short_repr(value)} holds half a surrogate pair", "write it anew")
    return value


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
    values: Sequence[Label],
    task: Task | None = None,
    classes: Sequence[str] | None = None,
    *,
    count: int | None = None,
) -> Labels:
    """Infer the task and the classes from labels (as `plain` returns them), unless they are given.

    Integers are classes in numerical, names in alphabetical order. Floats mean regression, unless all labels are whole
    numbers and at most 20 of them are distinct: pandas turns the classes 0 and 1 into 0.0 and 1.0 if one is missing.
    `count` is the number of labels, if `values` has only the distinct ones.
    """
    if task not in (None, "classification", "regression"):
        raise DataError(f"task must be 'classification' or 'regression', got {task!r}")
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
