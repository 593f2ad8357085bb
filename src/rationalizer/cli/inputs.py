"""Texts and pairs to explain, one after the other: from arguments, from standard input, from files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rationalizer.data import Columns
    from rationalizer.rationalizer import Rationalizer
    from rationalizer.text import AnyExample

T = TypeVar("T")


def from_arguments(texts: Sequence[str], model: Rationalizer) -> list[AnyExample]:
    from rationalizer.data.rows import make_example, make_pair

    rule = model.trained.reader.rule
    if not model.pairs:
        return [make_example(text=text, rule=rule) for text in texts]
    if len(texts) != 2:
        raise ValueError(
            f"this model reads pairs: give the premise and the hypothesis, each in quotes; got {len(texts)} "
            f"{'texts' if len(texts) > 1 else 'text'}"
        )
    return [make_pair(premise=texts[0], hypothesis=texts[1], rule=rule)]


def from_lines(lines: IO[bytes], model: Rationalizer) -> Iterator[AnyExample]:
    """One text a line; a pair as premise, tab, hypothesis, or as a JSON object. Empty lines count for nothing."""
    from rationalizer.data.rows import make_example, make_pair
    from rationalizer.data.tables import LONGEST_LINE
    from rationalizer.text import DataError

    rule = model.trained.reader.rule
    for number, raw in enumerate(iter(lambda: lines.readline(LONGEST_LINE + 1), b""), 1):
        if len(raw) > LONGEST_LINE:
            raise DataError(
                f"standard input, line {number}: more than {LONGEST_LINE:,} bytes in one line; give one text a line"
            )
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            if line.strip():
                yield make_pair(**_pair(line), rule=rule) if model.pairs else make_example(text=line, rule=rule)
        except UnicodeDecodeError as error:
            byte = raw[error.start]
            raise DataError(f"standard input, line {number}: byte 0x{byte:02x} is not UTF-8") from None
        except ValueError as error:
            raise DataError(f"standard input, line {number}: {error}") from None


def _pair(line: str) -> dict[str, Any]:
    from rationalizer.data.json_text import parse_json

    if line.lstrip().startswith("{"):
        found = parse_json(line)
        missing = [name for name in ("premise", "hypothesis") if name not in found]
        if missing:
            raise ValueError(f"the JSON object has no {missing[0]!r}; it needs premise and hypothesis")
        return {name: found[name] for name in ("premise", "hypothesis")}
    parts = line.split("\t")
    if len(parts) != 2:
        tabs = f"{len(parts) - 1} tabs" if len(parts) > 1 else "no tab"
        raise ValueError(f"a pair is premise, tab, hypothesis, or a JSON object with both; got {tabs} in {line[:60]!r}")
    return {"premise": parts[0], "hypothesis": parts[1]}


def from_file(path: Path, column: Sequence[str] | None, model: Rationalizer) -> Iterator[AnyExample]:
    """The rows of a table, with the labels and human rationales that it has."""
    from rationalizer.data import Labels, iter_examples
    from rationalizer.text import DataError, PairExample

    labels = Labels(model.trained.task, model.trained.classes)
    for example in iter_examples(path, columns=_columns(column), labels=labels, rule=model.trained.reader.rule):
        if isinstance(example, PairExample) != model.pairs:
            has, wants = ("single texts", "pairs") if model.pairs else ("pairs", "single texts")
            raise DataError(f"{path} holds {has}, but the model reads {wants}; name the columns by --column")
        yield example


def count_rows(path: Path) -> int:
    """How many rows a table has; it is read through once."""
    from rationalizer.data.tables import stream_table

    return sum(1 for _ in stream_table(path, ()).rows)


def _columns(column: Sequence[str] | None) -> Columns | None:
    from rationalizer.data import Source
    from rationalizer.study import parse_assignments

    return Source.of("", columns=parse_assignments(column, "--column")).renamed


def begun(items: Iterable[T]) -> Iterator[T]:
    """The same items, the first of which was had already: what is wrong from the start shows before output begins."""
    iterator = iter(items)
    first = list(islice(iterator, 1))
    return chain(first, iterator)


def in_batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of up to `size` items. Where an item cannot be had, those before it still come, then the error."""
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
