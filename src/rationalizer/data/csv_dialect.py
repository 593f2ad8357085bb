"""How a text file is written: what separates its fields, its encoding, whether its first line names the columns."""

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
    """What is given of it; what is None is found out. Without a header the columns are called 1, 2, 3 and so on."""

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
        """The encoding given, or the one that a file's first bytes tell: UTF-16 by its mark, else UTF-8."""
        if self.encoding is not None:
            return UTF8 if codecs.lookup(self.encoding).name == "utf-8" else self.encoding
        return next((name for mark, name in _MARKS.items() if head.startswith(mark)), UTF8)

    def delimiter_of(self, lines: Sequence[str], usual: str) -> str:
        """The delimiter given, or the one that cuts the first lines into as many fields as the very first.

        Args:
            lines: the first of the file, each with its line end.
            usual: what the file's ending says, which is right if several do, or none.
        """
        if self.delimiter is not None:
            return self.delimiter
        for counted in (lines, lines[:1]):  # where no delimiter cuts all alike, some rows are bad: the header decides
            fitting = {d: width for d in (usual, *DELIMITERS) if (width := _width(counted, d)) > 1}
            if fitting:
                return usual if usual in fitting else max(fitting, key=lambda d: fitting[d])
        return usual

    def to_json(self) -> dict[str, Any]:
        return {"delimiter": self.delimiter, "encoding": self.encoding, "header": self.header}


def _width(lines: Sequence[str], delimiter: str) -> int:
    """How many fields each of the records has, if all have as many; otherwise 0."""
    widths = set()
    try:
        for fields in csv.reader(lines, delimiter=delimiter, strict=True):
            if fields:
                widths.add(len(fields))
    except csv.Error:  # also where the last record goes on beyond these lines
        pass
    return widths.pop() if len(widths) == 1 else 0
