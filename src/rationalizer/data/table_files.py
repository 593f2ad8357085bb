"""Read rows of CSV, TSV, JSON-lines, Parquet and Excel files as dictionaries."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

from rationalizer.data.annotation_file import Annotations, is_header
from rationalizer.data.bad_rows import LISTED, BadRow, BadRows
from rationalizer.data.column_names import check_unique
from rationalizer.data.csv_dialect import Dialect
from rationalizer.data.excel import sheet_rows
from rationalizer.data.file_content import LONGEST_LINE, check_content, ending, is_array, lines_of, open_text
from rationalizer.data.safe_json import parse_json
from rationalizer.text.errors import DataError, short_repr

Row = dict[str, Any]
_PARQUET_ROWS = 1024  # read at once
_LOOKED_AT = 50  # lines from which the delimiter is detected


@dataclass(frozen=True)
class Table:
    """The rows of one file; `numbers` are their numbers in the file, if these are not all its rows."""

    path: Path
    columns: tuple[str, ...]
    rows: list[Row]
    numbers: Sequence[int] | None = None

    def numbered(self) -> Iterator[tuple[int, Row]]:
        """Iterate over (row number in the file, counted from 1; row), for error messages."""
        return zip(self.numbers or range(1, len(self.rows) + 1), self.rows, strict=True)


@dataclass(frozen=True)
class Stream:
    """The rows of one file, read lazily; `columns` has the columns seen so far (only JSON rows can add columns).

    A row that cannot be parsed is a `BadRow`.
    """

    path: Path
    rows: Iterator[Row | BadRow]
    _seen: dict[str, None] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._seen)


def read_table(
    path: str | Path,
    columns: Collection[str] | None = None,
    *,
    dialect: Dialect | None = None,
    bad: BadRows | None = None,
) -> Table:
    """Read all rows of a file; with `columns`, only these columns.

    Rows that cannot be parsed are added to `bad` and left out; without `bad` they raise an error.
    """
    stream = stream_table(path, columns, dialect=dialect)
    rows: list[Row] = []
    numbers: list[int] = []
    found = BadRows() if bad is None else bad
    for number, row in enumerate(stream.rows, 1):
        if isinstance(row, BadRow):
            found.add(stream.path, number, row.error)
        else:
            rows.append(row)
            numbers.append(number)
    if bad is None:
        found.raise_if_any()
    whole = numbers == list(range(1, len(numbers) + 1))
    return Table(stream.path, stream.columns, rows, None if whole else numbers)


def stream_table(
    path: str | Path,
    columns: Collection[str] | None = None,
    *,
    dialect: Dialect | None = None,
    blank: bool = False,
) -> Stream:
    """As `read_table`, one row at a time: memory does not grow with the file, unless it is one JSON array.

    With `blank`, an empty line is an empty row; otherwise it is ignored.
    """
    dialect = dialect or Dialect()
    path = Path(path)
    if not path.is_file():
        if path.exists() and not path.is_dir():  # a pipe or a device can be read only once
            raise DataError("not a regular file", "copy its content to a regular file", path=path)
        raise DataError("no such file", path=path)
    kind = check_content(path, dialect)
    seen: dict[str, None] = {}
    rows: Iterator[Row | BadRow]
    if kind == ".parquet":
        rows = _parquet_rows(path, columns, seen)
    elif kind == ".xlsx":
        rows = sheet_rows(path, dialect.header, columns, seen, blank)
    elif kind in (".csv", ".tsv"):
        rows = _csv_rows(path, dialect, "," if kind == ".csv" else "\t", columns, seen, blank)
    else:
        rows = _json_rows(path, dialect, columns, seen, blank)
    ahead: list[Row | BadRow] = []
    for row in islice(rows, LISTED):  # until the columns are known
        ahead.append(row)
        if seen:
            break
    if not seen and ahead and isinstance(ahead[0], BadRow):  # the file has no row of this kind
        raise DataError.from_error(ahead[0].error, path=path, row=1)
    return Stream(path, chain(ahead, rows), seen)


def columns_of(path: Path, dialect: Dialect | None = None) -> tuple[str, ...]:
    """The columns of a file; JSON is read to its end, since any row may add some."""
    stream = stream_table(path, dialect=dialect)
    if ending(path) in (".jsonl", ".json"):
        deque(stream.rows, maxlen=0)
    return stream.columns


def _csv_rows(
    path: Path, dialect: Dialect, usual: str, wanted: Collection[str] | None, seen: dict[str, None], blank: bool
) -> Iterator[Row | BadRow]:
    csv.field_size_limit(LONGEST_LINE)  # process-wide: lowering it again would break other open streams
    number = 0
    try:
        with open_text(path, dialect, newline="") as text:
            lines = lines_of(path, text)
            first = list(islice(lines, _LOOKED_AT))
            delimiter = dialect.detect_delimiter(first, usual)
            reader = csv.reader(chain(first, lines), delimiter=delimiter, strict=True)
            header, reading = _header(path, reader, dialect)
            seen.update(dict.fromkeys(header))
            keep = [k for k, name in enumerate(header) if wanted is None or name in wanted]
            for fields in reading:
                if not fields:
                    if not blank:
                        continue
                    fields = [""] * len(header)
                number += 1
                if len(fields) != len(header):
                    error = DataError(
                        f"{len(fields)} fields, but {len(header)} in the header",
                        f"put fields that contain {delimiter!r} or a line break in double quotes",
                    )
                    yield BadRow(error, dict(zip(header, fields, strict=False)))
                else:
                    yield {header[k]: fields[k] for k in keep}
    except csv.Error as error:
        if "field limit" in str(error):
            raise DataError(
                f"a field has more than {LONGEST_LINE:,} characters",
                "close the quote that it begins with, or cut it into several rows",
                path=path,
                row=number + 1,
            ) from None
        raise DataError(
            f"broken quoting ({error})", "write a quote inside quotes twice", path=path, row=number + 1
        ) from None


def _header(path: Path, reader: Iterator[list[str]], dialect: Dialect) -> tuple[list[str], Iterator[list[str]]]:
    """The column names, and the records that follow."""
    first = next(reader, [])
    if not dialect.header:
        return [str(k) for k in range(1, len(first) + 1)], chain([first], reader)
    header = [name.strip() for name in first]
    check_unique(header, path)
    return header, reader


def _json_rows(
    path: Path, dialect: Dialect, wanted: Collection[str] | None, seen: dict[str, None], blank: bool
) -> Iterator[Row | BadRow]:
    values = _json_values(path, dialect, blank)
    first = list(islice(values, 1))
    if first and is_header(first[0]):
        first, values = [], iter(_annotated_rows(path, chain(first, values)))
    for value in chain(first, values):
        if isinstance(value, BadRow):
            yield value
        elif not isinstance(value, dict):
            problem = f'a row must be a JSON object such as {{"text": ..., "label": ...}}, got {short_repr(value)}'
            yield BadRow(DataError(problem))
        else:
            seen.update(dict.fromkeys(value))
            yield value if wanted is None else {name: item for name, item in value.items() if name in wanted}


_END = object()  # behind the last line


def _annotated_rows(path: Path, lines: Iterator[Any]) -> Iterator[Row]:
    """The table in the lines of an annotation file; a last line that was cut off does not count."""
    annotations = Annotations()
    for number, (line, following) in enumerate(pairwise(chain(lines, [_END])), 1):
        if isinstance(line, BadRow):
            if following is not _END:
                raise line.error
            continue
        try:
            annotations.add(line)
        except DataError as error:
            raise DataError(error.problem, error.remedy, path=path, line=number) from None
    return annotations.rows()


def _json_values(path: Path, dialect: Dialect, blank: bool) -> Iterator[Any]:
    if is_array(path):
        yield from _json_array(path, dialect)
        return
    with open_text(path, dialect, newline="\n") as text:  # only \n ends a line: JSON strings may contain U+2028
        for line in lines_of(path, text):
            if not line.strip():
                if blank:
                    yield {}
                continue
            try:
                yield parse_json(line.rstrip("\r\n"), "write one JSON object a line")
            except DataError as error:
                yield BadRow(error)


def _json_array(path: Path, dialect: Dialect) -> Any:
    """A JSON array of all rows, which can only be read as a whole."""
    with open_text(path, dialect, newline="\n") as text:
        try:
            return parse_json(text.read(), "copy the file again, or write one JSON object a line")
        except ValueError as error:
            raise DataError.from_error(error, path=path) from None


def _parquet_rows(path: Path, wanted: Collection[str] | None, seen: dict[str, None]) -> Iterator[Row]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            names = file.schema_arrow.names
            check_unique(names, path)
            seen.update(dict.fromkeys(names))
            keep = [name for name in names if wanted is None or name in wanted]
            if not keep:
                yield from ({} for _ in range(file.metadata.num_rows))
                return
            for batch in file.iter_batches(columns=keep, batch_size=_PARQUET_ROWS):
                yield from batch.to_pylist()
    except (ArrowException, OSError) as error:
        raise DataError(f"damaged Parquet data ({str(error).strip()})", "copy the file again", path=path) from error
