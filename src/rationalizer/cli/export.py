"""`rationalizer export`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rationalizer.cli.base import command, err
from rationalizer.cli.options import RunArgument, describe_size, find_model, folder_size


class Target(StrEnum):
    ONNX = "onnx"


@command(
    "rationalizer export sentiment exported/ --to onnx",
    "rationalizer export runs/minilm exported/ --to onnx --weights 8bit",
    "rationalizer export runs/mine exported/ --to onnx --words 20000",
)
def export(
    run: RunArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write; empty, or an earlier export.")],
    *,
    to: Annotated[Target, typer.Option(help="The form: onnx.")] = Target.ONNX,
    weights: Annotated[
        str, typer.Option(help="float32, or 8bit: smaller files, slightly different probabilities.")
    ] = "float32",
    words: Annotated[
        int | None,
        typer.Option(min=1, help="Keep this many of the most frequent pretrained word vectors; all by default."),
    ] = None,
) -> None:
    """Export a model so that it can be used without PyTorch: `rationalizer explain OUT "..."`."""
    if weights not in ("float32", "8bit"):
        raise ValueError(f"--weights is float32 or 8bit, got {weights!r}")
    from rationalizer.export import export_model

    name = run if not run.exists() else find_model(run)
    export_model(name, out, eight_bit=weights == "8bit", words=words)
    err.print(f"{out}: {describe_size(folder_size(out))}", markup=False)
