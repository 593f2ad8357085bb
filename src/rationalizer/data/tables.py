"""Rows of CSV, TSV, JSON-lines and Parquet files, as dictionaries, whatever the file claims to be."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any

from rationalizer.data.json_text import parse_json
from rationalizer.text.errors import DataError, at, shown

Row = dict[str, Any]
ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
# Characters in a line, or in a CSV field. No row that can be used is longer: what is, is a file without line ends, or a
# quote that nobody closed.
LONGEST_LINE = 2**24
_PARQUET_ROWS = 1024  # in memory at once


@dataclass(frozen=True)
class Table:
    """The rows of one file; `numbers` says which rows of the file they are, where that is not all of them."""

    path: Path
    columns: tuple[str, ...]
    rows: list[Row]
    numbers: Sequence[int] | None = None

    def numbered(self) -> Iterator[tuple[int, Row]]:
        """The rows with the numbers that error messages give them: in the file, from 1."""
        return zip(self.numbers or range(1, len(self.rows) + 1), self.rows, strict=True)


@dataclass(frozen=True)
class Stream:
    """The rows of one file, each read when it is asked for; `columns` are those met so far (only JSON adds any)."""

    path: Path
    rows: Iterator[Row]
    _seen: dict[str, None] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._seen)


def ending(path: Path) -> str:
    """The ending that tells the format, `.gz` left aside."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def stem(path: Path) -> str:
    """The name without format ending and `.gz`."""
    name = path.name[: -len(".gz")] if path.name.lower().endswith(".gz") else path.name
    return name[: -len(ending(path))] if ending(path) in ENDINGS else name


def read_table(path: str | Path, columns: Collection[str] | None = None) -> Table:
    """All rows of a file. `columns` limits what is kept to these names, where the file has them."""
    stream = stream_table(path, columns)
    rows = list(stream.rows)
    return Table(stream.path, stream.columns, rows)


def stream_table(path: str | Path, columns: Collection[str] | None = None) -> Stream:
    """As `read_table`, one row at a time: memory does not grow with the file, unless it is one JSON array."""
    path = Path(path)
    if not path.is_file():
        if path.exists() and not path.is_dir():  # a pipe or a device: it can be read but once, if it ends at all
            raise DataError(f"{at(path)}: not a regular file; copy what comes from it into one")
        raise DataError(f"{at(path)}: there is no such file")
    kind = ending(path)
    if kind not in ENDINGS:
        raise DataError(f"{at(path)}: the ending {kind or '(none)'!r} is not one of {', '.join(ENDINGS)}")
    content = _content(path)
    claimed = {".csv": "text", ".tsv": "text", ".jsonl": "JSON", ".json": "JSON", ".parquet": "Parquet"}[kind]
    if content != claimed and not (content == "JSON" and claimed == "text" and not _is_json_object(path)):
        remedy = _REMEDIES.get(content, "save it as UTF-8 CSV")
        raise DataError(f"{at(path)}: the file ends in {kind} but holds {_NAMES[content]}; {remedy}")
    if kind == ".parquet" and path.suffix.lower() == ".gz":
        raise DataError(f"{at(path)}: Parquet data in a .gz file cannot be read; unpack it")
    seen: dict[str, None] = {}
    if kind == ".parquet":
        rows = _parquet_rows(path, columns, seen)
    elif kind in (".csv", ".tsv"):
        rows = _csv_rows(path, "," if kind == ".csv" else "\t", columns, seen)
    else:
        rows = _json_rows(path, columns, seen)
    first = next(rows, None)  # now the header is read
    return Stream(path, iter(()) if first is None else chain([first], rows), seen)


_NAMES = {
    "text": "plain text",
    "JSON": "JSON",
    "Parquet": "Parquet data",
    "archive": "a zip archive (an Excel sheet?)",
    "packed": "packed data",
    "UTF-16": "UTF-16 text",
    "HTML": "an HTML page",
    "pointer": "a Git LFS pointer, not the data",
    "binary": "binary data",
    "nothing": "nothing",
}
_ANEW = "rename it or save it anew"
_REMEDIES = {
    "JSON": _ANEW,
    "Parquet": _ANEW,
    "text": _ANEW,
    "packed": "unpack it, or let its name end in .gz",
    "pointer": "fetch it by git lfs pull",
    "nothing": "save it anew",
}


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The file's bytes, unpacked where its name ends in .gz."""
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as raw:
            yield raw  # type: ignore[misc]
    except gzip.BadGzipFile:
        raise DataError(f"{at(path)}: the file ends in .gz but is not compressed; rename it") from None
    except (EOFError, zlib.error) as error:
        raise DataError(f"{at(path)}: damaged .gz file ({error}); copy it again") from None


def _content(path: Path) -> str:
    with open_bytes(path) as raw:
        head = raw.read(4096)
    if head.startswith(b"PAR1"):
        return "Parquet"
    if head.startswith(b"PK\x03\x04"):
        return "archive"
    if head.startswith(b"\x1f\x8b"):
        return "packed"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    if b"\0" in head:
        return "binary"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if not text:
        return "nothing"
    if text.startswith((b"<!doctype html", b"<html")):
        return "HTML"
    if text.startswith(b"version https://git-lfs"):
        return "pointer"
    return "JSON" if text.startswith((b"{", b"[")) else "text"


