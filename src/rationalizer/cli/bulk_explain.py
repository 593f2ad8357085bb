"""`rationalizer explain` into Parquet: one file, or a folder of shards."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rationalizer.cli.base import err, warn
from rationalizer.cli.options import check_engine_options
from rationalizer.cli.output_formats import FORMAT_OF_SUFFIX
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.bulk import BulkResult
    from rationalizer.model import Rationalizer


def writes_shards(engine: str, file: str | None) -> bool:
    """Return whether the output is a folder of shards: for several input files, or on Ray."""
    if engine != "local":
        from rationalizer.bulk.explain_files import check_engine

        check_engine(engine)
        return True
    if file is None or Path(file).is_file():
        return False
    from rationalizer.bulk.filesystems import is_single_file

    return not is_single_file(file)


def check_shard_options(
    engine: str, file: str | None, out: str | None, form: str | None, device: str, **ray: Any
) -> tuple[str, str]:
    """Return the input files and the output folder, or raise an error about the options."""
    if file is None:
        raise ValueError(f"--engine {engine} needs --file: a folder, or a pattern such as 'new/*.parquet'")
    is_file = out is not None and (
        Path(out).is_file() or Path(out).suffix.lower() in {*FORMAT_OF_SUFFIX} - {"", ".txt"}
    )
    if out is None or form not in (None, "parquet") or is_file:
        got = "" if out is None else f", got {out}"
        raise ValueError(f"several files are explained into a folder of Parquet shards; pass a folder as --out{got}")
    check_engine_options(engine, "ray", **ray)
    if engine == "ray" and device not in ("auto", "cpu"):
        raise ValueError(f"on Ray, use --gpus 1 to give each worker a GPU, instead of --device {device}")
    return file, out


def explain_to_shards(file: str, out: str, model: Rationalizer, shard_rows: int | None, **options: Any) -> None:
    from rationalizer.bulk.explain_files import ROWS, explain_files

    on_progress = partial(show_progress, "Explaining")
    result = explain_files(file, out, model, rows=shard_rows or ROWS, on_progress=on_progress, **options)
    existing = f", {_count_shards(result.existing)} existed already" if result.existing else ""
    _report(out, result, f" in {_count_shards(result.written)}", existing)


def explain_to_parquet(file: Path, out: Path, model: Rationalizer, **options: Any) -> None:
    from rationalizer.bulk.explain_files import explain_file

    _report(str(out), explain_file(file, out, model, on_progress=partial(show_progress, "Explaining"), **options))


def _count_shards(count: int) -> str:
    return f"{count} shard{'' if count == 1 else 's'}"


def _report(out: str, result: BulkResult, shards: str = "", existing: str = "") -> None:
    warn(result.notes)
    empty = f", {result.empty} without a text copied unchanged" if result.empty else ""
    err.print(f"{out}: {result.explained} explained{shards}{empty}{existing}", markup=False)
