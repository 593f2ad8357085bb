"""`rationalizer explain` into Parquet: one file, or many into a folder of shards."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rationalizer.cli import output_formats as outputs
from rationalizer.cli.base import err
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.bulk import BulkResult
    from rationalizer.model import Rationalizer


def are_meant(engine: str, file: str | None) -> bool:
    """Whether the input is many files, or work for many processes."""
    if engine != "local":
        from rationalizer.bulk.explain_files import check_engine

        check_engine(engine)
        return True
    if file is None:
        return False
    from rationalizer.bulk.filesystems import is_single_file

    return not is_single_file(file)


def check(
    engine: str, file: str | None, out: str | None, form: str | None, device: str, on_ray: Mapping[str, Any]
) -> tuple[str, str]:
    """The files and the folder, if they and the options can be used."""
    if file is None:
        raise ValueError(
            f"--engine {engine} explains files; give --file, a folder or a pattern such as 'new/*.parquet'"
        )
    if out is None:
        raise ValueError("these files are explained into a folder of Parquet shards; name it by --out")
    if form not in (None, "parquet") or Path(out).is_file() or Path(out).suffix.lower() in outputs.ENDINGS:
        raise ValueError(f"these files are explained into a folder of Parquet shards; name one by --out, not {out}")
    if engine != "ray":
        refuse(on_ray)
    elif device != "cpu":
        raise ValueError(f"on Ray, --gpus 1 gives each worker a GPU; write it in the place of --device {device}")
    return file, out


def refuse(options: Mapping[str, Any]) -> None:
    """An error for an option that would do nothing."""
    for name, value in options.items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} is for --engine ray; leave it out, or write --engine ray")


def explain_many(file: str, out: str, model: Rationalizer, shard_rows: int | None, **how: Any) -> None:
    from rationalizer.bulk.explain_files import ROWS, explain_files

    outcome = explain_files(
        file, out, model, rows=shard_rows or ROWS, on_progress=partial(show_progress, "Explaining"), **how
    )
    before = f", {_shards(outcome.existing)} there before" if outcome.existing else ""
    _tell(out, outcome, f" in {_shards(outcome.written)}", before)


def explain_one(file: Path, out: Path, model: Rationalizer, **how: Any) -> None:
    from rationalizer.bulk.explain_files import explain_file

    _tell(str(out), explain_file(file, out, model, on_progress=partial(show_progress, "Explaining"), **how))


def _shards(count: int) -> str:
    return f"{count} shard{'' if count == 1 else 's'}"


def _tell(out: str, outcome: BulkResult, shards: str = "", before: str = "") -> None:
    for note in outcome.notes:
        err.print(note, style="yellow", markup=False)
    without = f", {outcome.empty} without a text kept as they are" if outcome.empty else ""
    err.print(f"{out}: {outcome.explained} explained{shards}{without}{before}", markup=False)
