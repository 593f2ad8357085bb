"""`rationalizer explain`."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rationalizer.cli import inputs, outputs
from rationalizer.cli.base import command, err, out
from rationalizer.cli.options import RunArgument, find_model
from rationalizer.cli.progress import progress

if TYPE_CHECKING:
    from rationalizer.rationalizer import Rationalizer
    from rationalizer.text import AnyExample


@command(
    'rationalizer explain sentiment "The room was spotless but the staff was rude."',
    'rationalizer explain runs/mine "A warm, funny film."',
    'rationalizer explain runs/pairs "A man plays a guitar." "A man makes music."',
    "cat reviews.txt | rationalizer explain runs/mine --format jsonl > explained.jsonl",
    "rationalizer explain runs/mine --file new.csv --column text=review --out explained.csv",
    "rationalizer explain runs/mine --file new.csv --column text=review --out explained.csv --resume",
    stopped="Stopped. What was written as JSONL or CSV stays; the same command with --resume goes on from here.",
)
def explain(
    run: RunArgument,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts, or a premise and a hypothesis; by default the lines of stdin."),
    ] = None,
    file: Annotated[Path | None, typer.Option(help="A table of texts or pairs: .csv, .tsv, .jsonl, .parquet.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=NAME", help="A column's name, as text=review; label= leaves the labels out."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="terminal, jsonl, csv, html or svg; by default as --out ends (.txt: terminal)."),
    ] = None,
    out_file: Annotated[Path | None, typer.Option("--out", help="Write to this file.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the .jsonl or .csv in --out.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file in --out.")] = False,
    budget: Annotated[str | None, typer.Option(help="If not the one of the training: 20%, 0.2, or 5 words.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts in memory at once.")] = 128,
    device: Annotated[str, typer.Option(help="cpu, cuda, ...")] = "cpu",
) -> None:
    """Label texts and show the words that the labels rest on. Reads and writes bit by bit, so size is no matter."""
    chosen = outputs.choose_format(form, out_file)
    _check_out(out_file, chosen, resume, overwrite)
    if file is not None and texts:
        raise ValueError("texts come from --file or from the command line, not from both")
    model = _model(find_model(run), budget, device)
    asking = sys.stdin.isatty() and file is None and texts in (None, [], ["-"])
    if asking:
        err.print(f"One {'pair a line (premise, tab, hypothesis)' if model.pairs else 'text a line'}; Ctrl-D ends.")
    shape = outputs.layout(
        chosen,
        pairs=model.pairs,
        title=f"Explained by {run.resolve().name}",
        colour=out_file is None and out.is_terminal and not out.no_color,
        width=out.width if out_file is None and out.is_terminal else None,
    )
    examples = inputs.begun(_examples(model, texts, file, column))
    start = 0
    if resume and out_file is not None and out_file.exists():
        start, examples = _skip(model, shape, examples, outputs.Written(out_file, chosen, shape.opening), batch_size)
    shown = (out_file is not None or _is_sent_to_a_file()) and not asking
    total = inputs.count_rows(file) - start if shown and file is not None and err.is_terminal else None
    with _destination(out_file, chosen, append=resume) as write, progress("Explaining", total, shown=shown) as advance:
        if not start:
            write(shape.opening)
        number = start
        for batch in inputs.in_batches(examples, 1 if asking else batch_size):
            explained = model.explain_examples([replace(example, label=None) for example in batch])
            rows = zip(explained, batch, strict=True)
            records = [shape.record(number + k, one, model.label_of(given)) for k, (one, given) in enumerate(rows)]
            write("".join(records))
            number += len(batch)
            advance(len(batch))
        write(shape.closing)
    if out_file is not None:
        err.print(f"{out_file}: {number - start} explained{f', {start} were there' if start else ''}", markup=False)


def _check_out(out_file: Path | None, form: str, resume: bool, overwrite: bool) -> None:
    if out_file is None:
        if resume or overwrite:
            raise ValueError(f"--{'resume' if resume else 'overwrite'} needs --out, the file to write to")
        return
    if resume and overwrite:
        raise ValueError("--resume keeps what --overwrite replaces; leave one out")
    if resume and form not in outputs.RESUMABLE:
        raise ValueError(f"only {' and '.join(outputs.RESUMABLE)} can be resumed, not {form}; leave --resume out")
    if out_file.is_dir():
        raise IsADirectoryError(f"{out_file} is a folder; name a file in it")
    if out_file.exists() and not (resume or overwrite):
        remedy = "go on with it by --resume, replace it by --overwrite" if form in outputs.RESUMABLE else "--overwrite"
        raise FileExistsError(f"{out_file} already exists; {remedy}, or give another --out")


def _model(run: Path, budget: str | None, device: str) -> Rationalizer:
    from rationalizer.rationalizer import Rationalizer

    model = Rationalizer.load(run, _device(device))
    if budget is not None:
        model.budget = budget
    return model


def _is_sent_to_a_file() -> bool:
    """Whether a bar on the terminal would disturb nobody: no text on it, and no other program that reads the text."""
    return err.is_terminal and stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)


def _device(name: str) -> str:
    import torch

    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (number and not number.isdecimal()):
        raise ValueError(f"there is no device {name!r}; known are cpu, cuda, cuda:1 and so on, mps")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise ValueError(f"PyTorch finds {torch.cuda.device_count()} CUDA devices, but --device is {name}; use cpu")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ValueError("PyTorch finds no Apple GPU, but --device is mps; use cpu")
    return name


def _examples(
    model: Rationalizer, texts: Sequence[str] | None, file: Path | None, column: Sequence[str] | None
) -> Iterator[AnyExample]:
    if file is not None:
        return inputs.from_file(file, column, model)
    if column:
        raise ValueError("--column names columns of a --file; give one")
    if texts and list(texts) != ["-"]:
        return iter(inputs.from_arguments(texts, model))
    return inputs.from_lines(sys.stdin.buffer, model)


def _skip(
    model: Rationalizer,
    shape: outputs.Layout,
    examples: Iterator[AnyExample],
    written: outputs.Written,
    batch_size: int,
) -> tuple[int, Iterator[AnyExample]]:
    """How many examples the file has already, and those that are left to explain.

    Of the file whole batches are kept: the last digits of a number depend on the texts that it was computed with,
    and the file shall become what it would have been. The first batch is explained again, to see that the same model
    at the same budget wrote it.
    """
    kept, end = 0, 0
    begun: list[AnyExample] = []
    said: list[tuple[str, str]] = []
    for count, (record, record_end) in enumerate(written.records(), 1):
        example = next(examples, None)
        if example is None:
            raise ValueError(
                f"{written.path} has more records than there are texts; give another --out, or --overwrite"
            )
        if outputs.key_of_example(example) != outputs.key_of(record):
            raise ValueError(
                f"record {count} of {written.path} is of another text than number {count} of the input; "
                "give the input it was written from, another --out, or --overwrite"
            )
        begun.append(example)
        if kept == 0:
            said.append(outputs.said_of(record))
        if len(begun) == batch_size:
            if kept == 0:
                _require_same_answers(model, shape, written, begun, said)
            kept, end, begun = count, record_end, []
    written.cut_after(end)
    return kept, chain(begun, examples)


def _require_same_answers(
    model: Rationalizer,
    shape: outputs.Layout,
    written: outputs.Written,
    examples: Sequence[AnyExample],
    said: Sequence[tuple[str, str]],
) -> None:
    """An error where the file's first records are not what this model says at this budget."""
    explained = model.explain_examples([replace(example, label=None) for example in examples])
    for number, (one, before) in enumerate(zip(explained, said, strict=True), 1):
        if (
            outputs.said_of(written.parsed(number, outputs.writable(shape.record(number, one, None)).encode()))
            != before
        ):
            raise ValueError(
                f"record {number} of {written.path} says something else than this model at this budget; give the model "
                "and the --budget that it was written with, another --out, or --overwrite"
            )


@contextmanager
def _destination(path: Path | None, form: str, *, append: bool) -> Iterator[Callable[[str], None]]:
    """Where text goes: lines that can be continued into the file itself, documents in its place when they are whole."""
    from rationalizer.learn.storage import replacing

    if path is None:

        def write(text: str) -> None:
            sys.stdout.write(outputs.writable(text))
            sys.stdout.flush()

        yield write
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab" if append else "wb") if form in outputs.RESUMABLE else replacing(path) as file:

        def write_out(text: str) -> None:
            file.write(outputs.writable(text).encode())
            file.flush()

        yield write_out
