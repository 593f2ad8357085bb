"""Explanations written out: as lines that can be continued, or as one document."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rationalizer.render import AnyExplanation, Label
    from rationalizer.text import AnyExample

FORMATS = ("terminal", "jsonl", "csv", "html", "svg")
ENDINGS = {".jsonl": "jsonl", ".json": "jsonl", ".csv": "csv", ".html": "html", ".htm": "html", ".svg": "svg"}
RESUMABLE = ("jsonl", "csv")
TEXT_COLUMNS = ("text", "label", "probability", "rationale", "spans", "truth")
PAIR_COLUMNS = ("premise", "hypothesis", "label", "probability", "alignment", "words", "truth")


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
class Layout:
    """How explanations become text: what stands before them, each of them, and what stands after."""

    opening: str
    record: Callable[[int, AnyExplanation, Label | None], str]  # the first argument counts from 0
    closing: str = ""


def layout(form: str, *, pairs: bool, title: str, colour: bool, width: int | None) -> Layout:
    from rationalizer import render

    if form == "jsonl":
        return Layout("", lambda _, one, truth: _json_line(one, truth))
    if form == "csv":
        return Layout(_csv_line(PAIR_COLUMNS if pairs else TEXT_COLUMNS), lambda _, one, truth: _csv_record(one, truth))
    if form == "html":
        return Layout(
            render.html_opening(title),
            lambda number, one, truth: render.article(one, truth, legend=number == 0),
            render.html_closing(),
        )
    if form == "svg":
        return Layout("", _only_svg)

    def in_terminal(number: int, one: AnyExplanation, truth: Label | None) -> str:
        # The key to the colours is needed once.
        drawn = render.to_terminal(one, truth=truth, colour=colour, width=width, legend=number == 0)
        return f"{drawn}\n\n"

    return Layout("", in_terminal)


def _only_svg(number: int, explanation: AnyExplanation, truth: Label | None) -> str:
    from rationalizer.render import to_svg

    if number:
        raise ValueError("an SVG shows one text, and there are more; use --format html, or call it for each text")
    return to_svg(explanation, truth=truth)


def _json_line(explanation: AnyExplanation, truth: Label | None) -> str:
    row = explanation.to_dict()
    if truth is not None:
        row["truth"] = truth
    line = json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
    # Half a surrogate pair can be written in JSON's own way only.
    return line if writable(line) == line else json.dumps(row, allow_nan=False) + "\n"


def _csv_line(cells: Sequence[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _csv_record(explanation: AnyExplanation, truth: Label | None) -> str:
    from rationalizer.render import Explanation

    probability = max(explanation.probabilities.values()) if explanation.probabilities else ""
    shown = "" if truth is None else truth
    if isinstance(explanation, Explanation):
        rationale = " ... ".join(explanation.text[start:end] for start, end in explanation.spans)
        spans = json.dumps(explanation.spans)
        return _csv_line([explanation.text, explanation.label, probability, rationale, spans, shown])
    alignment = " ".join(f"{i}-{j}" for i, j in explanation.pairs)
    words = " ".join(f"{one}-{other}" for one, other in explanation.words)
    texts = [explanation.premise, explanation.hypothesis]
    return _csv_line([*texts, explanation.label, probability, alignment, words, shown])


def writable(text: str) -> str:
    """The text with a "?" for each half of a surrogate pair, which no UTF-8 file and no terminal can hold."""
    return text.encode("utf-8", "replace").decode()


def key_of(record: dict[str, Any]) -> tuple[str, ...]:
    """What tells which text a written record is of."""
    texts = (record["text"],) if "text" in record else (record["premise"], record["hypothesis"])
    return tuple(map(writable, texts))


def said_of(record: dict[str, Any]) -> tuple[str, str]:
    """What a written record says: the label, and what it rests on; in JSON lines and in CSV alike."""
    rests_on = record.get("spans", record.get("pairs", record.get("alignment", "")))
    return str(record.get("label")), rests_on if isinstance(rests_on, str) else json.dumps(rests_on)


def key_of_example(example: AnyExample) -> tuple[str, ...]:
    from rationalizer.text import Example

    texts = (example.text,) if isinstance(example, Example) else (example.premise.text, example.hypothesis.text)
    return tuple(map(writable, texts))


@dataclass(frozen=True)
class Written:
    """The finished records of an output file; a crash may have left a part of another one behind them."""

    path: Path
    form: str
    opening: str

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

    def cut_after(self, end: int) -> None:
        with self.path.open("r+b") as file:
            file.truncate(end)

    def parsed(self, number: int, record: bytes) -> dict[str, Any]:
        from rationalizer.data.json_text import parse_json

        try:
            if self.form == "jsonl":
                parsed = parse_json(record)
            else:
                names = next(csv.reader([self.opening]))
                cells = next(csv.reader(io.StringIO(record.decode(), newline="")))
                parsed = dict(zip(names, cells, strict=True))
            key_of(parsed)  # whether it has what tells the text
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
