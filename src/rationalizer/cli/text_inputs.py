"""Rows to explain, one after the other: from arguments, from standard input, from files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import IO, TYPE_CHECKING, Any, TypeVar

from rationalizer.plurals import count_of

if TYPE_CHECKING:
    from rationalizer.data import BadRows, InputRow, ReadOptions
    from rationalizer.export import ExportedModel
    from rationalizer.model import Rationalizer
    from rationalizer.text import AnyExample

T = TypeVar("T")


ARGUMENTS, STANDARD_INPUT = Path("command line"), Path("standard input")


def rows_from_arguments(texts: Sequence[str], model: Rationalizer | ExportedModel, bad: BadRows) -> list[InputRow]:
    """Rows from texts on the command line; without those that cannot be used, if they may be skipped."""
    if not model.pairs:
        rows: list[InputRow] = []
        for number, text in enumerate(texts, 1):
            try:
                rows.append(_row({"text": text}, model))
            except ValueError as error:
                bad.add(ARGUMENTS, number, _without_place(error))
        bad.raise_if_any()
        return rows
    if len(texts) != 2:
        raise ValueError(
            f"this model reads pairs of texts, got {count_of(len(texts), 'text')}; pass a premise and a hypothesis, "
            "each in quotes"
        )
    return [_row({"premise": texts[0], "hypothesis": texts[1]}, model)]


def rows_from_lines(lines: IO[bytes], model: Rationalizer | ExportedModel, bad: BadRows) -> Iterator[InputRow]:
    """Rows from standard input: one text per line; a pair as premise, tab, hypothesis, or as a JSON object.

    An empty line gives a row without an example, so that row k is line k; so does a line that cannot be used, if such
    lines may be skipped.
    """
    from rationalizer.data import InputRow
    from rationalizer.data.file_content import LONGEST_LINE
    from rationalizer.text import DataError

    names = ("premise", "hypothesis") if model.pairs else ("text",)
    for number, raw in enumerate(iter(lambda: lines.readline(LONGEST_LINE + 1), b""), 1):
        place = f"{STANDARD_INPUT}, line {number}"
        if len(raw) > LONGEST_LINE:
            raise DataError(f"the line is longer than {LONGEST_LINE:,} bytes", "write one text per line", path=place)
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            if line.strip():
                yield _row(_parse_pair(line) if model.pairs else {"text": line}, model, place)
            else:
                yield InputRow(dict.fromkeys(names, ""), None)
        except ValueError as error:
            if isinstance(error, UnicodeDecodeError):
                error = DataError(f"byte 0x{raw[error.start]:02x} is not valid UTF-8")
            if not bad.skip:
                raise DataError.from_error(error, path=place) from None
            bad.add(STANDARD_INPUT, number, _without_place(error))
            yield InputRow(dict.fromkeys(names, ""), None)


def _without_place(error: ValueError) -> ValueError:
    """The same error without "texts, row 1": a row is made from a list of one text."""
    from rationalizer.text.errors import InputError

    return InputError(error.problem, error.remedy) if isinstance(error, InputError) else error


def _row(row: dict[str, Any], model: Rationalizer | ExportedModel, place: str | None = None) -> InputRow:
    from rationalizer.data import InputRow

    (example,) = model.examples([tuple(row.values()) if model.pairs else row["text"]])
    return InputRow(row, example, place)


def _parse_pair(line: str) -> dict[str, Any]:
    from rationalizer.data.safe_json import parse_json

    if line.lstrip().startswith("{"):
        record = parse_json(line)
        missing = [name for name in ("premise", "hypothesis") if name not in record]
        if missing:
            raise ValueError(f"the JSON object has no {missing[0]!r}; it needs premise and hypothesis")
        return {name: record[name] for name in ("premise", "hypothesis")}
    parts = line.split("\t")
    if len(parts) != 2:
        tabs = f"{len(parts) - 1} tabs" if len(parts) > 1 else "no tab"
        raise ValueError(f"got {tabs} in {line[:60]!r}; write a pair as premise, tab, hypothesis, or as a JSON object")
    return {"premise": parts[0], "hypothesis": parts[1]}


def rows_from_file(
    path: Path, options: ReadOptions, model: Rationalizer | ExportedModel, bad: BadRows | None = None
) -> Iterator[InputRow]:
    """The rows of a table, with its labels and annotations if it has any."""
    from rationalizer.data import Labels, iter_rows
    from rationalizer.export import ExportedModel

    if isinstance(model, ExportedModel):
        facts, rule = model.manifest, model.encoder.rule
        labels, columns = Labels(facts["task"], tuple(facts["classes"])), facts["columns"]
    else:
        trained, rule = model.trained, model.trained.encoder.rule
        labels, columns = trained.description.labels, trained.description.columns
    return iter_rows(
        path,
        replace(options, rule=rule),
        labels=labels,
        model_columns=columns,
        bad=bad,
        pairs=model.pairs,
    )


def examples_in_file(path: Path, options: ReadOptions, model: Rationalizer | ExportedModel) -> Iterator[AnyExample]:
    """The rows of a table that can be explained."""
    rows = rows_from_file(path, options, model)
    return (row.example for row in rows if row.example is not None)


def count_rows(path: Path, options: ReadOptions) -> int:
    """Read the whole table once and return its number of rows."""
    from rationalizer.data.table_files import stream_table

    return sum(1 for _ in stream_table(path, (), dialect=options.dialect, blank=True).rows)


def with_first_read(items: Iterable[T]) -> Iterator[T]:
    """The same items; the first is read at once, so that an error in it is raised before any output is written."""
    iterator = iter(items)
    first = list(islice(iterator, 1))
    return chain(first, iterator)


def in_batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of up to `size` items. If reading an item fails, the items before it come first, then the error."""
    batch: list[T] = []
    try:
        for item in items:
            batch.append(item)
            if len(batch) == size:
                full, batch = batch, []
                yield full
    except ValueError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def in_available_batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """As `in_batches`, but without waiting for a full batch: each list has the items that are available by then."""
    queue: Queue[T | _End] = Queue(2 * size)

    def read() -> None:
        try:
            for item in items:
                queue.put(item)
            queue.put(_End(None))
        except Exception as error:
            queue.put(_End(error))

    Thread(target=read, daemon=True).start()
    while True:
        item = queue.get()
        batch: list[T] = []
        while not isinstance(item, _End):
            batch.append(item)
            if len(batch) == size or queue.empty():
                break
            item = queue.get()
        if batch:
            yield batch
        if isinstance(item, _End):
            if item.error is not None:
                raise item.error
            return


@dataclass(frozen=True)
class _End:
    error: Exception | None
