"""Datasets of the Hugging Face Hub, through the optional package `datasets`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rationalizer.data.corpus_files import SPLIT_NAMES, SplitNames, split_of
from rationalizer.data.table_files import Table
from rationalizer.text.errors import DataError

SCRIPT = "Dataset scripts are no longer supported"
CONVERTED = "refs/convert/parquet"  # the Hub's converted copy of a dataset that is published as a script


def read_hub(identifier: str, columns: Collection[str], names: SplitNames = SPLIT_NAMES) -> dict[str, list[Table]]:
    """The splits of a Hub dataset, or of a local folder that `datasets` can read."""
    try:
        import datasets
    except ImportError as error:
        raise ImportError(
            f"reading {identifier!r} from the Hugging Face Hub needs the package datasets: "
            'pip install ".[hub]" in a checkout; or pass data_dir with a local copy'
        ) from error
    try:
        try:
            found = datasets.load_dataset(identifier)
        except RuntimeError as error:
            if SCRIPT not in str(error):
                raise
            found = datasets.load_dataset(identifier, revision=CONVERTED)
    except (OSError, ValueError, RuntimeError) as error:
        raise DataError(
            f"{identifier} could not be read from the Hugging Face Hub ({error})",
            "check the connection, or pass data_dir with a local copy",
        ) from error
    splits: dict[str, list[Table]] = {}
    for name, rows in found.items():
        split = split_of(str(name), names)
        if split is not None:
            keep = [column for column in rows.column_names if column in columns]
            table = Table(Path(identifier) / str(name), tuple(rows.column_names), rows.select_columns(keep).to_list())
            splits.setdefault(split, []).append(table)
    if "train" not in splits:
        raise DataError(f"{identifier} has no train split", f"it has {', '.join(map(str, found))}")
    return splits
