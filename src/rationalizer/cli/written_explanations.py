"""Explain texts from the command line, a file or standard input, and write the explanations row by row."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rationalizer.cli import text_inputs as inputs
from rationalizer.cli.base import err, out, warn
from rationalizer.cli.output_formats import DRAWN, RESUMABLE, ExplainedRow, encodable, make_format
from rationalizer.cli.record_output import RecordFile
from rationalizer.cli.resumed_output import PartialOutput
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.data import InputRow, ReadOptions
    from rationalizer.export import ExportedModel
    from rationalizer.model import Rationalizer


@dataclass(frozen=True)
class Source:
    """Texts to explain: the rows of a file, or `texts`; from standard input without either, or for "-"."""

    texts: Sequence[str] | None
    file: Path | None
    read: ReadOptions


@dataclass(frozen=True)
class Output:
    """What is written, and where.

    Args:
        file: None for standard output.
        format: the name of the format.
        title: of a page.
        resume: whether to continue an existing file.
        overwrite: whether to replace an existing file.
        escape_formulas: whether to put an apostrophe before CSV cells that a spreadsheet would read as formulas.
        abstain: warn of labels with a lower probability.
        per_class: whether to show what speaks for each class.
    """

    file: Path | None
    format: str
    title: str
    resume: bool
    overwrite: bool
    escape_formulas: bool
    abstain: float | None
    per_class: bool

    def check_format(self) -> None:
        """Raise ValueError for options that the format does not have."""
        if self.escape_formulas and self.format != "csv":
            raise ValueError(
                f"--escape-formulas is for CSV output, not for {self.format}; omit it, or add --format csv"
            )
        if self.abstain is not None and self.format == "parquet":
            raise ValueError("--abstain is not for Parquet output; omit it, and compare the column `probability`")
        if self.per_class and self.format == "parquet":
            raise ValueError("--per-class is not for Parquet output; choose .jsonl or .csv, or omit it")

    def check_file(self) -> None:
        """Raise an error if the output cannot be written to the file."""
        if self.file is None:
            if self.resume or self.overwrite:
                raise ValueError(f"--{'resume' if self.resume else 'overwrite'} needs --out; add the file to write to")
            if self.format == "png":
                raise ValueError("a PNG needs --out; add the file to write to")
            return
        if self.resume and self.format not in RESUMABLE:
            raise ValueError(f"{self.format} output cannot be resumed, only {' and '.join(RESUMABLE)}; omit --resume")
        if self.file.is_dir():
            raise IsADirectoryError(f"{self.file} is a folder; choose a file in it")
        if self.file.exists() and not (self.resume or self.overwrite):
            remedy = "--resume, --overwrite" if self.format in RESUMABLE else "--overwrite"
            raise FileExistsError(f"{self.file} exists already; use {remedy} or another --out")


def write_explanations(
    model: Rationalizer | ExportedModel,
    source: Source,
    output: Output,
    records: RecordFile,
    *,
    batch_size: int,
    reasons: bool | None,
) -> None:
    """Explain round by round and write each round at once."""
    from rationalizer.data import BadRows
    from rationalizer.data.read_options import BATCHES_PER_ROUND
    from rationalizer.data.table_files import columns_of
    from rationalizer.prediction_warnings import WarningSummary, abstain

    file, read, texts = source.file, source.read, source.texts
    out_file, per_class, least = output.file, output.per_class, output.abstain
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
        columns = columns_of(file, read.dialect) if output.format == "csv" else ()
    elif from_stdin:
        rows = inputs.with_first_read(inputs.rows_from_lines(_open_stdin(), model, bad))
    else:
        rows = iter(inputs.rows_from_arguments(texts or (), model, bad))
    to_terminal = out_file is None and out.is_terminal
    form = make_format(
        output.format,
        results={**model.result_form, "separate": per_class or model.result_form.get("separate", False)},
        columns=columns,
        table=file is not None,
        title=output.title,
        colour=to_terminal and not out.no_color,
        width=out.width if to_terminal else None,
        escape=output.escape_formulas,
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
    if output.resume and out_file is not None and out_file.exists():
        start, rows = PartialOutput(out_file, output.format, form).skip_finished(rows, explain_rows, round_size)
    shown = (out_file is not None or _stdout_is_file()) and not interactive
    total = inputs.count_rows(file, read) - start if shown and file is not None else None
    # A file is explained in rounds of one size, so that it can be resumed; other programs and people get their answers
    # without waiting for a full round.
    batches = (inputs.in_available_batches if from_stdin else inputs.in_batches)(rows, round_size)
    counts, summary, number = Counter[bool](), WarningSummary(), start
    bar = show_progress("Explaining", total, shown=shown)
    with _open_output(out_file, output.format, append=output.resume) as write, bar as advance:
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
    shown_already = number == 1 and output.format in DRAWN
    warn([*bad.messages(), *([] if shown_already else str(summary).splitlines())])
    if out_file is not None:
        empty = counts[False] - len(bad)
        unchanged = f", {empty} without a text copied unchanged" if empty > 0 else ""
        existing = f", {start} existed already" if start else ""
        err.print(f"{out_file}: {counts[True]} explained{unchanged}{existing}", markup=False)


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
