"""The dialect of a text file: delimiter, encoding, header."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

DELIMITERS = (",", ";", "\t", "|")
_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
_BYTE_ORDER_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
UTF8 = "utf-8-sig"


@dataclass(frozen=True)
class Dialect:
    """Settings that are None are detected. Without a header the columns are named 1, 2, 3 and so on."""

    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", _NAMES.get(self.delimiter, self.delimiter))
            assert self.delimiter is not None
            if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
                raise ValueError(f"a delimiter must be one character, or tab, got {self.delimiter!r}")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ValueError(
                    f"unknown encoding {self.encoding!r}; common encodings are utf-8, "
                    "cp1252 (Windows, Western Europe), utf-16, gb18030, shift_jis"
                ) from None

    def detect_encoding(self, head: bytes) -> str:
        """Return the encoding if set, else UTF-16 if the file's first bytes are its byte order mark, else UTF-8."""
        if self.encoding is not None:
            return UTF8 if codecs.lookup(self.encoding).name == "utf-8" else self.encoding
        return next((name for mark, name in _BYTE_ORDER_MARKS.items() if head.startswith(mark)), UTF8)

    def detect_delimiter(self, lines: Sequence[str], usual: str) -> str:
        """Return the delimiter if set, else the one that splits all first lines into the same number of fields.

        Args:
            lines: the first lines of the file, with line ends.
            usual: the delimiter for the file's suffix, used if several delimiters fit, or none.
        """
        if self.delimiter is not None:
            return self.delimiter
        for sample in (lines, lines[:1]):  # only the header, if bad rows keep every delimiter from fitting all lines
            fitting = {d: count for d in (usual, *DELIMITERS) if (count := _field_count(sample, d)) > 1}
            if fitting:
                return usual if usual in fitting else max(fitting, key=lambda d: fitting[d])
        return usual

    def to_json(self) -> dict[str, Any]:
        return {"delimiter": self.delimiter, "encoding": self.encoding, "header": self.header}


def _field_count(lines: Sequence[str], delimiter: str) -> int:
    """Return the number of fields per record; 0 if it differs between records."""
    counts = set()
    try:
        for fields in csv.reader(lines, delimiter=delimiter, strict=True):
            if fields:
                counts.add(len(fields))
    except csv.Error:  # for example if the last record continues after these lines
        pass
    return counts.pop() if len(counts) == 1 else 0
