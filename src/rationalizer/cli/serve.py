"""`rationalizer serve`."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from rationalizer.cli import inputs, outputs
from rationalizer.cli.base import command, err
from rationalizer.cli.options import Column

OFFERED = 6  # examples on the page


@command(
    "rationalizer serve runs/mine",
    "rationalizer serve runs/spectra runs/sfe --port 8080 --examples mine.csv",
    """curl localhost:8000/explain -H 'Content-Type: application/json' -d '{"text": "A warm film."}'""",
)
def serve(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of trained models; two to compare.")],
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: one that is free.")] = 8000,
    max_batch: Annotated[int, typer.Option(min=1, help="Texts of one request.")] = 64,
    max_characters: Annotated[int, typer.Option(min=1, help="Characters of one text.")] = 10_000,
    examples: Annotated[Path | None, typer.Option(help="A file whose first rows the page offers.")] = None,
    column: Column = None,
) -> None:
    """Open a web page and a JSON endpoint for trained models (needs the extra "web")."""
    from rationalizer.app import Limits, create_app, load_models, run

    if len(runs) > 2:
        raise ValueError(f"the page compares two models, got {len(runs)}; leave {len(runs) - 2} out")
    limits = Limits(items=max_batch, characters=max_characters)
    models = load_models(runs)
    model = models[0].model
    found = inputs.embedded(model.pairs) if examples is None else inputs.from_file(examples, column, model)
    offered: list[Any] = [outputs.key_of_example(example) for example in islice(found, OFFERED)]
    app = create_app(models, limits=limits, examples=offered if model.pairs else [text for (text,) in offered])
    run(app, host, port, lambda address: err.print(f"{address} (the endpoint: {address}/docs); Ctrl-C stops it"))
