"""`rationalizer explain`."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from rationalizer.cli import bulk_explain as shards
from rationalizer.cli import output_formats as outputs
from rationalizer.cli import text_inputs as inputs
from rationalizer.cli.base import command, err, out
from rationalizer.cli.options import (
    Delimiter,
    Device,
    Encoding,
    NoHeader,
    OtherConstraint,
    RunArgument,
    SkipBad,
    dialect_of,
    find_model,
)
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.data import Columns, Dialect, InputRow
    from rationalizer.model import Rationalizer


@command(
    'rationalizer explain sentiment "The room was spotless but the staff was rude."',
    'rationalizer explain runs/mine "A warm, funny film."',
    'rationalizer explain runs/pairs "A man plays a guitar." "A man makes music."',
    'rationalizer explain runs/mine --constraint whole-sentences "A warm, funny film. It could be shorter."',
    "cat reviews.txt | rationalizer explain runs/mine --format jsonl > explained.jsonl",
    "rationalizer explain runs/mine --file new.csv --column text=review --out explained.csv",
    "rationalizer explain runs/mine --file new.csv --column text=review --out explained.csv --resume",
    "rationalizer explain runs/mine --file 'new/*.parquet' --out explained/ --engine ray",
    stopped="Stopped. What was written as JSONL, CSV or shards stays; the same command with --resume goes on.",
)
def explain(
    run: RunArgument,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts, or a premise and a hypothesis; by default the lines of stdin."),
    ] = None,
    file_name: Annotated[
        str | None,
        typer.Option(
            "--file",
            help="A table: .csv, .tsv, .jsonl, .parquet, .xlsx; or many: a folder, 'folder/*.parquet', s3://...",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=NAME", help="A column's name, as text=review; label= leaves the labels out."),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    skip_bad: SkipBad = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="terminal, jsonl, csv, parquet, html or svg; by default as --out ends (.txt: terminal)."
        ),
    ] = None,
    out_name: Annotated[
        str | None, typer.Option("--out", help="Write to this file; of many, Parquet shards to this folder.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the .jsonl, .csv or shards in --out.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file or the shards in --out.")] = False,
    budget: Annotated[str | None, typer.Option(help="If not the one of the training: 20%, 0.2, or 5 words.")] = None,
    constraint: OtherConstraint = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts that the model reads at once.")] = 128,
    device: Device = "cpu",
    engine: Annotated[str, typer.Option(help="local; or ray (extra ray): many processes or machines.")] = "local",
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster; by default Ray runs on this machine.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Of Ray; by default one for every core, or GPU.")] = None,
    gpus: Annotated[
        float | None, typer.Option(min=0, help="ray: GPUs of each worker; 0.25 is a quarter of one.")
    ] = None,
    shard_rows: Annotated[int | None, typer.Option(min=1, help="Of Parquet in one shard; by default 20000.")] = None,
) -> None:
    """Label texts and show the words that the labels rest on. Reads and writes bit by bit, so size is no matter.

    Of a --file, every row and column is kept in .csv, .jsonl and .parquet, rows without a text too; the columns of the
    training are looked for by their names.
    """
    if file_name is not None and texts:
        raise ValueError("texts come from --file or from the command line, not from both")
    if file_name is None and (column or delimiter or encoding or no_header or skip_bad):
        raise ValueError("--column, --delimiter and the like say how to read a --file; give one")
    if resume and overwrite:
        raise ValueError("--resume keeps what --overwrite replaces; leave one out")
    columns, dialect = inputs.columns_named(column), dialect_of(delimiter, encoding, no_header)
    reading: dict[str, Any] = {"columns": columns, "dialect": dialect, "skip_bad": skip_bad, "batch_size": batch_size}
    on_ray = {"address": address, "workers": workers, "gpus": gpus}
    if shards.are_meant(engine, file_name):
        source, folder = shards.check(engine, file_name, out_name, form, device, on_ray)
        how = {"engine": engine, "resume": resume, "overwrite": overwrite, **reading, **on_ray}
        shards.explain_many(source, folder, _model(find_model(run), budget, constraint, device), shard_rows, **how)
        return
    shards.refuse({**on_ray, "shard_rows": shard_rows})
    file, out_file = (None if name is None else Path(name) for name in (file_name, out_name))
    chosen = outputs.choose_format(form, out_file)
    _check_out(out_file, chosen, resume, overwrite)
    if chosen == "parquet" and (file is None or out_file is None):
        raise ValueError("Parquet is written of a --file to an --out; give both, or another --format")
    model = _model(find_model(run), budget, constraint, device)
    if chosen == "parquet" and file is not None and out_file is not None:
        shards.explain_one(file, out_file, model, **reading)
    else:
        _explain(model, texts, file, out_file, chosen, resume, title=f"Explained by {run.resolve().name}", **reading)


def _explain(
    model: Rationalizer,
    texts: Sequence[str] | None,
    file: Path | None,
    out_file: Path | None,
    chosen: str,
    resume: bool,
    *,
    title: str,
    columns: Columns | None,
    dialect: Dialect | None,
    skip_bad: bool,
    batch_size: int,
) -> None:
    """Round by round, as text."""
    from rationalizer.data import BadRows
    from rationalizer.data.table_files import columns_of
    from rationalizer.inference.predict import BATCHES_PER_ROUND
    from rationalizer.prediction_warnings import WarningSummary

    asking = sys.stdin.isatty() and file is None and texts in (None, [], ["-"])
    if asking:
        err.print(f"One {'pair a line (premise, tab, hypothesis)' if model.pairs else 'text a line'}; Ctrl-D ends.")
    bad = BadRows(skip=skip_bad)
    if file is not None:
        given = inputs.begun(inputs.from_file(file, columns, model, dialect, bad))
        kept = columns_of(file, dialect) if chosen == "csv" else ()
    else:
        given = inputs.begun(_given(model, texts))
        kept = ("premise", "hypothesis") if model.pairs else ("text",)
    shape = outputs.layout(
        chosen,
        pairs=model.pairs,
        columns=kept,
        table=file is not None,
        title=title,
        colour=out_file is None and out.is_terminal and not out.no_color,
        width=out.width if out_file is None and out.is_terminal else None,
    )
    start = 0
    if resume and out_file is not None and out_file.exists():
        written = outputs.Written(out_file, chosen, shape)
        start, given = _skip(model, shape, given, written, batch_size, BATCHES_PER_ROUND * batch_size)
    shown = (out_file is not None or _is_sent_to_a_file()) and not asking
    total = inputs.count_rows(file, dialect) - start if shown and file is not None else None
    # A file is explained in rounds of one size, so that it can be continued; who waits for an answer gets it at once.
    batches = inputs.in_batches if file is not None or texts not in (None, [], ["-"]) else inputs.as_they_come
    counts, summary = Counter[bool](), WarningSummary()
    with (
        _destination(out_file, chosen, append=resume) as write,
        show_progress("Explaining", total, shown=shown) as advance,
    ):
        if not start:
            write(shape.opening)
        number = start
        for batch in batches(given, BATCHES_PER_ROUND * batch_size):
            said = _said(model, batch, batch_size)
            write("".join(shape.record(number + k, one) for k, one in enumerate(said)))
            counts.update(one.explanation is not None for one in said)
            summary.add_explanations(one.explanation for one in said if one.explanation is not None)
            number += len(batch)
            advance(len(batch))
        write(shape.closing)
    for note in [*bad.messages(), *str(summary).splitlines()]:
        err.print(note, style="yellow", markup=False)
    if out_file is not None:
        _tell(out_file, counts[True], counts[False] - len(bad), start)


def _tell(out_file: Path, explained: int, empty: int, start: int) -> None:
    without = f", {empty} without a text kept as they are" if empty > 0 else ""
    before = f", {start} were there" if start else ""
    err.print(f"{out_file}: {explained} explained{without}{before}", markup=False)


def _said(model: Rationalizer, batch: Sequence[InputRow], batch_size: int) -> list[outputs.Said]:
    """What the model says of rows; nothing of those that have nothing to explain."""
    return [
        outputs.Said(given.row, explanation, None if given.example is None else model.label_of(given.example))
        for given, explanation in zip(batch, model.explain_rows(batch, batch_size=batch_size), strict=True)
    ]


def _check_out(out_file: Path | None, form: str, resume: bool, overwrite: bool) -> None:
    if out_file is None:
        if resume or overwrite:
            raise ValueError(f"--{'resume' if resume else 'overwrite'} needs --out, the file to write to")
        return
    if resume and form not in outputs.RESUMABLE:
        raise ValueError(f"only {' and '.join(outputs.RESUMABLE)} can be resumed, not {form}; leave --resume out")
    if out_file.is_dir():
        raise IsADirectoryError(f"{out_file} is a folder; name a file in it")
    if out_file.exists() and not (resume or overwrite):
        remedy = "go on with it by --resume, replace it by --overwrite" if form in outputs.RESUMABLE else "--overwrite"
        raise FileExistsError(f"{out_file} already exists; {remedy}, or give another --out")


def _model(run: Path, budget: str | None, constraints: list[str] | None, device: str) -> Rationalizer:
    from rationalizer.model import Rationalizer

    model = Rationalizer.load(run, device)
    if budget is not None:
        model.budget = budget
    if constraints:
        model.constraints = constraints
    return model


def _is_sent_to_a_file() -> bool:
    """Whether a bar on the terminal would disturb nobody: no text on it, and no other program that reads the text."""
    return err.is_terminal and stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)


def _given(model: Rationalizer, texts: Sequence[str] | None) -> Iterator[InputRow]:
    if texts and list(texts) != ["-"]:
        return iter(inputs.rows_from_arguments(texts, model))
    return inputs.rows_from_lines(_standard_input(), model)


def _standard_input() -> IO[bytes]:
    """A encoder of its own: a thread that waits in it holds its lock, and the program ends by locking the usual one."""
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except OSError:  # not a file of the system
        return sys.stdin.buffer


def _skip(
    model: Rationalizer,
    shape: outputs.Layout,
    given: Iterator[InputRow],
    written: outputs.Written,
    batch_size: int,
    round_size: int,
) -> tuple[int, Iterator[InputRow]]:
    """How many rows the file has already, and those that are left to explain.

    Of the file whole rounds are kept: the last digits of a number depend on the texts that it was computed with,
    and the file shall become what it would have been. The first round is explained again, to see that the same model
    at the same budget wrote it.
    """
    kept, end = 0, 0
    begun: list[InputRow] = []
    records: list[dict[str, Any]] = []
    for count, (record, record_end) in enumerate(written.records(), 1):
        row = next(given, None)
        if row is None:
            raise ValueError(
                f"{written.path} has more records than there are texts; give another --out, or --overwrite"
            )
        expected = written.again(count, outputs.Said(row.row, None))
        if written.key_of(expected) != written.key_of(record):
            raise ValueError(
                f"record {count} of {written.path} is of another text than number {count} of the input; "
                "give the input it was written from, another --out, or --overwrite"
            )
        begun.append(row)
        if kept == 0:
            records.append(record)
        if len(begun) == round_size:
            if kept == 0:
                _require_same_answers(model, written, begun, records, batch_size)
            kept, end, begun = count, record_end, []
    written.cut_after(end)
    return kept, chain(begun, given)


def _require_same_answers(
    model: Rationalizer,
    written: outputs.Written,
    given: Sequence[InputRow],
    records: Sequence[dict[str, Any]],
    batch_size: int,
) -> None:
    """An error where the file's first records are not what this model says at this budget."""
    for number, (said, record) in enumerate(zip(_said(model, given, batch_size), records, strict=True), 1):
        if written.said_of(written.again(number, said)) != written.said_of(record):
            raise ValueError(
                f"record {number} of {written.path} says something else than this model at this budget; give the model "
                "and the --budget that it was written with, another --out, or --overwrite"
            )


@contextmanager
def _destination(path: Path | None, form: str, *, append: bool) -> Iterator[Callable[[str], None]]:
    """Where text goes: lines that can be continued into the file itself, documents in its place when they are whole."""
    from rationalizer.models.atomic_files import replace_file

    if path is None:

        def write(text: str) -> None:
            sys.stdout.write(outputs.writable(text))
            sys.stdout.flush()

        yield write
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab" if append else "wb") if form in outputs.RESUMABLE else replace_file(path) as file:

        def write_out(text: str) -> None:
            file.write(outputs.writable(text).encode())
            file.flush()

        yield write_out
