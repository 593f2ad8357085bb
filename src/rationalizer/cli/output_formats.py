"""Explanations written out: as lines that can be continued, or as one document."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rationalizer.drawing import AnyExplanation, Label
    from rationalizer.text import AnyExample

FORMATS = ("terminal", "jsonl", "csv", "parquet", "html", "svg")
ENDINGS = {
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".html": "html",
    ".htm": "html",
    ".svg": "svg",
}
RESUMABLE = ("jsonl", "csv")


def choose_format(wanted: str | None, out: Path | None) -> str:
    """The format asked for, or the one that the file's ending tells; without a file, for people to read."""
    if wanted is not None:
        if wanted not in FORMATS:
            raise ValueError(f"there is no format {wanted!r}; known are {', '.join(FORMATS)}")
        return wanted
    if out is None:
        return "terminal"
    ending = out.suffix.lower()
    if ending in ENDINGS:
        return ENDINGS[ending]
    if ending in ("", ".txt"):
        return "terminal"
    raise ValueError(
        f"{out}: what should a {ending} file hold? End it in {', '.join(ENDINGS)} or .txt, or give --format"
    )


@dataclass(frozen=True)
class Said:
    """What is written of one row: the row itself, what the model says of it (None: nothing), the true label."""

    row: Mapping[str, Any]
    explanation: AnyExplanation | None
    truth: Label | None = None


@dataclass(frozen=True)
class Layout:
    """How explanations become text: what stands before them, each of them, and what stands after."""

    opening: str
    record: Callable[[int, Said], str]  # the first argument counts from 0
    closing: str = ""
    columns: tuple[str, ...] = ()  # CSV: the input's own, which come first


def layout(
    form: str, *, pairs: bool, columns: Sequence[str], table: bool, title: str, colour: bool, width: int | None
) -> Layout:
    """`columns` are the input's; those of a `table` are all kept, of lines and arguments the texts only."""
    from rationalizer import drawing as render
    from rationalizer.drawing.result_columns import result_columns

    if form == "jsonl":
        return Layout("", lambda _, said: _json_line(said, pairs, table))
    if form == "csv":
        names = [*columns, *result_columns(columns, pairs=pairs)]
        return Layout(_csv_line(names), lambda _, said: _csv_record(said, columns), columns=tuple(columns))

    def drawn(draw: Callable[[int, AnyExplanation, Label | None], str]) -> Callable[[int, Said], str]:
        return lambda number, said: "" if said.explanation is None else draw(number, said.explanation, said.truth)

    if form == "html":
        return Layout(
            render.html_opening(title),
            drawn(lambda number, one, truth: render.article(one, truth, legend=number == 0)),
            render.html_closing(),
        )
    if form == "svg":
        return Layout("", drawn(_only_svg))

    def in_terminal(number: int, one: AnyExplanation, truth: Label | None) -> str:
        # The key to the colours is needed once.
        shown = render.to_terminal(one, truth=truth, colour=colour, width=width, legend=number == 0)
        return f"{shown}\n\n"

    return Layout("", drawn(in_terminal))


def _only_svg(number: int, explanation: AnyExplanation, truth: Label | None) -> str:
    from rationalizer.drawing import to_svg

    if number:
        raise ValueError("an SVG shows one text, and there are more; use --format html, or call it for each text")
    return to_svg(explanation, truth=truth)


def _json_line(said: Said, pairs: bool, table: bool) -> str:
    row = _unsaid(said.row, pairs, table) if said.explanation is None else said.explanation.to_dict()
    if said.truth is not None:
        row["truth"] = said.truth
    if table:
        row["input"] = said.row
    try:
        line = json.dumps(row, ensure_ascii=False, allow_nan=False, default=str) + "\n"
    except ValueError:  # a number of the input that JSON has no word for
        row["input"] = _finite(row["input"])
        line = json.dumps(row, ensure_ascii=False, allow_nan=False, default=str) + "\n"
    # Half a surrogate pair can be written in JSON's own way only.
    return line if line.isascii() or writable(line) == line else json.dumps(row, allow_nan=False, default=str) + "\n"


