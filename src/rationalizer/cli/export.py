"""`rationalizer export`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from rationalizer.cli.base import command, err
from rationalizer.cli.options import describe_size, find_model, folder_size


class Target(StrEnum):
    ONNX = "onnx"
    WEB = "web"


@command(
    "rationalizer export sentiment exported/ --to onnx",
    "rationalizer export runs/minilm exported/ --to onnx --weights 8bit",
    "rationalizer export runs/mine exported/ --to onnx --words 20000",
    "rationalizer export sentiment nli site/ --to web",
)
def export(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="A trained model: its folder, a starter model (see `models`), or org/name of the Hugging Face Hub; "
            "with --to web one or more.",
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write; empty, or an earlier export.")],
    *,
    to: Annotated[
        Target, typer.Option(help="onnx: for Python without PyTorch; web: a page for browsers.")
    ] = Target.ONNX,
    weights: Annotated[
        str, typer.Option(help="float32, or 8bit: smaller files, slightly different probabilities.")
    ] = "float32",
    words: Annotated[
        int | None,
        typer.Option(min=1, help="Keep this many of the most frequent pretrained word vectors; all by default."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="web: the title of the page.")] = None,
    onnxruntime_web: Annotated[
        Path | None,
        typer.Option(
            help="web, transformers: a folder with the npm package onnxruntime-web; npm fetches it otherwise."
        ),
    ] = None,
) -> None:
    """Export a model so that it can be used without PyTorch: `rationalizer explain OUT "..."`, or in a browser."""
    if weights not in ("float32", "8bit"):
        raise ValueError(f"--weights is float32 or 8bit, got {weights!r}")
    models = [find_model(run) if run.exists() else run for run in runs]
    options: dict[str, Any] = {"eight_bit": weights == "8bit", "words": words}
    if to == Target.WEB:
        from rationalizer.export import export_site

        export_site(models, out, title=title, onnxruntime_web=onnxruntime_web, **options)
    else:
        from rationalizer.export import export_model

        if len(models) > 1:
            raise ValueError(f"--to onnx exports one model, got {len(models)}; run the command once for each")
        if title is not None or onnxruntime_web is not None:
            raise ValueError("--title and --onnxruntime-web are for --to web; leave them out")
        export_model(models[0], out, **options)
    err.print(f"{out}: {describe_size(folder_size(out))}", markup=False)
