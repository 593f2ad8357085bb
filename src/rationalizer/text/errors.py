"""Errors about a user's input. Their fields are the problem, the remedy and the location."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self


class InputError(ValueError):
    """A value given by the user cannot be used. The message is "problem; remedy".

    Args:
        problem: what is wrong.
        remedy: what to do about it; may be empty.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}" if self.remedy else self.problem

    def prefixed(self, prefix: str) -> Self:
        """The same error with text before its problem."""
        return type(self)(f"{prefix}{self.problem}", self.remedy)


class DataError(InputError):
    """A user's data cannot be used. The message is "place: problem; remedy".

    Args:
        problem: what is wrong.
        remedy: what to do about it; may be empty.
        path: the file, or the name of the argument.
        row: the data row, counted from 1 (a header does not count).
        line: the line of a text file, counted from 1.
    """

    def __init__(
        self,
        problem: str,
        remedy: str = "",
        *,
        path: str | Path | None = None,
        row: int | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__(problem, remedy)
        self.path, self.row, self.line = path, row, line

    @classmethod
    def from_error(cls, error: ValueError, *, path: str | Path | None = None, row: int | None = None) -> Self:
        """The same problem and remedy, found in this row of this file."""
        if isinstance(error, InputError):
            return cls(error.problem, error.remedy, path=path, row=row)
        return cls(str(error), path=path, row=row)

    @property
    def place(self) -> str:
        """Where the problem is, such as "reviews.csv, row 12"; empty if unknown."""
        number = "" if self.row is None else f", row {self.row}"
        number += "" if self.line is None else f", line {self.line}"
        return "" if self.path is None else f"{self.path}{number}"

    def __str__(self) -> str:
        return f"{self.place}: {super().__str__()}" if self.place else super().__str__()


def short_repr(value: Any, longest: int = 60) -> str:
    """`repr(value)`, shortened so that a message stays one readable line."""
    try:
        text = repr(value[:longest] if isinstance(value, (str, bytes)) else value)
    except (RecursionError, ValueError):  # lists nested without end; integers with too many digits
        return f"{type(value).__name__} that is too large to be shown"
    is_cut = len(text) > longest + 2 or (isinstance(value, (str, bytes)) and len(value) > longest)
    return f"{text[:longest]}..." if is_cut else text
