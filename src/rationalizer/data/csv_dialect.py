"""The dialect of a text file: delimiter, encoding, header."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

DELIMITERS = (",", ";", "\t", "|")
_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
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
                raise ValueError(f"a delimiter is one character, or tab, got {self.delimiter!r}")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ValueError(
                    f"there is no encoding {self.encoding!r}; common are utf-8, cp1252 (Windows, Western Europe), "
                    "utf-16, gb18030, shift_jis"
                ) from None

    def encoding_of(self, head: bytes) -> str:
        """The encoding if given, else UTF-16 if the file's first bytes are its byte order mark, else UTF-8."""
        if self.encoding is not None:
            return UTF8 if codecs.lookup(self.encoding).name == "utf-8" else self.encoding
        return next((name for mark, name in _MARKS.items() if head.startswith(mark)), UTF8)

    def delimiter_of(self, lines: Sequence[str], usual: str) -> str:
        """The delimiter if given, else the one that splits all of the first lines into the same number of fields.

        Args:
            lines: the first lines of the file, with line ends.
            usual: the delimiter for the file's ending, used if several delimiters fit, or none.
        """
        if self.delimiter is not None:
            return self.delimiter
        for counted in (lines, lines[:1]):  # if no delimiter fits all lines, some rows are bad: the header decides
            fitting = {d: width for d in (usual, *DELIMITERS) if (width := _width(counted, d)) > 1}
            if fitting:
                return usual if usual in fitting else max(fitting, key=lambda d: fitting[d])
        return usual

    def to_json(self) -> dict[str, Any]:
        return {"delimiter": self.delimiter, "encoding": self.encoding, "header": self.header}


def _width(lines: Sequence[str], delimiter: str) -> int:
    """The number of fields of each record, if all have the same; otherwise 0."""
    widths = set()
    try:
        for fields in csv.reader(lines, delimiter=delimiter, strict=True):
            if fields:
                widths.add(len(fields))
    except csv.Error:  # also if the last record continues beyond these lines
        pass
    return widths.pop() if len(widths) == 1 else 0
