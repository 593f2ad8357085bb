"""`rationalizer audit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rationalizer.cli.base import command, out, show_table, use_threads, warn
from rationalizer.cli.options import (
    Aspect,
    DataDir,
    Device,
    OtherBudget,
    OtherConstraint,
    RunArgument,
    TableOptions,
    Threads,
    find_model,
)
from rationalizer.cli.scored_data import find_data, load_trained, read_scored_examples

if TYPE_CHECKING:
    from rationalizer.text import AnyExample

LEAK_FOUND = 1


@command(
    "rationalizer audit runs/mine",
    "rationalizer audit sentiment reviews.csv --report audit.html",
    "rationalizer audit runs/mine --check replaced-words --check positions --json audit.json",
)
def audit(
    run: RunArgument,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[SOURCE]",
            help="The texts to audit, with or without labels; by default the test (or dev) split of the training.",
        ),
    ] = None,
    *,
    split: Annotated[
        str | None, typer.Option(help="train, dev or test; by default test, or dev if there is none.")
    ] = None,
    data_dir: DataDir = None,
    aspect: Aspect = None,
    reading: TableOptions,
    budget: OtherBudget = None,
    constraint: OtherConstraint = None,
    check: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this check; repeat for more. By default all.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=20, help="The largest number of texts; a random sample of more texts.")
    ] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    report: Annotated[Path | None, typer.Option(help="Also write an HTML page to this file.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the results to this file.")] = None,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Test whether a model reads only what it shows. Exit code 1 if a leak is found."""
    use_threads(threads)
    import numpy as np

    from rationalizer.auditing import CHECKS, audit_examples
    from rationalizer.auditing.audit_report import summary
    from rationalizer.auditing.rationalizer_adapter import RationalizerAdapter
    from rationalizer.cli.text_inputs import rows_from_file
    from rationalizer.data import BadRows
    from rationalizer.model import Rationalizer
    from rationalizer.models.atomic_files import write_bytes, write_json
    from rationalizer.progress import show_progress
    from rationalizer.training import read_source

    for name in check or ():
        CHECKS[name]  # an unknown name is an error before anything is loaded
    folder = find_model(run)
    trained = load_trained(folder, budget, constraint, device)
    stored = read_source(folder)
    data = find_data(run, stored, source, reading, data_dir, aspect)
    rationalizer = Rationalizer.from_trained(trained)
    model = RationalizerAdapter(rationalizer, run.resolve().name)
    examples: Sequence[AnyExample]
    if data.is_file and data != stored:  # its rows need no labels
        if split is not None:
            raise ValueError(f"all rows of the file {data.source} are audited; omit --split")
        bad = BadRows(skip=data.options.skip_bad)
        read = rows_from_file(Path(data.source), data.options, rationalizer, bad)
        split, examples = "all rows", [row.example for row in read if row.example is not None]
        warn(bad.messages())
    else:
        split, examples, _ = read_scored_examples(trained, data, split, whole_file=False)
    train = None
    if stored is not None and split != "train":
        try:
            train = stored.load(trained.encoder.rule, on_progress=show_progress).train
        except (OSError, ValueError):
            out.print(f"The training data {stored.name} cannot be read here: overlap is not checked.", markup=False)
    if len(examples) > limit:
        chosen = np.random.default_rng(seed).permutation(len(examples))[:limit]
        examples = [examples[k] for k in sorted(chosen.tolist())]
    found = audit_examples(model, examples, train, checks=check, seed=seed)
    found = replace(found, facts={"data": f"{data.name}, {split}", **found.facts})
    for name, fact in found.facts.items():
        out.print(f"{name}: {fact}", markup=False)
    colours = {"pass": "[green]pass[/]", "leak": "[bold red]leak[/]", "not applicable": "[dim]not applicable[/]"}
    rows = [[colours[one.verdict], name, one.shown, one.sentence] for name, one in found.results.items()]
    show_table(["verdict", "check", "measured", "finding"], rows)
    out.print(summary(found), style="green" if found.passed else "bold red")
    if json_file is not None:
        write_json(json_file, found.to_json())
    if report is not None:
        write_bytes(report, found.to_html().encode())
        out.print(f"Report: {report}", markup=False)
    if not found.passed:
        raise typer.Exit(LEAK_FOUND)