def _is_json_object(path: Path) -> bool:
    # A CSV header may begin with a brace or bracket; only a line that parses is JSON.
    with open_bytes(path) as raw:
        line = raw.readline(LONGEST_LINE).removeprefix(b"\xef\xbb\xbf")
    try:
        return isinstance(parse_json(line), dict)
    except ValueError:
        return line.strip() in (b"[", b"{")


@contextmanager
def _open_text(path: Path, newline: str) -> Iterator[IO[str]]:
    try:
        with open_bytes(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline=newline) as text:
            yield text
    except UnicodeDecodeError:
        raise DataError(_first_bad_byte(path)) from None


def _lines(path: Path, text: IO[str]) -> Iterator[str]:
    for number, line in enumerate(iter(lambda: text.readline(LONGEST_LINE + 1), ""), 1):
        if len(line) > LONGEST_LINE:
            raise DataError(
                f"{at(path)}, line {number}: more than {LONGEST_LINE:,} characters in one line; end each row by a line "
                "break, and cut long texts into several rows"
            )
        yield line


def _first_bad_byte(path: Path) -> str:
    with open_bytes(path) as raw:
        for number, line in enumerate(raw, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return f"{at(path)}, line {number}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
    return f"{at(path)}: the file changed while it was read; read it again"


def _csv_rows(path: Path, delimiter: str, wanted: Collection[str] | None, seen: dict[str, None]) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_LINE)  # of the whole process: lowered again, it would break other open streams
    number = 0
    try:
        with _open_text(path, newline="") as text:
            reader = csv.reader(_lines(path, text), delimiter=delimiter, strict=True)
            header = [name.strip() for name in next(reader, [])]
            _check_header(path, header)
            seen.update(dict.fromkeys(header))
            keep = [k for k, name in enumerate(header) if wanted is None or name in wanted]
            for fields in reader:
                if not fields:
                    continue
                number += 1
                if len(fields) != len(header):
                    raise DataError(
                        f"{at(path, number)}: {len(fields)} fields, but {len(header)} in the header; "
                        f"put fields that contain {delimiter!r} or a line break in double quotes"
                    )
                yield {header[k]: fields[k] for k in keep}
    except csv.Error as error:
        if "field limit" in str(error):
            raise DataError(
                f"{at(path, number + 1)}: a field has more than {LONGEST_LINE:,} characters; close the quote that it "
                "begins with, or cut it into several rows"
            ) from None
        raise DataError(
            f"{at(path, number + 1)}: broken quoting ({error}); write a quote inside quotes twice"
        ) from None


def _check_header(path: Path, header: list[str]) -> None:
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise DataError(f"{at(path)}: the column {repeated[0]!r} comes twice; rename one")


def _json_rows(path: Path, wanted: Collection[str] | None, seen: dict[str, None]) -> Iterator[Row]:
    for number, value in enumerate(_json_values(path), 1):
        if not isinstance(value, dict):
            raise DataError(
                f'{at(path, number)}: a row must be a JSON object such as {{"text": ..., "label": ...}}, '
                f"got {shown(value)}"
            )
        seen.update(dict.fromkeys(value))
        yield {name: item for name, item in value.items() if wanted is None or name in wanted}


def _json_values(path: Path) -> Iterator[Any]:
    with _open_text(path, newline="\n") as text:  # lines end in \n only: U+2028 may stand inside a JSON string
        number = 0
        if _is_array(path):
            yield from _json_array(path)
            return
        for line in _lines(path, text):
            if not line.strip():
                continue
            number += 1
            try:
                yield parse_json(line.rstrip("\r\n"), "write one JSON object a line")
            except ValueError as error:
                raise DataError(f"{at(path, number)}: {error}") from None


def _is_array(path: Path) -> bool:
    with open_bytes(path) as raw:
        return raw.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")


def _json_array(path: Path) -> Any:
    """One array that holds all rows; it can only be read whole."""
    with _open_text(path, newline="\n") as text:
        try:
            return parse_json(text.read(), "copy the file again, or write one JSON object a line")
        except ValueError as error:
            raise DataError(f"{at(path)}: {error}") from None


def _parquet_rows(path: Path, wanted: Collection[str] | None, seen: dict[str, None]) -> Iterator[Row]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            names = file.schema_arrow.names
            seen.update(dict.fromkeys(names))
            keep = [name for name in names if wanted is None or name in wanted]
            if not keep:
                yield from ({} for _ in range(file.metadata.num_rows))
                return
            for batch in file.iter_batches(columns=keep, batch_size=_PARQUET_ROWS):
                yield from batch.to_pylist()
    except (ArrowException, OSError) as error:
        raise DataError(f"{at(path)}: damaged Parquet data ({str(error).strip()}); copy the file again") from error
