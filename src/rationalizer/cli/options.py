"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

SourceArgument = Annotated[
    str, typer.Argument(metavar="SOURCE", help="reviews or pairs (embedded), a dataset's name, a file or a folder.")
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
Accelerator = Annotated[str, typer.Option(help="As of Lightning's Trainer: cpu, gpu, ...")]
Precision = Annotated[str, typer.Option(help="As of Lightning's Trainer: 32-true, bf16-mixed, ...")]


def collect_settings(pairs: Sequence[str] | None, embeddings: str | None, **options: Any) -> dict[str, Any]:
    from rationalizer.study import parse_assignments

    given: dict[str, Any] = dict(parse_assignments(pairs, "--set"))
    for key, value in {"embeddings": embeddings, **options}.items():
        if value is not None and key in given:
            raise ValueError(f"{key} is given by --{key} and by --set {key}={given[key]}; leave one out")
        if value is not None:
            given[key] = value
    return given
