"""The formats in which explanations are written: lines that can be continued, or one document."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rationalizer.drawing import AnyExplanation, Label

FORMATS = ("terminal", "jsonl", "csv", "parquet", "html", "svg", "png")
FORMAT_OF_SUFFIX = {
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".html": "html",
    ".htm": "html",
    ".svg": "svg",
    ".png": "png",
    ".txt": "terminal",
    "": "terminal",
}
DRAWN = ("terminal", "html", "svg", "png")
RESUMABLE = ("jsonl", "csv")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # of cells that spreadsheets take for formulas


def choose_format(name: str | None, out: Path | None) -> str:
    """Return the given format, or the one that belongs to the file's suffix; "terminal" without a file."""
    if name is not None:
        if name not in FORMATS:
            raise ValueError(f"unknown format {name!r}; available formats: {', '.join(FORMATS)}")
        return name
    suffix = "" if out is None else out.suffix.lower()
    if suffix not in FORMAT_OF_SUFFIX:
        known = ", ".join(filter(None, FORMAT_OF_SUFFIX))
        raise ValueError(f"{out}: no format belongs to the suffix {suffix}; use one of {known}, or add --format")
    return FORMAT_OF_SUFFIX[suffix]


@dataclass(frozen=True)
class ExplainedRow:
    """An input row, its explanation (None if it has no text), and its true label if known."""

    row: Mapping[str, Any]
    explanation: AnyExplanation | None
    truth: Label | None = None


@dataclass(frozen=True)
class OutputFormat:
    """How explained rows become text."""

    header: str
    record: Callable[[int, ExplainedRow], str | bytes]  # of the row with this index
    footer: str = ""
    columns: tuple[str, ...] = ()  # CSV: the columns of the input, which come first


def make_format(
    name: str,
    *,
    results: Mapping[str, Any],
    columns: Sequence[str],
    table: bool,
    title: str,
    colour: bool,
    width: int | None,
    escape: bool = False,
) -> OutputFormat:
    """Make a format for an input with these columns.

    `results` are the arguments of `result_columns`. With `table`, the whole input row is written; for lines and
    arguments, only the texts. With `escape`, CSV cells that spreadsheets would read as formulas begin with an
    apostrophe.
    """
    from rationalizer import drawing
    from rationalizer.drawing.result_columns import result_columns, result_values

    if name == "jsonl":
        return OutputFormat("", lambda _, row: _json_line(row, results["pairs"], table))
    if name == "csv":
        names = [*columns, *result_columns(columns, **results)]
        written = tuple(map(_escape_formula, columns) if escape else columns)

        def write_csv(_: int, row: ExplainedRow) -> str:
            cells = [*map(row.row.get, columns), *result_values(row.explanation, **results)]
            return _csv_line(list(map(_csv_cell, cells)), escape)

        return OutputFormat(_csv_line(names, escape), write_csv, columns=written)

    def draw_html(index: int, explanation: AnyExplanation, truth: Label | None) -> str:
        return drawing.article(explanation, truth, legend=index == 0)

    def draw_picture(index: int, explanation: AnyExplanation, truth: Label | None) -> str | bytes:
        if index:
            article = "an SVG" if name == "svg" else "a PNG"
            raise ValueError(
                f"{article} shows one text, but there are several; use --format html, or one call per text"
            )
        return (drawing.to_svg if name == "svg" else drawing.to_png)(explanation, truth=truth)

    def draw_text(index: int, explanation: AnyExplanation, truth: Label | None) -> str:
        drawn = drawing.to_terminal(explanation, truth=truth, colour=colour, width=width, legend=index == 0)
        return f"{drawn}\n\n"

    draw: Any = {"html": draw_html, "terminal": draw_text}.get(name, draw_picture)
    header, footer = (drawing.html_opening(title), drawing.html_closing()) if name == "html" else ("", "")
    return OutputFormat(
        header,
        lambda index, row: "" if row.explanation is None else draw(index, row.explanation, row.truth),
        footer,
    )


def _json_line(row: ExplainedRow, pairs: bool, table: bool) -> str:
    if row.explanation is not None:
        record = row.explanation.to_dict()
    else:
        names = ("premise", "hypothesis") if pairs else ("text",)
        record = {**{name: None if table else row.row[name] for name in names}, "label": None}
    if row.truth is not None:
        record["truth"] = row.truth
    if table:
        record["input"] = row.row
    try:
        line = json.dumps(record, ensure_ascii=False, allow_nan=False, default=str) + "\n"
    except ValueError:  # the input has a number that JSON cannot represent
        record["input"] = _replace_nonfinite(record["input"])
        line = json.dumps(record, ensure_ascii=False, allow_nan=False, default=str) + "\n"
    # A lone surrogate can only be written as an escape.
    return (
        line if line.isascii() or encodable(line) == line else json.dumps(record, allow_nan=False, default=str) + "\n"
    )


def _replace_nonfinite(value: Any) -> Any:
    """Replace NaN and infinities by None."""
    if isinstance(value, Mapping):
        return {name: _replace_nonfinite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_replace_nonfinite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _csv_line(cells: Sequence[Any], escape: bool) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(map(_escape_formula, cells) if escape else cells)
    return line.getvalue()


def _escape_formula(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def _csv_cell(value: Any) -> Any:
    """Lists and objects as JSON, None and NaN as an empty cell."""
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "" if value is None or value != value else value


def encodable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot represent, by "?"."""
    return text.encode("utf-8", "replace").decode()
