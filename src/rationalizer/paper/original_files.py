"""Read files as the authors of datasets published them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rationalizer.data.annotation_parsing import parse_list
from rationalizer.data.file_content import open_bytes
from rationalizer.text.errors import DataError


def find_file(folder: Path, *names: str) -> Path | None:
    """Return the first of these files that exists, gzipped or not."""
    candidates = [folder / (name + suffix) for name in names for suffix in ("", ".gz")]
    return next((path for path in candidates if path.is_file()), None)


def iter_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file that are not blank."""
    with open_bytes(path) as raw:
        for number, line in enumerate(raw, 1):
            try:
                text = line.decode("utf-8").strip("\r\n")
            except UnicodeDecodeError:
                raise DataError("the line is not UTF-8", "save the file as UTF-8", path=path, line=number) from None
            if text.strip():
                yield text


def parse_spans(spans: Any, path: Path, row: int) -> Sequence[Any]:
    """Parse the spans in a cell of this row; an empty cell gives no spans."""
    try:
        return [] if spans in (None, "") else parse_list(spans, "the rationale's spans")
    except ValueError as error:
        raise DataError.from_error(error, path=path, row=row) from None
