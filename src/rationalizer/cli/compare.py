"""`rationalizer compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rationalizer.cli.base import command, err, out, show_table
from rationalizer.cli.options import (
    METHODS,
    Device,
    Encoder,
    Precision,
    SourceOptions,
    Vectors,
    check_engine_options,
    check_output_folder,
    collect_settings,
    resolve_source,
)
from rationalizer.plurals import count_of
from rationalizer.progress import show_progress
from rationalizer.suggestions import did_you_mean

if TYPE_CHECKING:
    from rationalizer.compare import Comparison
    from rationalizer.compare.engines import Engine
    from rationalizer.compare.single_run import RunOutcome

ENGINES = ("local", "ray", "slurm")
OMITTED = ("token_f1_paper", "iou_f1", "auprc")  # from the printed tables; the files have them
HEADLINE = ("macro_f1", "mse", "size", "alignments")


@command(
    "rationalizer compare reviews --methods spectra,sfe,full-text --seeds 0,1,2 --workers 2",
    "rationalizer compare reviews --methods spectra,sparsemax --objectives joint,full-text,mcd,dr",
    "rationalizer compare mine.csv --methods all --budgets 5,10,20 --out study",
    "rationalizer compare reviews --engine slurm --slurm partition=gpu --slurm gres=gpu:1 --slurm time=2:00:00",
    "rationalizer compare pairs --methods at-most-one,budget,budget:not-faithful,softmax:not-faithful",
    stopped="Stopped. Finished runs are kept; the same command continues.",
)
def compare(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE", help="One or several sources, as for train.")],
    *,
    methods: Annotated[str, typer.Option(help=f"all, or names such as spectra,sfe,sfe:contiguous. {METHODS}")] = "all",
    objectives: Annotated[
        str | None,
        typer.Option(help="all, or names such as joint,full-text,mcd; by default that of the settings."),
    ] = None,
    seeds: Annotated[str, typer.Option(help="Random seeds, separated by commas.")] = "0,1,2",
    budgets: Annotated[str | None, typer.Option(help="Several budgets in percent, such as 2,5,10,15,20.")] = None,
    out_dir: Annotated[Path, typer.Option("--out", help="Folder of the runs and tables.")] = Path("study"),
    workers: Annotated[
        int | None, typer.Option(min=1, help="Runs at the same time; 1 by default, on a cluster as many as it accepts.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads of each run.")] = 1,
    split: Annotated[str | None, typer.Option(help="test or dev; by default test, or dev if there is none.")] = None,
    note: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]NOTE", help="A remark on the data for the tables; by default from its folder or size."
        ),
    ] = None,
    data_dir: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]DIR", help="A folder with a local copy of the dataset.")
    ] = None,
    aspect: Annotated[list[str] | None, typer.Option(metavar="[NAME=]ASPECT", help="What the label is about.")] = None,
    reading: SourceOptions,
    encoder: Encoder = None,
    embeddings: Vectors = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="[METHOD.]KEY=VALUE",
            help="Any setting, of all runs or of one method or objective; `rationalizer settings METHOD` lists them.",
        ),
    ] = None,
    device: Device = "auto",
    precision: Precision = None,
    engine: Annotated[str, typer.Option(help="Where to run: local, ray or slurm.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="ray: address of a running cluster, such as auto or ray://head:10001.")
    ] = None,
    gpus: Annotated[float | None, typer.Option(min=0, help="ray: GPUs per run; 0.25 is a quarter of one.")] = None,
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="slurm: an option of sbatch, such as partition=gpu, gres=gpu:1, time=2:00:00."
        ),
    ] = None,
) -> None:
    """Train methods × seeds (× objectives × budgets) and write result tables; finished runs are reused."""
    from rationalizer import compare as comparison
    from rationalizer.compare.single_run import finished_record
    from rationalizer.models.devices import check_device

    check_output_folder(out_dir)
    chosen_engine = _make_engine(engine, workers, address, gpus, slurm, out_dir)
    if engine == "local":
        check_device(device)
    folders = comparison.values_by_source(data_dir, sources, "--data-dir")
    aspects = comparison.values_by_source(aspect, sources, "--aspect")
    notes = comparison.values_by_source(note, sources, "--note", for_all=True)
    data = {source: resolve_source(source, reading, folders.get(source), aspects.get(source)) for source in sources}
    if split not in (None, "dev", "test"):
        raise ValueError(f"--split must be dev or test, got {split!r}")
    kinds = {each.pairs for each in data.values()}
    if len(kinds) > 1:
        raise ValueError("single texts and pairs of texts have different methods; compare them in two calls")
    variants = comparison.parse_methods(methods, *kinds)
    left_out: list[str] = []
    if objectives is not None:
        variants, left_out = comparison.combine_objectives(variants, comparison.parse_objectives(objectives))
    runs = comparison.plan_runs(
        list(data.values()),
        variants,
        comparison.parse_seeds(seeds),
        comparison.parse_budgets(budgets) if budgets is not None else None,
        collect_settings(settings, encoder=encoder, embeddings=embeddings),
        out_dir,
    )
    for problem in left_out:
        out.print(f"left out: {problem.partition(';')[0]}", markup=False)
    out.print(f"{count_of(len(runs), 'run')} in {out_dir}; finished ones are reused")

    with show_progress("Training", sum(finished_record(run) is None for run in runs)) as advance:

        def on_run_end(count: int, outcome: RunOutcome) -> None:
            out.print(f"{count}: {outcome.run.title}: {_headline(outcome)}", markup=False)
            advance(1)

        result = comparison.compare(
            runs,
            out_dir,
            engine=chosen_engine,
            threads=threads,
            device=device,
            precision=precision,
            split=split,
            notes={each.name: notes[source] for source, each in data.items() if source in notes},
            on_run_end=on_run_end,
        )
    _print_comparison(result)
    if result.failed:
        raise typer.Exit(1)


def _make_engine(
    name: str, workers: int | None, address: str | None, gpus: float | None, slurm: list[str] | None, out_dir: Path
) -> Engine | None:
    """None to run in this process."""
    from rationalizer.compare import parse_assignments
    from rationalizer.compare.engines import LocalEngine, RayEngine, SlurmEngine

    if name not in ENGINES:
        raise ValueError(f"unknown engine {name!r}; {did_you_mean(name, ENGINES)}")
    check_engine_options(name, "ray", address=address, gpus=gpus)
    check_engine_options(name, "slurm", slurm=slurm)
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
    return ", ".join([*named, f"{count_of(record['epochs'], 'epoch')}, {record['seconds']:.0f} s"])


def _print_comparison(result: Comparison) -> None:
    from rationalizer.compare.result_tables import COLUMNS, result_table

    shown = [metric for metric in COLUMNS if metric.name not in OMITTED]
    for dataset in dict.fromkeys(row.dataset for row in result.rows):
        rows = [row for row in result.rows if row.dataset == dataset]
        show_table(*result_table(rows, shown), title=rows[0].data)
    for outcome in result.failed:
        err.print(f"failed: {outcome.run.title}: {outcome.error}", style="red", markup=False)
    out.print(
        f"{count_of(result.trained, 'run')} trained now; files: {', '.join(map(str, result.files))}", markup=False
    )
