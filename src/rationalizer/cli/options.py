"""Arguments and options that several commands share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rationalizer.cli.base import err

SourceArgument = Annotated[
    str,
    typer.Argument(metavar="SOURCE", help="reviews, stays or pairs (embedded), a dataset's name, a file or a folder."),
]
# A name, too, passes for a path: whoever reads it looks for a folder first.
RunArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="A trained model: its folder, a starter (see `models`), or org/name of the Hub.",
    ),
]
DataDir = Annotated[Path | None, typer.Option(help="A local copy of the dataset.")]
Aspect = Annotated[str | None, typer.Option(help="What the label is about, for beer, beer-binary, hotels and reviews.")]
Column = Annotated[
    list[str] | None, typer.Option(metavar="KIND=NAME", help="A column's name, as text=review; text= leaves it out.")
]
Setting = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting of a run.")]
Vectors = Annotated[
    str | None,
    typer.Option(help="Pretrained word vectors: a file, glove-6b-50d, or none; by default English ones."),
]
Encoder = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A transformer of the Hugging Face Hub, or a folder; by default a BiLSTM."),
]
Accelerator = Annotated[str, typer.Option(help="As of Lightning's Trainer: cpu, gpu, ...")]
Precision = Annotated[
    str | None,
    typer.Option(help="As of Lightning's Trainer: 32-true, bf16-mixed (the default for transformers on a GPU), ..."),
]


def find_model(model: Path) -> Path:
    """The folder of the model that is called so."""
    from rationalizer.sharing import locate

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        folder = locate(model)
    for warning in told:
        err.print(f"note: {warning.message}", style="yellow", markup=False)
    return folder


def require_folder(path: Path) -> None:
    """An error, before any work is done, where a file stands in the way of a folder."""
    for place in (path, *path.parents):
        if place.exists() and not place.is_dir():
            raise NotADirectoryError(f"{place} is a file, and --out names a folder; give another --out")


def collect_settings(pairs: Sequence[str] | None, **options: Any) -> dict[str, Any]:
    """Settings by --set, and those that have an option of their own."""
    from rationalizer.study import parse_assignments

    given: dict[str, Any] = dict(parse_assignments(pairs, "--set"))
    for key, value in options.items():
        if value is not None and key in given:
            raise ValueError(f"{key} is given by --{key} and by --set {key}={given[key]}; leave one out")
        if value is not None:
            given[key] = value
    return given
