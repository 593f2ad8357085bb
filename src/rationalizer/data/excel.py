"""Rows of Excel sheets (.xlsx), which need the extra "excel"."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from rationalizer.data.bad_rows import BadRow
from rationalizer.data.column_names import check_unique
from rationalizer.text.errors import DataError


def sheet_rows(
    path: Path, header: bool, wanted: Collection[str] | None, seen: dict[str, None], blank: bool
) -> Iterator[dict[str, Any] | BadRow]:
    """Yield the rows of the first sheet; empty rows only if `blank`."""
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError:
        raise ImportError('Excel files need openpyxl; install the extra "excel", or save the sheet as CSV') from None
    from xml.etree.ElementTree import ParseError
    from zipfile import BadZipFile

    try:
        yield from _read_rows(path, load_workbook(path, read_only=True, data_only=True), header, wanted, seen, blank)
    except DataError:
        raise
    except (BadZipFile, InvalidFileException, ParseError, zlib.error, LookupError, TypeError, ValueError, OSError) as e:
        raise DataError(f"not an Excel sheet ({e})", "save it again as .xlsx or CSV", path=path) from None


def _read_rows(
    path: Path, book: Any, header: bool, wanted: Collection[str] | None, seen: dict[str, None], blank: bool
) -> Iterator[dict[str, Any] | BadRow]:
    try:
        lines = book.worksheets[0].iter_rows(values_only=True)
        names: list[str] | None = None
        for line in lines:
            cells = [None if cell == "" else cell for cell in line]
            if names is None:
                names = _names(path, cells, header)
                seen.update(dict.fromkeys(filter(None, names)))
                if header:
                    continue
            if all(cell is None for cell in cells):
                if blank:
                    yield {}
                continue
            beyond = [cell for cell in cells[len(names) :] if cell is not None]
            row = {name: _to_plain(cell) for name, cell in zip(names, cells, strict=False) if name}
            if beyond:
                problem = f"{len(cells)} cells, but {len(names)} in the header"
                yield BadRow(DataError(problem, "give each column a name"), row)
                continue
            yield row if wanted is None else {name: cell for name, cell in row.items() if name in wanted}
    finally:
        book.close()


def _names(path: Path, cells: list[Any], header: bool) -> list[str]:
    if not header:
        return [str(k) for k in range(1, len(cells) + 1)]
    names = ["" if cell is None else str(cell).strip() for cell in cells]
    while names and not names[-1]:
        names.pop()
    check_unique([name for name in names if name], path)
    return names


def _to_plain(cell: Any) -> Any:
    """Dates and times as text; numbers and texts unchanged."""
    return cell if cell is None or isinstance(cell, (str, int, float)) else str(cell)
