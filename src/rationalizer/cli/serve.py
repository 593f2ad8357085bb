"""`rationalizer serve`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rationalizer.cli import text_inputs as inputs
from rationalizer.cli.base import command, err
from rationalizer.cli.options import Column, Device, OtherConstraint

if TYPE_CHECKING:
    from fastapi import FastAPI

    from rationalizer.models.sample_texts import SampleText
    from rationalizer.server import ServedModel

OFFERED = 6  # examples of a file
AT_HOME = ("localhost", "127.0.0.1", "::1")


@command(
    "rationalizer serve",
    "rationalizer serve runs/mine",
    "rationalizer serve runs/spectra runs/sfe --port 8080 --dataset mine.csv",
    "RATIONALIZER_TOKEN=$(openssl rand -hex 32) rationalizer serve runs/mine --host 0.0.0.0 --workers 4",
    """curl localhost:8000/explain -H 'Content-Type: application/json' -d '{"text": "A warm film."}'""",
)
def serve(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN]...", help="Trained models, as for `explain`; two to compare. By default the starters."
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: one that is free.")] = 8000,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name that clients call the server by (repeat for more); '*': any.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="RATIONALIZER_TOKEN", help="Answer only those who send this token.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(envvar="RATIONALIZER_TOKEN_FILE", help="A file with the token, as containers get their secrets."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each with its own copy of the models.")] = 1,
    max_batch: Annotated[int, typer.Option(min=1, help="Texts of one request.")] = 64,
    max_characters: Annotated[int, typer.Option(min=1, help="Characters of one text.")] = 10_000,
    max_seconds: Annotated[float, typer.Option(help="Seconds that a request may take to arrive.")] = 30,
    access_log: Annotated[bool, typer.Option("--access-log", help="Print a line a request.")] = False,
    examples: Annotated[
        Path | None, typer.Option(help="A file whose first rows the page offers, instead of the model's own.")
    ] = None,
    dataset: Annotated[
        Path | None, typer.Option(help="A file: the page also shows what is selected in all of it, and the scores.")
    ] = None,
    column: Column = None,
    constraint: OtherConstraint = None,
    device: Device = "cpu",
) -> None:
    """Open a web page and a JSON endpoint for trained models (needs the extra "web")."""
    from rationalizer.server import Quotas, run

    if not runs:
        from rationalizer.hub import STARTERS

        runs = [Path(name) for name in STARTERS]
    if len(runs) > 2:
        raise ValueError(f"the page compares two models, got {len(runs)}; leave {len(runs) - 2} out")
    if token_file is not None:
        if token is not None:
            raise ValueError(f"a token is given twice, by itself and in {token_file}; leave one out")
        token = token_file.read_text(encoding="utf-8").strip()
    quotas = Quotas(items=max_batch, characters=max_characters, seconds=max_seconds)
    options: dict[str, Any] = {"quotas": quotas, "hosts": (host, *(allow_host or ())), "token": token}
    if dataset is not None:
        options |= {"dataset": dataset.name, "views": _views(runs, dataset, column)}

    def tell(address: str) -> None:
        err.print(f"{address} (the endpoint: {address}/docs); Ctrl-C stops it")
        if token is None and host not in AT_HOME:
            err.print("anybody who reaches this machine may ask; --token lets in only those who have it")

    make = partial(_make_app, runs, examples, column, constraint, device, options)
    run(make, host, port, workers=workers, request_timeout=quotas.seconds, access_log=access_log, on_started=tell)


def _views(runs: list[Path], dataset: Path, column: list[str] | None) -> dict[str, str]:
    """What there is to see of each model: made once, before there are several processes."""
    from rationalizer.cli.report_pages import dataset_view
    from rationalizer.server import load_models

    return {
        served.name: dataset_view(served.model, list(inputs.examples_of(dataset, column, served.model)), served.name)
        for served in load_models(runs)
    }


def _make_app(
    runs: list[Path],
    examples: Path | None,
    column: list[str] | None,
    constraints: list[str] | None,
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
        rows = inputs.examples_of(examples, column, models[0].model)
        offered = [sample_text(example) for example in islice(rows, OFFERED)]
    return create_app(models, examples=offered, **options)


def _own_examples(run: Path, served: ServedModel) -> Sequence[SampleText]:
    """Texts to try with a model: a starter's, or those that were kept of its data."""
    from rationalizer.hub import STARTERS, starter

    name = str(run)
    return starter(name).examples if name in STARTERS and not run.exists() else served.model.trained.examples
