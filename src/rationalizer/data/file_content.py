"""What a data file holds: check that it is what its name claims, and open it as bytes or text."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rationalizer.data.csv_dialect import UTF8, Dialect
from rationalizer.data.safe_json import parse_json
from rationalizer.text.errors import DataError

ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".xlsx")
# Characters in a line, or in a CSV field. No usable row is longer: the file has no line ends, or a quote is not closed.
LONGEST_LINE = 2**24


def ending(path: Path) -> str:
    """The ending that tells the format, without `.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def stem(path: Path) -> str:
    """The name without format ending and `.gz`."""
    name = path.name[: -len(".gz")] if path.name.lower().endswith(".gz") else path.name
    return name[: -len(ending(path))] if ending(path) in ENDINGS else name


_CLAIMED = {
    ".csv": "text",
    ".tsv": "text",
    ".jsonl": "JSON",
    ".json": "JSON",
    ".parquet": "Parquet",
    ".xlsx": "archive",
}
_NAMES = {
    "text": "plain text",
    "JSON": "JSON",
    "Parquet": "Parquet data",
    "archive": "a zip archive (an Excel sheet?)",
    "packed": "packed data",
    "HTML": "an HTML page",
    "pointer": "a Git LFS pointer, not the data",
    "binary": "binary data",
    "nothing": "nothing",
}
_ANEW = "rename it or save it again"
_REMEDIES = {
    "JSON": _ANEW,
    "Parquet": _ANEW,
    "text": _ANEW,
    "archive": "save it as UTF-8 CSV, or let its name end in .xlsx",
    "packed": "unpack it, or let its name end in .gz",
    "pointer": "fetch it by git lfs pull",
    "nothing": "save it again",
}


def check_content(path: Path, dialect: Dialect) -> str:
    """Return the ending of a table's file; `DataError` if its content is of another kind than the ending says."""
    kind = ending(path)
    if kind not in ENDINGS:
        raise DataError(f"the ending {kind or '(none)'!r} is not one of {', '.join(ENDINGS)}", path=path)
    content = _content(path, dialect)
    claimed = _CLAIMED[kind]
    if content != claimed and not (content == "JSON" and claimed == "text" and not _is_json_object(path)):
        remedy = _REMEDIES.get(content, "save it as UTF-8 CSV")
        raise DataError(f"the file ends in {kind} but holds {_NAMES[content]}", remedy, path=path)
    if kind in (".parquet", ".xlsx") and path.suffix.lower() == ".gz":
        raise DataError(f"{kind} in a .gz file cannot be read", "unpack it", path=path)
    return kind


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file in binary mode, decompressed if its name ends in .gz."""
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as raw:
            yield raw  # type: ignore[misc]
    except gzip.BadGzipFile:
        raise DataError("the file ends in .gz but is not compressed", "rename it", path=path) from None
    except (EOFError, zlib.error) as error:
        raise DataError(f"damaged .gz file ({error})", "copy it again", path=path) from None


def _head(path: Path) -> bytes:
    with open_bytes(path) as raw:
        return raw.read(4096)


def _content(path: Path, dialect: Dialect) -> str:
    head = _head(path)
    if head.startswith(b"PAR1"):
        return "Parquet"
    if head.startswith(b"PK\x03\x04"):
        return "archive"
    if head.startswith(b"\x1f\x8b"):
        return "packed"
    if (encoding := dialect.detect_encoding(head)) != UTF8:
        head = head.decode(encoding, "replace").encode()
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
def open_text(path: Path, dialect: Dialect, newline: str) -> Iterator[IO[str]]:
    encoding = dialect.detect_encoding(_head(path))
    try:
        with open_bytes(path) as raw, io.TextIOWrapper(raw, encoding=encoding, newline=newline) as text:
            yield text
    except UnicodeError as error:
        if encoding == UTF8:
            raise _first_bad_byte(path) from None
        raise DataError(f"the file is not {encoding} ({error})", "give its --encoding", path=path) from None


def lines_of(path: Path, text: IO[str]) -> Iterator[str]:
    for number, line in enumerate(iter(lambda: text.readline(LONGEST_LINE + 1), ""), 1):
        if len(line) > LONGEST_LINE:
            raise DataError(
                f"more than {LONGEST_LINE:,} characters in one line",
                "end each row by a line break, and cut long texts into several rows",
                path=path,
                line=number,
            )
        yield line


def _first_bad_byte(path: Path) -> DataError:
    with open_bytes(path) as raw:
        for number, line in enumerate(raw, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return DataError(
                    f"byte 0x{line[error.start]:02x} is not UTF-8",
                    "save the file as UTF-8, or name its encoding, as --encoding cp1252",
                    path=path,
                    line=number,
                )
    return DataError("the file changed while it was read", "read it again", path=path)


def is_array(path: Path) -> bool:
    with open_bytes(path) as raw:
        return raw.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
