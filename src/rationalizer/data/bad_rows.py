"""Rows that cannot be used: named all at once, or skipped, counted and listed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rationalizer.text.errors import DataError, at

LISTED = 20  # rows of a file: who has more of them looks for one cause
REMEDY = "correct them, or leave them out by --skip-bad (in Python skip_bad=True)"


@dataclass(frozen=True)
class BadRow:
    """What stands in the place of a row that could not be read; `row` is as much of it as there is."""

    reason: str
    row: dict[str, Any] = field(default_factory=dict)


@dataclass
class BadRows:
    """The rows that could not be used, of one file or several; to be settled when all are read."""

    skip: bool = False
    _found: dict[Path, list[tuple[int, str]]] = field(default_factory=dict)

    def add(self, path: Path, number: int, reason: str) -> None:
        self._found.setdefault(path, []).append((number, reason))

    def __len__(self) -> int:
        return sum(map(len, self._found.values()))

    @property
    def is_fatal(self) -> bool:
        """Whether what comes after is of no use any more, but to name what is wrong with it."""
        return bool(self._found) and not self.skip

    @property
    def is_full(self) -> bool:
        return self.is_fatal and len(self) >= LISTED

    def raise_if_any(self) -> None:
        """DataError, unless there are none or they may be skipped."""
        if not self.is_fatal:
            return
        if len(self) == 1:
            ((path, [(number, reason)]),) = self._found.items()
            raise DataError(f"{at(path, number)}: {reason}")
        raise DataError(f"{'; '.join(self._notes('rows cannot be used'))}; {REMEDY}")

    def messages(self) -> tuple[str, ...]:
        """For each file how many rows were skipped, which and why."""
        return tuple(self._notes("rows skipped")) if self.skip else ()

    def _notes(self, what: str) -> list[str]:
        notes = []
        for path, rows in self._found.items():
            by_reason: dict[str, list[str]] = {}
            for number, reason in sorted(rows)[:LISTED]:
                by_reason.setdefault(reason, []).append(str(number))
            listed = [
                f"row{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}: {reason}"
                for reason, numbers in by_reason.items()
            ]
            more = f"; and {len(rows) - LISTED} more" if len(rows) > LISTED else ""
            words = what if len(rows) > 1 else what.replace("rows", "row")
            notes.append(f"{path}: {len(rows)} {words}: {'; '.join(listed)}{more}")
        return notes
