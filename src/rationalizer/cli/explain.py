"""`rationalizer explain`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from rationalizer.cli.base import command, use_threads
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
from rationalizer.cli.output_formats import choose_format
from rationalizer.cli.record_output import RecordFile, RecordOptions
from rationalizer.cli.written_explanations import Output, Source, write_explanations

if TYPE_CHECKING:
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
    file, out_file = (None if name is None else Path(name) for name in (file_name, out_name))
    ray = {"address": address, "workers": workers, "gpus": gpus}
    to_shards = writes_shards(engine, file_name)
    if not to_shards:
        check_engine_options(engine, "ray", **ray, shard_rows=shard_rows)
    format_name = "parquet" if to_shards else choose_format(form, out_file)
    title = f"Explained by {run.resolve().name}"
    output = Output(out_file, format_name, title, resume, overwrite, escape_formulas, abstain, per_class)
    output.check_format()
    recording.check_format(format_name)
    if to_shards:
        source, folder = check_shard_options(engine, file_name, out_name, form, device, **ray)
        # Ray's workers, which get a copy of the model, need not have this machine's GPU.
        model = _load_model(find_model(run), budget, constraint, "cpu" if engine == "ray" else device)
        options |= {"engine": engine, "resume": resume, "overwrite": overwrite, **ray}
        explain_to_shards(source, folder, model, shard_rows, **options)
        return
    output.check_file()
    if format_name == "parquet" and (file is None or out_file is None):
        raise ValueError("Parquet output needs --file and --out; add both, or choose another --format")
    found = find_model(run)
    if format_name == "parquet" and file is not None and out_file is not None:
        explain_to_parquet(file, out_file, _load_model(found, budget, constraint, device), **options)
        return
    given = Source(texts, file, read)
    how: dict[str, Any] = {"batch_size": batch_size, "reasons": reasons}
    with_pytorch = recording.record is not None or per_class
    if not with_pytorch and can_do_without_pytorch(found, bulk=file is not None, device=device):
        exported = _adjusted(load_exported(run, found), budget, constraint)
        write_explanations(exported, given, output, RecordFile(None, None, None), **how)
        return
    model = _load_model(found, budget, constraint, device)
    with recording.open_file(model) as records:
        write_explanations(model, given, output, records, **how)


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
