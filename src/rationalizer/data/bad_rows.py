"""Rows that cannot be used: reported all at once, or skipped, counted and listed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rationalizer.text.errors import DataError

LISTED = 20  # rows of a file: more of them mostly have one cause
SKIP_REMEDY = "skip such rows with --skip-bad (in Python skip_bad=True)"


@dataclass(frozen=True)
class BadRow:
    """A row that could not be parsed; `row` holds as much of it as could be."""

    error: DataError
    row: dict[str, Any] = field(default_factory=dict)


@dataclass
class BadRows:
    """The rows of one file or several that cannot be used, collected while reading."""

    skip: bool = False
    _errors: dict[Path, list[tuple[int, ValueError]]] = field(default_factory=dict)

    def add(self, path: Path, number: int, error: ValueError) -> None:
        self._errors.setdefault(path, []).append((number, error))

    def __len__(self) -> int:
        return sum(map(len, self._errors.values()))

    @property
    def is_fatal(self) -> bool:
        """Whether reading will fail. Later rows are then read only to report their errors."""
        return bool(self._errors) and not self.skip

    @property
    def is_full(self) -> bool:
        """Whether enough errors were found to stop reading."""
        return self.is_fatal and len(self) >= LISTED

    def raise_if_any(self) -> None:
        """Raise `DataError`, unless there are no bad rows or they may be skipped."""
        if not self.is_fatal:
            return
        if len(self) == 1:
            ((path, [(number, error)]),) = self._errors.items()
            raise DataError.from_error(error, path=path, row=number)
        raise DataError("; ".join(self._describe("rows cannot be used")), f"correct them, or {SKIP_REMEDY}")

    def messages(self) -> tuple[str, ...]:
        """For each file, how many rows were skipped, which and why."""
        return tuple(self._describe("rows skipped")) if self.skip else ()

    def _describe(self, what: str) -> list[str]:
        messages = []
        for path, rows in self._errors.items():
            by_reason: dict[str, list[str]] = {}
            for number, error in sorted(rows, key=lambda row: row[0])[:LISTED]:
                by_reason.setdefault(str(error), []).append(str(number))
            reasons = [
                f"row{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}: {reason}"
                for reason, numbers in by_reason.items()
            ]
            more = f"; and {len(rows) - LISTED} more" if len(rows) > LISTED else ""
            words = what if len(rows) > 1 else what.replace("rows", "row")
            messages.append(f"{path}: {len(rows)} {words}: {'; '.join(reasons)}{more}")
        return messages
