"""`rationalizer serve`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rationalizer.cli import text_inputs as inputs
from rationalizer.cli.base import command, err, use_threads
from rationalizer.cli.options import Device, OtherConstraint, TableOptions, Threads

if TYPE_CHECKING:
    from fastapi import FastAPI

    from rationalizer.data import ReadOptions
    from rationalizer.export import ExportedModel
    from rationalizer.model import Rationalizer
    from rationalizer.models.sample_texts import SampleText
    from rationalizer.server import ServedModel
    from rationalizer.server.annotation_task import AnnotationTask

OFFERED = 6  # rows of a file that the page offers as examples
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


@command(
    "rationalizer serve",
    "rationalizer serve runs/mine",
    "rationalizer serve runs/mine --corrections mine.annotated.jsonl",
    "rationalizer serve runs/spectra runs/sfe --port 8080 --dataset mine.csv",
    "RATIONALIZER_TOKEN=$(openssl rand -hex 32) rationalizer serve runs/mine --host 0.0.0.0 --workers 4",
    """curl localhost:8000/explain -H 'Content-Type: application/json' -d '{"text": "A warm film."}'""",
)
def serve(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN]...",
            help="One trained model, or two to compare, as for `explain`; by default `sentiment` and `nli`.",
        ),
    ] = None,
    *,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 accepts other machines.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free port.")] = 8000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A host name that clients use for the server (repeat for more); '*' for any."),
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="RATIONALIZER_TOKEN", help="Answer only requests with this token.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            envvar="RATIONALIZER_TOKEN_FILE", help="A file that contains the token, such as a container's secret."
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes, each with its own copy of the models.")] = 1,
    max_batch: Annotated[int, typer.Option(min=1, help="Largest number of texts in a request.")] = 64,
    max_characters: Annotated[int, typer.Option(min=1, help="Largest number of characters in a text.")] = 10_000,
    max_seconds: Annotated[float, typer.Option(help="Longest time for a request to arrive, in seconds.")] = 30,
    access_log: Annotated[bool, typer.Option("--access-log", help="Print a line for each request.")] = False,
    examples: Annotated[
        Path | None,
        typer.Option(help="A file whose first rows the page offers as examples, instead of the model's own."),
    ] = None,
    dataset: Annotated[
        Path | None, typer.Option(help="A file; the page also shows the rationales in the whole file, and the scores.")
    ] = None,
    reading: TableOptions,
    constraint: OtherConstraint = None,
    corrections: Annotated[
        Path | None,
        typer.Option(help='An annotation file (see `annotate`) for texts that people correct; adds "Correct this".'),
    ] = None,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Serve a web page and a JSON API for trained models (needs the extra "web")."""
    use_threads(threads)
    from rationalizer.server import Quotas, run

    if not runs:
        runs = [Path("sentiment"), Path("nli")]
    if len(runs) > 2:
        raise ValueError(f"the page shows at most two models, got {len(runs)}; remove {len(runs) - 2}")
    if token_file is not None:
        if token is not None:
            raise ValueError(f"the token is given twice, directly and in {token_file}; remove one")
        token = token_file.read_text(encoding="utf-8").strip()
    quotas = Quotas(items=max_batch, characters=max_characters, seconds=max_seconds)
    options: dict[str, Any] = {"quotas": quotas, "hosts": (host, *(allow_host or ())), "token": token}
    if dataset is not None:
        options |= {"dataset": dataset.name, "views": _dataset_views(runs, dataset, reading.read_options(), device)}

    def on_started(address: str) -> None:
        err.print(f"Serving on {address} (API: {address}/docs); stop with Ctrl-C")
        if token is None and host not in LOCAL_HOSTS:
            err.print("anyone who can reach this machine can use the models; restrict access with --token")

    make = partial(_make_app, runs, examples, reading.read_options(), constraint, corrections, device, options)
    run(make, host, port, workers=workers, request_timeout=quotas.seconds, access_log=access_log, on_started=on_started)


def _dataset_views(runs: list[Path], dataset: Path, options: ReadOptions, device: str) -> dict[str, str]:
    """The page's view of the dataset for each model: computed once, before the worker processes start."""
    from rationalizer.cli.evaluation_views import dataset_view
    from rationalizer.export import ExportedModel
    from rationalizer.server import load_models

    views = {}
    for served in load_models(runs, device):
        if isinstance(served.model, ExportedModel):
            raise ValueError(
                f"--dataset needs the model that {served.name} was exported from; omit it, or serve that one"
            )
        examples = list(inputs.examples_in_file(dataset, options, served.model))
        views[served.name] = dataset_view(served.model, examples, served.name)
    return views


def _make_app(
    runs: list[Path],
    examples: Path | None,
    read_options: ReadOptions,
    constraints: list[str] | None,
    corrections: Path | None,
    device: str,
    options: dict[str, Any],
) -> FastAPI:
    from rationalizer.models.sample_texts import sample_text
    from rationalizer.server import create_app, load_models

    models = load_models(runs, device)
    if constraints:
        for served in models:
            served.model.constraints = constraints
    if examples is None:
        offered = [text for run, served in zip(runs, models, strict=True) for text in _own_examples(run, served)]
        offered = list(dict.fromkeys(offered))
    else:
        rows = inputs.examples_in_file(examples, read_options, models[0].model)
        offered = [sample_text(example) for example in islice(rows, OFFERED)]
    task = None if corrections is None else _corrections_task(corrections, models[0].model)
    return create_app(models, examples=offered, corrections=task, **options)


def _corrections_task(path: Path, model: Rationalizer | ExportedModel) -> AnnotationTask:
    from rationalizer.inference import open_corrections
    from rationalizer.model import Rationalizer
    from rationalizer.server.annotation_task import AnnotationTask

    if not isinstance(model, Rationalizer):
        raise ValueError("--corrections needs a trained model, not an exported one")
    return AnnotationTask(open_corrections(path, model.trained), model=model)


def _own_examples(run: Path, served: ServedModel) -> Sequence[SampleText]:
    """Texts to try with a model: those of a starter model, or those saved from its training data."""
    from rationalizer.hub import STARTERS, starter

    name = str(run)
    return starter(name).examples if name in STARTERS and not run.exists() else served.traits.examples
