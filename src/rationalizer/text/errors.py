"""The one error that readers raise: it says where, what and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class DataError(ValueError):
    """Something is wrong with the user's data; the message names the place and the remedy."""


def short_repr(value: Any, most: int = 60) -> str:
    """A value for messages, which stay one readable line whatever it is."""
    try:
        text = repr(value[:most] if isinstance(value, (str, bytes)) else value)
    except (RecursionError, ValueError):  # lists within lists without end; integers too long to be written
        return f"{type(value).__name__} that is too large to be shown"
    cut = len(text) > most + 2 or (isinstance(value, (str, bytes)) and len(value) > most)
    return f"{text[:most]}..." if cut else text


def at(path: str | Path, row: int | None = None) -> str:
    """A place for messages: the file, and the data row counted from 1 (a header does not count)."""
    return f"{path}" if row is None else f"{path}, row {row}"
