"""Arguments and options that several commands share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rationalizer.cli.base import err

if TYPE_CHECKING:
    from rationalizer.data import Dialect

METHODS = (
    "Texts: spectra (default), pair-budget, sfe, sfe-baseline, gumbel, hardkuma, sparsemax, fusedmax, full-text; "
    "pairs: at-most-one (default), xor-at-most-one, budget, gumbel, ot-relaxed, ot-exact-k, softmax."
)
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
Constraint = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="What a selection keeps to, beside the budget: spans=2, span-length=3-8, whole-sentences, per-sentence=3, "
        "never=stopwords, must=words:a,b, ends=pattern:...; repeat for more.",
    ),
]
OtherConstraint = Annotated[
    list[str] | None,
    typer.Option("--constraint", metavar="NAME=VALUE", help="If not those of the training (see train); none: without."),
]
Task = Annotated[
    str | None, typer.Option(help="classification or regression, where the labels of a file leave it open.")
]
Delimiter = Annotated[
    str | None, typer.Option(metavar="CHAR", help="Between the fields of a text file: ';', tab, ...; by default found.")
]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of a text file: cp1252, utf-16, ...; by default UTF-8.")
]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The first line is a row, not names; columns are called 1, 2, 3, ...")
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Pass over rows that cannot be used, and list them.")]
Stream = Annotated[
    bool | None,
    typer.Option(
        "--stream/--no-stream",
        help="Whether texts stay on disk, for files larger than memory; by default those over 100 MB (Parquet: 25 MB).",
    ),
]
CacheDir = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Where they stay; by default ~/.cache/rationalizer.")
]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting; `rationalizer settings METHOD` lists them."),
]
Vectors = Annotated[
    str | None,
    typer.Option(help="Pretrained word vectors: a file, glove-6b-50d, or none; by default English ones."),
]
Encoder = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A transformer of the Hugging Face Hub, or a folder; by default a BiLSTM."),
]
Device = Annotated[str, typer.Option(metavar="NAME", help="cpu, cuda, cuda:1, mps; or auto: a GPU if there is one.")]
Precision = Annotated[
    str | None,
    typer.Option(help="As of Lightning's Trainer: 32-true, bf16-mixed (the default for transformers on a GPU), ..."),
]


def dialect_of(delimiter: str | None, encoding: str | None, no_header: bool) -> Dialect | None:
    """How text files are written, where an option says anything of it."""
    from rationalizer.data import Dialect

    given = Dialect(delimiter, encoding, not no_header)
    return None if given == Dialect() else given


def find_model(model: Path) -> Path:
    """The folder of the model that is called so."""
    from rationalizer.hub import locate

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
    from rationalizer.compare import parse_assignments

    given: dict[str, Any] = dict(parse_assignments(pairs, "--set"))
    for key, value in options.items():
        if value is not None and key in given:
            raise ValueError(f"{key} is given by --{key} and by --set {key}={given[key]}; leave one out")
        if value is not None:
            given[key] = value
    return given