def _unsaid(row: Mapping[str, Any], pairs: bool, table: bool) -> dict[str, Any]:
    """What stands for a row that has nothing to explain."""
    names = ("premise", "hypothesis") if pairs else ("text",)
    return {**{name: None if table else row[name] for name in names}, "label": None}


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _csv_line(cells: Sequence[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _csv_record(said: Said, columns: Sequence[str]) -> str:
    from rationalizer.drawing.result_columns import result_values

    return _csv_line([*map(_cell, map(said.row.get, columns)), *map(_cell, result_values(said.explanation))])


def _cell(value: Any) -> Any:
    """As CSV holds it: lists and objects as JSON, nothing as nothing."""
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "" if value is None or value != value else value


def writable(text: str) -> str:
    """The text with a "?" for each half of a surrogate pair, which no UTF-8 file and no terminal can hold."""
    return text.encode("utf-8", "replace").decode()


def texts_of(example: AnyExample) -> tuple[str, ...]:
    return tuple(writable(text.text) for text in example.texts)


@dataclass(frozen=True)
class Written:
    """The finished records of an output file; a crash may have left a part of another one behind them."""

    path: Path
    form: str
    shape: Layout

    @property
    def opening(self) -> str:
        return self.shape.opening

    def key_of(self, record: Mapping[str, Any]) -> tuple[str, ...]:
        """What tells which row a record is of: the row itself."""
        if self.form == "csv":
            return tuple(record[name] for name in self.shape.columns)
        texts = (record["text"],) if "text" in record else (record["premise"], record["hypothesis"])
        return (json.dumps(record.get("input", texts), sort_keys=True),)

    def said_of(self, record: Mapping[str, Any]) -> tuple[str, str]:
        """What a record says: the label, and what it rests on."""
        if self.form == "csv":
            label, _, *rests_on, _ = list(record.values())[-5:]
            return label, " ".join(rests_on)
        return str(record.get("label")), json.dumps(record.get("spans", record.get("pairs")))

    def records(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Each record, and the byte at which it ends."""
        with self.path.open("rb") as file:
            end = 0
            if self.opening:
                head = file.read(len(self.opening.encode()))
                if head != self.opening.encode():
                    if self.opening.encode().startswith(head):  # stopped within the first line
                        return
                    raise ValueError(f"{self.path} has other columns than this command writes; give another --out")
                end = len(head)
            for number, record in enumerate(_whole_records(file, self.form), 1):
                end += len(record)
                yield self.parsed(number, record), end

    def again(self, number: int, said: Said) -> dict[str, Any]:
        """A record as it would be written, and read again."""
        return self.parsed(number, writable(self.shape.record(number, said)).encode())

    def cut_after(self, end: int) -> None:
        with self.path.open("r+b") as file:
            file.truncate(end)

    def parsed(self, number: int, record: bytes) -> dict[str, Any]:
        from rationalizer.data.safe_json import parse_json

        try:
            if self.form == "jsonl":
                parsed = parse_json(record)
            else:
                names = next(csv.reader([self.opening]))
                cells = next(csv.reader(io.StringIO(record.decode(), newline="")))
                parsed = dict(zip(names, cells, strict=True))
            self.key_of(parsed)  # whether it has what tells the row
            return dict(parsed)
        except (ValueError, TypeError, KeyError, AttributeError, csv.Error):
            raise ValueError(
                f"record {number} of {self.path} is not one that this command writes; give another --out"
            ) from None


def _whole_records(file: IO[bytes], form: str) -> Iterator[bytes]:
    """Records with their line end; one that breaks off is left out."""
    record = b""
    for line in file:
        record += line
        # Within quotes a CSV record goes on over line ends; a quote inside quotes is written twice.
        if line.endswith(b"\n") and (form == "jsonl" or record.count(b'"') % 2 == 0):
            yield record
            record = b""
