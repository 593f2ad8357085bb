"""Arguments and options that several commands share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rationalizer.cli.base import warn

if TYPE_CHECKING:
    from rationalizer.data import DataSource, ReadOptions
    from rationalizer.export import ExportedModel

METHODS = (
    "Texts: spectra (default), pair-budget, sfe, sfe-baseline, gumbel, hardkuma, sparsemax, fusedmax, full-text; "
    "pairs: at-most-one (default), xor-at-most-one, budget, gumbel, ot-relaxed, ot-exact-k, softmax."
)
SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", help="The training data: reviews, stays or pairs (embedded), a dataset, a file or a folder."
    ),
]
# A path also for names: `hub.locate` looks for a folder first.
RunArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="A trained model: its folder, a starter model (see `models`), or org/name of the Hugging Face Hub.",
    ),
]
DataDir = Annotated[Path | None, typer.Option(help="A folder with a local copy of the dataset.")]
Aspect = Annotated[str | None, typer.Option(help="What the label is about, for beer, beer-binary, hotels and reviews.")]
Constraint = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="A constraint on rationales besides the budget: spans=2, span-length=3-8, whole-sentences, "
        "per-sentence=3, never=stopwords, must=words:a,b, ends=pattern:...; repeat for more.",
    ),
]
OtherConstraint = Annotated[
    list[str] | None,
    typer.Option(
        "--constraint",
        metavar="NAME=VALUE",
        help="Replace the constraints of the training (see train); none: drop them.",
    ),
]
OtherBudget = Annotated[
    str | None, typer.Option(help="Replace the budget of the training: 20%, 0.2, 5 words, 18% on average, or enough.")
]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting; `rationalizer settings METHOD` lists them."),
]
Vectors = Annotated[
    str | None,
    typer.Option(help="Pretrained word vectors: a file, glove-6b-50d, or none; English vectors by default."),
]
Encoder = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A transformer from the Hugging Face Hub or a folder; a BiLSTM by default."),
]
Device = Annotated[str, typer.Option(metavar="NAME", help="cpu, cuda, cuda:1, mps; or auto: a GPU if available.")]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="CPU threads; by default one for small models, and all cores for transformers."),
]
Precision = Annotated[
    str | None,
    typer.Option(help="As in Lightning: 32-true, bf16-mixed (the default for transformers on a GPU), ..."),
]


@dataclass(frozen=True)
class TableOptions:
    """Options for reading a table: how a file is written, and what its columns are called."""

    column: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=NAME", help="Name of a column, such as text=review; label= ignores that column."),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(metavar="CHAR", help="Field separator of a text file: ';', tab, ...; detected by default."),
    ] = None
    encoding: Annotated[
        str | None, typer.Option(metavar="NAME", help="Encoding of a text file: cp1252, utf-16, ...; UTF-8 by default.")
    ] = None
    no_header: Annotated[
        bool, typer.Option("--no-header", help="The first line is data; the columns are called 1, 2, 3, ...")
    ] = False
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip and report rows that cannot be used.")] = False

    def is_set(self) -> bool:
        """Return whether any option was given."""
        return any(astuple(self))

    def column_names(self) -> dict[str, str]:
        from rationalizer.assignments import parse_assignments

        return parse_assignments(self.column, "--column")

    def read_options(self) -> ReadOptions:
        from rationalizer.data import Columns, Dialect, ReadOptions

        columns = Columns.from_names(self.column_names())
        dialect = Dialect(self.delimiter, self.encoding, not self.no_header)
        return ReadOptions.merge(None, {"columns": columns, "dialect": dialect, "skip_bad": self.skip_bad})


@dataclass(frozen=True)
class SourceOptions(TableOptions):
    """Options for reading a dataset, a file or a folder to train on."""

    task: Annotated[
        str | None, typer.Option(help="classification or regression, if the labels do not determine it.")
    ] = None
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Keep texts on disk, for files larger than memory; by default above 100 MB (Parquet: 25 MB).",
        ),
    ] = None
    cache_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for streamed texts; by default ~/.cache/rationalizer.")
    ] = None

    def read_options(self) -> ReadOptions:
        from rationalizer.data import ReadOptions

        own = {"task": self.task, "stream": self.stream, "cache_dir": self.cache_dir}
        return ReadOptions.merge(super().read_options(), own)


def resolve_source(
    source: str, reading: TableOptions, data_dir: Path | str | None = None, aspect: str | None = None
) -> DataSource:
    """Return the data source that the command line describes."""
    from rationalizer.data import DataSource

    return DataSource.resolve(source, data_dir, aspect, reading.read_options())


def find_model(model: Path) -> Path:
    """Return the folder of a model, and print the warnings of the search."""
    from rationalizer.hub import locate

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        folder = locate(model)
    warn(f"note: {warning.message}" for warning in caught)
    return folder


def can_do_without_pytorch(folder: Path, *, bulk: bool, device: str) -> bool:
    """Return whether to use a model without PyTorch: exported models, and where PyTorch would take longer to import
    than the work takes, or is not installed."""
    from rationalizer.export.exported_model import needs_no_pytorch
    from rationalizer.hub import STARTERS

    if needs_no_pytorch(folder):
        return True
    return folder in STARTERS.values() and not bulk and device in ("auto", "cpu")


def load_exported(model: Path, folder: Path) -> ExportedModel:
    """Load a model without PyTorch; `folder` is where it was found."""
    from rationalizer.export import ExportedModel

    return ExportedModel.load(folder if model.exists() else model)


def check_output_folder(path: Path) -> None:
    """Raise an error, before any work is done, if a file is where --out needs a folder."""
    for folder in (path, *path.parents):
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"{folder} is a file, but --out needs a folder; choose another --out")


def check_engine_options(engine: str, owner: str, **options: Any) -> None:
    """Raise an error for an option of the engine `owner` if another engine is used."""
    for name, value in options.items():
        if value is not None and engine != owner:
            raise ValueError(f"--{name.replace('_', '-')} needs --engine {owner}; omit it, or add --engine {owner}")


def collect_settings(pairs: Sequence[str] | None, **options: Any) -> dict[str, Any]:
    """Combine the settings given by --set with the settings that have their own option."""
    from rationalizer.assignments import parse_assignments

    settings: dict[str, Any] = dict(parse_assignments(pairs, "--set"))
    for key, value in options.items():
        if value is not None and key in settings:
            raise ValueError(f"{key} is given twice, by --{key} and by --set {key}={settings[key]}; remove one")
        if value is not None:
            settings[key] = value
    return settings


def folder_size(path: Path) -> int:
    """The size of all files in a folder, in bytes."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def describe_size(size: float) -> str:
    """A number of bytes, such as "12.3 MB"."""
    if size < 1000:
        return f"{size:.0f} bytes"
    for unit in ("KB", "MB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} GB"
