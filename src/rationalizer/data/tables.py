"""Rows of CSV, TSV, JSON-lines and Parquet files, as dictionaries, whatever the file claims to be."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rationalizer.data.errors import DataError, at

Row = dict[str, Any]
ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
_FIELD_LIMIT = 2**31 - 1  # the csv module refuses fields over 128 KiB unless told otherwise


@dataclass(frozen=True)
class Table:
    """The rows of one file; row k of an error message is `rows[k - 1]`."""

    path: Path
    columns: tuple[str, ...]
    rows: list[Row]


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
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{at(path)}: there is no such file")
    kind = ending(path)
    if kind not in ENDINGS:
        raise DataError(f"{at(path)}: the ending {kind or '(none)'!r} is not one of {', '.join(ENDINGS)}")
    content = _content(path)
    claimed = {".csv": "text", ".tsv": "text", ".jsonl": "JSON", ".json": "JSON", ".parquet": "Parquet"}[kind]
    if content != claimed and not (content == "JSON" and claimed == "text" and not _is_json_object(path)):
        remedy = "rename it or save it anew" if content in ("JSON", "Parquet", "text") else "save it as UTF-8 CSV"
        raise DataError(f"{at(path)}: the file ends in {kind} but holds {_NAMES[content]}; {remedy}")
    if kind == ".parquet":
        return _read_parquet(path, columns)
    if kind in (".csv", ".tsv"):
        return _read_csv(path, "," if kind == ".csv" else "\t", columns)
    return _read_json(path, columns)


_NAMES = {
    "text": "plain text",
    "JSON": "JSON",
    "Parquet": "Parquet data",
    "archive": "a zip archive (an Excel sheet?)",
    "UTF-16": "UTF-16 text",
    "HTML": "an HTML page",
    "pointer": "a Git LFS pointer, not the data",
    "binary": "binary data",
    "nothing": "nothing",
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
    if head.startswith((b"PK\x03\x04", b"\x1f\x8b")):
        return "archive"
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
        line = raw.readline().removeprefix(b"\xef\xbb\xbf")
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return line.strip() in (b"[", b"{")


def _text(path: Path) -> str:
    with open_bytes(path) as raw:
        data = raw.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{at(path)}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from None


def _read_csv(path: Path, delimiter: str, wanted: Collection[str] | None) -> Table:
    previous = csv.field_size_limit(_FIELD_LIMIT)
    try:
        reader = csv.reader(io.StringIO(_text(path), newline=""), delimiter=delimiter, strict=True)
        header = [name.strip() for name in next(reader, [])]
        _check_header(path, header)
        keep = [k for k, name in enumerate(header) if wanted is None or name in wanted]
        rows: list[Row] = []
        try:
            for fields in reader:
                if not fields:
                    continue
                if len(fields) != len(header):
                    raise DataError(
                        f"{at(path, len(rows) + 1)}: {len(fields)} fields, but {len(header)} in the header; "
                        f"put fields that contain {delimiter!r} or a line break in double quotes"
                    )
                rows.append({header[k]: fields[k] for k in keep})
        except csv.Error as error:
            raise DataError(
                f"{at(path, len(rows) + 1)}: broken quoting ({error}); write a quote inside quotes twice"
            ) from None
    finally:
        csv.field_size_limit(previous)
    return Table(path, tuple(header), rows)


def _check_header(path: Path, header: list[str]) -> None:
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise DataError(f"{at(path)}: the column {repeated[0]!r} comes twice; rename one")


def _read_json(path: Path, wanted: Collection[str] | None) -> Table:
    columns: dict[str, None] = {}
    rows: list[Row] = []
    for value in _json_values(path):
        number = len(rows) + 1
        if not isinstance(value, dict):
            raise DataError(
                f'{at(path, number)}: a row must be a JSON object such as {{"text": ..., "label": ...}}, '
                f"got {json.dumps(value)[:60]}"
            )
        columns.update(dict.fromkeys(value))
        rows.append({name: item for name, item in value.items() if wanted is None or name in wanted})
    return Table(path, tuple(columns), rows)


def _json_values(path: Path) -> Iterator[Any]:
    text = _text(path)
    if text.lstrip().startswith("["):  # one array that holds all rows
        try:
            yield from json.loads(text)
        except json.JSONDecodeError as error:
            raise DataError(f"{at(path)}, line {error.lineno}: not valid JSON ({error.msg})") from None
        return
    number = 0
    for line in text.split("\n"):  # not splitlines: U+2028 may stand inside a JSON string
        if not line.strip():
            continue
        number += 1
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{at(path, number)}: not valid JSON ({error.msg}, column {error.colno}); write one JSON object a line"
            ) from None


def _read_parquet(path: Path, wanted: Collection[str] | None) -> Table:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            names = tuple(file.schema_arrow.names)
            keep = [name for name in names if wanted is None or name in wanted]
            rows = file.read(columns=keep).to_pylist() if keep else [{} for _ in range(file.metadata.num_rows)]
    except (ArrowException, OSError) as error:
        raise DataError(f"{at(path)}: damaged Parquet data ({error}); copy the file again") from error
    return Table(path, names, rows)
