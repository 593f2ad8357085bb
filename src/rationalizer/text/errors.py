"""The one error that readers raise: it says where, what and what to do."""

from __future__ import annotations

from pathlib import Path


class DataError(ValueError):
    """Something is wrong with the user's data; the message names the place and the remedy."""


def at(path: str | Path, row: int | None = None) -> str:
    """A place for messages: the file, and the data row counted from 1 (a header does not count)."""
    return f"{path}" if row is None else f"{path}, row {row}"
