"""`rationalizer explain`."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from rationalizer.cli import text_inputs as inputs
from rationalizer.cli.base import command, err, out, use_threads, warn
from rationalizer.cli.bulk_explain import check_shard_options, explain_to_parquet, explain_to_shards, writes_shards
from rationalizer.cli.options import (
    Device,
    OtherBudget,
    OtherConstraint,
    RunArgument,
    TableOptions,
    Threads,
    can_do_without_pytorch,
    check_engine_options,
    find_model,
    load_exported,
)
from rationalizer.cli.output_formats import DRAWN, RESUMABLE, ExplainedRow, choose_format, encodable, make_format
from rationalizer.cli.record_output import RecordFile, RecordOptions
from rationalizer.cli.resumed_output import PartialOutput
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.data import InputRow, ReadOptions
    from rationalizer.export import ExportedModel
    from rationalizer.model import Rationalizer

AnyModel = TypeVar("AnyModel", bound="Rationalizer | ExportedModel")


@command(
    'rationalizer explain sentiment "The room was spotless but the staff was rude."',
    'rationalizer explain runs/mine "A warm, funny film."',
    'rationalizer explain runs/pairs "A man plays a guitar." "A man makes music."',
    'rationalizer explain runs/mine --constraint whole-sentences "A warm, funny film. It could be shorter."',
    "cat reviews.txt | rationalizer explain runs/mine --format jsonl > explained.jsonl",
    "rationalizer explain runs/mine --file new.csv --column text=review --out explained.csv",
    "rationalizer explain runs/mine --file new.csv --column text=review --out explained.csv --resume",
    "rationalizer explain runs/mine --file 'new/*.parquet' --out explained/ --engine ray",
    'rationalizer explain sentiment "A warm, funny film." --record decisions.jsonl',
    stopped="Stopped. Finished JSONL, CSV and shards are kept; the same command with --resume continues.",
)
def explain(
    run: RunArgument,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts, or a premise and a hypothesis; by default the lines of stdin."),
    ] = None,
    *,
    file_name: Annotated[
        str | None,
        typer.Option(
            "--file",
            help="A table: .csv, .tsv, .jsonl, .parquet, .xlsx; or several: a folder, 'folder/*.parquet', s3://...",
        ),
    ] = None,
    reading: TableOptions,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="terminal, jsonl, csv, parquet, html, svg, or png (extra png); by default from the suffix of --out "
            "(.txt: terminal).",
        ),
    ] = None,
    out_name: Annotated[
        str | None, typer.Option("--out", help="Write to this file; for several files, Parquet shards to this folder.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the unfinished .jsonl, .csv or shards in --out.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file or the shards in --out.")] = False,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas",
            help="CSV: put ' before cells that begin with =, +, -, @, tab or carriage return; for spreadsheets.",
        ),
    ] = False,
    budget: OtherBudget = None,
    constraint: OtherConstraint = None,
    abstain: Annotated[
        float | None, typer.Option(min=0, max=1, help="Warn of every label with a lower probability.")
    ] = None,
    reasons: Annotated[
        bool | None,
        typer.Option(
            "--reasons/--no-reasons",
            help="What each selected word speaks for, and how much; by default for texts on the command line. For "
            "files it takes several times as long.",
        ),
    ] = None,
    per_class: Annotated[
        bool,
        typer.Option("--per-class", help="Show for each class, or label, which of the words read speak for it."),
    ] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts per batch.")] = 128,
    device: Device = "auto",
    threads: Threads = None,
    engine: Annotated[str, typer.Option(help="local, or ray (extra ray) for several processes or machines.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="ray: address of a running cluster; by default Ray runs on this machine.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="ray: number of workers; by default one per core, or per GPU.")
    ] = None,
    gpus: Annotated[float | None, typer.Option(min=0, help="ray: GPUs per worker; 0.25 is a quarter of one.")] = None,
    shard_rows: Annotated[int | None, typer.Option(min=1, help="Rows per Parquet shard; 20000 by default.")] = None,
    recording: RecordOptions,
) -> None:
    """Predict labels of texts and show the words they are based on. Input of any size is processed in pieces.

    With --file, .csv, .jsonl and .parquet output keeps every row and column of the input, including rows without a
    text; column names are taken from the training data by default.
    """
    use_threads(threads)
    if file_name is not None and texts:
        raise ValueError("texts are given both by --file and on the command line; remove one")
    if file_name is None and replace(reading, skip_bad=False).is_set():
        raise ValueError("--column, --delimiter and similar options describe a --file; add --file")
    if resume and overwrite:
        raise ValueError("--resume and --overwrite exclude each other; remove one")
    recording.check()
    read = reading.read_options()
    options: dict[str, Any] = {"columns": read.columns, "dialect": read.dialect, "skip_bad": read.skip_bad}
    options |= {"batch_size": batch_size, "reasons": bool(reasons)}
    ray = {"address": address, "workers": workers, "gpus": gpus}
    if writes_shards(engine, file_name):
        _check_per_class(per_class, "parquet")
        _check_abstaining(abstain, "parquet")
        _check_escaping(escape_formulas, "parquet")
        recording.check_format("parquet")
        source, folder = check_shard_options(engine, file_name, out_name, form, device, **ray)
        # Ray's workers, which get a copy of the model, need not have this machine's GPU.
        model = _load_model(find_model(run), budget, constraint, "cpu" if engine == "ray" else device)
        options |= {"engine": engine, "resume": resume, "overwrite": overwrite, **ray}
        explain_to_shards(source, folder, model, shard_rows, **options)
        return
    check_engine_options(engine, "ray", **ray, shard_rows=shard_rows)
    file, out_file = (None if name is None else Path(name) for name in (file_name, out_name))
    format_name = choose_format(form, out_file)
    _check_escaping(escape_formulas, format_name)
    recording.check_format(format_name)
    _check_output(out_file, format_name, resume, overwrite)
    _check_abstaining(abstain, format_name)
    _check_per_class(per_class, format_name)
    if format_name == "parquet" and (file is None or out_file is None):
        raise ValueError("Parquet output needs --file and --out; add both, or choose another --format")
    found = find_model(run)
    if format_name == "parquet" and file is not None and out_file is not None:
        explain_to_parquet(file, out_file, _load_model(found, budget, constraint, device), **options)
        return
    title = f"Explained by {run.resolve().name}"
    output = (out_file, format_name, resume, title, escape_formulas)
    if (
        recording.record is None
        and not per_class
        and can_do_without_pytorch(found, bulk=file is not None, device=device)
    ):
        exported = _adjusted(load_exported(run, found), budget, constraint)
        _explain_as_text(
            exported, texts, file, read, batch_size, reasons, *output, RecordFile(None, None, None), abstain, False
        )
        return
    model = _load_model(found, budget, constraint, device)
    with recording.open_file(model) as records:
        _explain_as_text(model, texts, file, read, batch_size, reasons, *output, records, abstain, per_class)


def _explain_as_text(
    model: Rationalizer | ExportedModel,
    texts: Sequence[str] | None,
    file: Path | None,
    read: ReadOptions,
    batch_size: int,
    reasons: bool | None,
    out_file: Path | None,
    format_name: str,
    resume: bool,
    title: str,
    escape_formulas: bool,
    records: RecordFile,
    least: float | None,
    per_class: bool,
) -> None:
    """Explain round by round and write each round at once."""
    from rationalizer.data import BadRows
    from rationalizer.data.read_options import BATCHES_PER_ROUND
    from rationalizer.data.table_files import columns_of
    from rationalizer.prediction_warnings import WarningSummary, abstain

    from_stdin = file is None and texts in (None, [], ["-"])
    interactive = from_stdin and sys.stdin.isatty()
    if interactive:
        err.print(f"One {'pair per line (premise, tab, hypothesis)' if model.pairs else 'text per line'}; end: Ctrl-D.")
    bad = BadRows(skip=read.skip_bad)
    if reasons is None and (file is not None or (from_stdin and not interactive)):
        reasons = False
    columns: Sequence[str] = ("premise", "hypothesis") if model.pairs else ("text",)
    if file is not None:
        rows = inputs.with_first_read(inputs.rows_from_file(file, read, model, bad))
        columns = columns_of(file, read.dialect) if format_name == "csv" else ()
    elif from_stdin:
        rows = inputs.with_first_read(inputs.rows_from_lines(_open_stdin(), model, bad))
    else:
        rows = iter(inputs.rows_from_arguments(texts or (), model, bad))
    to_terminal = out_file is None and out.is_terminal
    form = make_format(
        format_name,
        results={**model.result_form, "separate": per_class or model.result_form.get("separate", False)},
        columns=columns,
        table=file is not None,
        title=title,
        colour=to_terminal and not out.no_color,
        width=out.width if to_terminal else None,
        escape=escape_formulas,
    )

    def explain_rows(batch: Sequence[InputRow]) -> list[ExplainedRow]:
        how: dict[str, Any] = {} if records.recorder is None else {"recorder": records.recorder}
        how |= {"per_class": True} if per_class else {}
        explanations = model.explain_rows(batch, batch_size=batch_size, bad=bad, reasons=reasons, **how)
        if least is not None:
            explanations = [None if one is None else abstain(one, least) for one in explanations]
        return [
            ExplainedRow(row.row, explanation, None if row.example is None else model.label_of(row.example))
            for row, explanation in zip(batch, explanations, strict=True)
        ]

    start, round_size = 0, BATCHES_PER_ROUND * batch_size
    if resume and out_file is not None and out_file.exists():
        start, rows = PartialOutput(out_file, format_name, form).skip_finished(rows, explain_rows, round_size)
    shown = (out_file is not None or _stdout_is_file()) and not interactive
    total = inputs.count_rows(file, read) - start if shown and file is not None else None
    # A file is explained in rounds of one size, so that it can be resumed; other programs and people get their answers
    # without waiting for a full round.
    batches = (inputs.in_available_batches if from_stdin else inputs.in_batches)(rows, round_size)
    counts, summary, number = Counter[bool](), WarningSummary(), start
    bar = show_progress("Explaining", total, shown=shown)
    with _open_output(out_file, format_name, append=resume) as write, bar as advance:
        if not start:
            write(form.header)
        for batch in batches:
            explained = records.take_from(explain_rows(batch))
            write(*(form.record(number + k, row) for k, row in enumerate(explained)))
            counts.update(row.explanation is not None for row in explained)
            summary.add_explanations(row.explanation for row in explained if row.explanation is not None)
            number += len(batch)
            advance(len(batch))
        write(form.footer)
    shown_already = number == 1 and format_name in DRAWN
    warn([*bad.messages(), *([] if shown_already else str(summary).splitlines())])
    if out_file is not None:
        empty = counts[False] - len(bad)
        unchanged = f", {empty} without a text copied unchanged" if empty > 0 else ""
        existing = f", {start} existed already" if start else ""
        err.print(f"{out_file}: {counts[True]} explained{unchanged}{existing}", markup=False)


def _check_escaping(escape_formulas: bool, format_name: str) -> None:
    if escape_formulas and format_name != "csv":
        raise ValueError(f"--escape-formulas is for CSV output, not for {format_name}; omit it, or add --format csv")


def _check_abstaining(abstain: float | None, format_name: str) -> None:
    if abstain is not None and format_name == "parquet":
        raise ValueError("--abstain is not for Parquet output; omit it, and compare the column `probability`")


def _check_per_class(per_class: bool, format_name: str) -> None:
    if per_class and format_name == "parquet":
        raise ValueError("--per-class is not for Parquet output; choose .jsonl or .csv, or omit it")


def _check_output(out_file: Path | None, format_name: str, resume: bool, overwrite: bool) -> None:
    if out_file is None:
        if resume or overwrite:
            raise ValueError(f"--{'resume' if resume else 'overwrite'} needs --out; add the file to write to")
        if format_name == "png":
            raise ValueError("a PNG needs --out; add the file to write to")
        return
    if resume and format_name not in RESUMABLE:
        raise ValueError(f"{format_name} output cannot be resumed, only {' and '.join(RESUMABLE)}; omit --resume")
    if out_file.is_dir():
        raise IsADirectoryError(f"{out_file} is a folder; choose a file in it")
    if out_file.exists() and not (resume or overwrite):
        remedy = "--resume, --overwrite" if format_name in RESUMABLE else "--overwrite"
        raise FileExistsError(f"{out_file} exists already; use {remedy} or another --out")


def _load_model(run: Path, budget: str | None, constraints: list[str] | None, device: str) -> Rationalizer:
    if (run / "manifest.json").is_file():
        raise ValueError(
            f"{run} is an exported model, which writes no Parquet, shards or decision records; use --format jsonl or "
            "csv without --record, or the model that was exported"
        )
    from rationalizer.model import Rationalizer

    return _adjusted(Rationalizer.load(run, device), budget, constraints)


def _adjusted(model: AnyModel, budget: str | None, constraints: list[str] | None) -> AnyModel:
    if budget is not None:
        model.budget = budget
    if constraints:
        model.constraints = constraints
    return model


def _stdout_is_file() -> bool:
    """Return whether a progress bar can be shown: the output goes to a file, not to the terminal or a program."""
    return err.is_terminal and stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)


def _open_stdin() -> IO[bytes]:
    """Open standard input again: a thread that waits in `sys.stdin` holds its lock, and exit would wait for it."""
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except OSError:  # not a file of the system
        return sys.stdin.buffer


@contextmanager
def _open_output(path: Path | None, format_name: str, *, append: bool) -> Iterator[Callable[..., None]]:
    """Yield a function that writes parts: resumable formats in place, documents only when they are complete."""
    if path is None:

        def write(*parts: str) -> None:
            sys.stdout.write(encodable("".join(parts)))
            sys.stdout.flush()

        yield write
        return
    from rationalizer.models.atomic_files import replace_file

    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab" if append else "wb") if format_name in RESUMABLE else replace_file(path) as file:

        def write_to_file(*parts: str | bytes) -> None:
            file.writelines(part if isinstance(part, bytes) else encodable(part).encode() for part in parts)
            file.flush()

        yield write_to_file
