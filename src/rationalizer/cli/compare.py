"""`rationalizer compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rationalizer.cli.base import command, err, out, show_table
from rationalizer.cli.options import (
    METHODS,
    Column,
    Device,
    Encoder,
    Precision,
    Task,
    Vectors,
    collect_settings,
    require_folder,
)
from rationalizer.progress import show_progress
from rationalizer.suggestions import did_you_mean

if TYPE_CHECKING:
    from rationalizer.compare import Comparison
    from rationalizer.compare.engines import Engine
    from rationalizer.compare.single_run import RunOutcome

ENGINES = ("local", "ray", "slurm")
LEFT_OUT = ("token_f1_paper", "iou_f1", "auprc")  # the files have them
HEADLINE = ("macro_f1", "mse", "size", "alignments")


@command(
    "rationalizer compare reviews --methods spectra,sfe,full-text --seeds 0,1,2 --workers 2",
    "rationalizer compare mine.csv --methods all --budgets 5,10,20 --out study",
    "rationalizer compare reviews --engine slurm --slurm partition=gpu --slurm gres=gpu:1 --slurm time=2:00:00",
    "rationalizer compare pairs --methods at-most-one,budget,budget:not-faithful,softmax:not-faithful",
    stopped="Stopped. What is finished stays; the same command goes on from here.",
)
def compare(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE", help="One or several, as of train.")],
    methods: Annotated[str, typer.Option(help=f"all, or names such as spectra,sfe,sfe:contiguous. {METHODS}")] = "all",
    seeds: Annotated[str, typer.Option(help="Separated by commas.")] = "0,1,2",
    budgets: Annotated[str | None, typer.Option(help="A sweep in percent, as 2,5,10,15,20.")] = None,
    out_dir: Annotated[Path, typer.Option("--out", help="Where to keep runs and tables.")] = Path("study"),
    workers: Annotated[
        int | None, typer.Option(min=1, help="Trainings at once; by default 1, on a cluster as many as it takes.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each training.")] = 1,
    split: Annotated[str | None, typer.Option(help="test or dev; by default test, or dev if none.")] = None,
    note: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]NOTE", help="What the data is, if not what its folder or size says."),
    ] = None,
    data_dir: Annotated[list[str] | None, typer.Option(metavar="[NAME=]DIR", help="A dataset's local copy.")] = None,
    aspect: Annotated[list[str] | None, typer.Option(metavar="[NAME=]ASPECT", help="What the label is about.")] = None,
    column: Column = None,
    task: Task = None,
    encoder: Encoder = None,
    embeddings: Vectors = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="[METHOD.]KEY=VALUE", help="Any setting (see rationalizer settings)."),
    ] = None,
    device: Device = "auto",
    precision: Precision = None,
    engine: Annotated[str, typer.Option(help="Where the runs run: local, ray or slurm.")] = "local",
    address: Annotated[str | None, typer.Option(help="ray: a running cluster, as auto or ray://head:10001.")] = None,
    gpus: Annotated[float | None, typer.Option(min=0, help="ray: GPUs of each run; 0.25 is a quarter of one.")] = None,
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="slurm: an option of sbatch, as partition=gpu, gres=gpu:1, time=2:00:00."
        ),
    ] = None,
) -> None:
    """Train methods × seeds (× budgets) and write tables; go on where an earlier call stopped."""
    from rationalizer import compare as study
    from rationalizer.compare.single_run import finished_record
    from rationalizer.data import DataSource
    from rationalizer.models.devices import check_device

    require_folder(out_dir)
    runs_on = _engine(engine, workers, address, gpus, slurm, out_dir)
    if engine == "local":
        check_device(device)
    columns = study.parse_assignments(column, "--column")
    dirs, aspects = (
        study.values_by_source(data_dir, sources, "--data-dir"),
        study.values_by_source(aspect, sources, "--aspect"),
    )
    places = [
        DataSource.resolve(source, dirs.get(source), aspects.get(source), columns, task=task) for source in sources
    ]
    notes = study.values_by_source(note, sources, "--note", every=True)
    if split not in (None, "dev", "test"):
        raise ValueError(f"--split is dev or test, got {split!r}")
    kinds = {place.pairs for place in places}
    if len(kinds) > 1:
        raise ValueError("single texts and pairs of texts have different methods; compare them in two calls")
    runs = study.plan_runs(
        places,
        study.parse_methods(methods, *kinds),
        study.parse_seeds(seeds),
        study.parse_budgets(budgets) if budgets is not None else None,
        collect_settings(settings, encoder=encoder, embeddings=embeddings),
        out_dir,
    )
    out.print(f"{len(runs)} runs in {out_dir}; those that are finished are not run again")

    with show_progress("Training", sum(finished_record(run) is None for run in runs)) as advance:

        def ended(count: int, outcome: RunOutcome) -> None:
            out.print(f"{count}: {outcome.run.title}: {_headline(outcome)}", markup=False)
            advance(1)

        done = study.compare(
            runs,
            out_dir,
            engine=runs_on,
            threads=threads,
            device=device,
            precision=precision,
            split=split,
            notes={place.name: notes[source] for place, source in zip(places, sources, strict=True) if source in notes},
            on_run_end=ended,
        )
    _print_comparison(done)
    if done.failed:
        raise typer.Exit(1)


def _engine(
    name: str, workers: int | None, address: str | None, gpus: float | None, slurm: list[str] | None, out_dir: Path
) -> Engine | None:
    """None: this process."""
    from rationalizer.compare import parse_assignments
    from rationalizer.compare.engines import LocalEngine, RayEngine, SlurmEngine

    if name not in ENGINES:
        raise ValueError(f"there is no engine {name!r}; {did_you_mean(name, ENGINES)}")
    for option, given, owner in (("--address", address, "ray"), ("--gpus", gpus, "ray"), ("--slurm", slurm, "slurm")):
        if given is not None and name != owner:
            raise ValueError(f"{option} is for --engine {owner}; leave it out, or write --engine {owner}")
    if name == "ray":
        return RayEngine(address, gpus or 0, workers)
    if name == "slurm":
        return SlurmEngine(out_dir / "slurm", parse_assignments(slurm, "--slurm"), workers)
    return LocalEngine(workers) if workers and workers > 1 else None


def _headline(outcome: RunOutcome) -> str:
    from rationalizer.metrics import METRICS

    if outcome.record is None:
        return f"failed: {outcome.error}"
    record = outcome.record
    split = "test" if "test" in record["scores"] else "dev"
    scores = record["scores"].get(split, {})
    named = [
        f"{METRICS[name].description} {METRICS[name].format_value(scores[name])}" for name in HEADLINE if name in scores
    ]
    return ", ".join([*named, f"{record['epochs']} epochs, {record['seconds']:.0f} s"])


def _print_comparison(done: Comparison) -> None:
    from rationalizer.compare.result_tables import COLUMNS, result_table

    shown = [metric for metric in COLUMNS if metric.name not in LEFT_OUT]
    for dataset in dict.fromkeys(row.dataset for row in done.rows):
        rows = [row for row in done.rows if row.dataset == dataset]
        show_table(*result_table(rows, shown), title=rows[0].data)
    for outcome in done.failed:
        err.print(f"failed: {outcome.run.title}: {outcome.error}", style="red", markup=False)
    out.print(f"{done.trained} trained now; {', '.join(map(str, done.files))}", markup=False)
