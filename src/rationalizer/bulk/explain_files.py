"""Explain files of any number and size into a folder of Parquet shards, or one file into one Parquet file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from rationalizer.bulk import ray_workers
from rationalizer.bulk.batch_explainer import Explainer
from rationalizer.bulk.chunks import Chunk, explain_chunk, split_file
from rationalizer.bulk.filesystems import find_files, is_remote, join, resolve
from rationalizer.bulk.shards import ShardFolder, write_parquet
from rationalizer.data import BadRows, Columns, Dialect
from rationalizer.drawing.result_columns import result_columns
from rationalizer.inference.predict import BATCH
from rationalizer.model import Rationalizer
from rationalizer.models.atomic_files import checksum
from rationalizer.ranges import Count, check_ranges, ranges_of
from rationalizer.ray_cluster import ray_session
from rationalizer.text.errors import DataError
from rationalizer.training.folder_lock import lock_folder

Engine = Literal["local", "ray"]
OnProgress = Callable[[int | None], AbstractContextManager[Callable[[int], object]]]
ROWS = 20_000  # rows of a Parquet file per shard: the maximum that is lost if a worker dies
CONCURRENT_FILES = 16  # opened at the same time: remote file systems have high latency


@dataclass(frozen=True)
class BulkResult:
    """Counts for files, or for one shard."""

    explained: int = 0  # rows
    empty: int = 0  # rows without a text, which are kept as they are
    written: int = 0  # shards
    existing: int = 0  # shards that were finished before
    notes: tuple[str, ...] = ()  # notes on skipped rows and damaged shards
    errors: tuple[str, ...] = ()

    def __add__(self, other: BulkResult) -> BulkResult:
        return BulkResult(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


def explain_file(
    source: str | Path,
    out: str | Path,
    model: Rationalizer | str | Path,
    *,
    dialect: Dialect | None = None,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> BulkResult:
    """Explain the rows of one file into one Parquet file.

    `options` are those of `Explainer`; the other arguments are those of `explain_files`.
    """
    explainer = Explainer(model, **options)
    (file,) = find_files(str(source))
    (chunk,) = split_file(file, explainer, 10**12, dialect)
    write = partial(write_parquet, str(out), origin={"made by": _model_key(explainer, dialect)})
    with _progress(on_progress, chunk.rows) as advance:
        return _write_chunk(chunk, explainer, dialect, write, advance)


def explain_files(
    source: str | Path,
    out: str | Path,
    model: Rationalizer | str | Path,
    *,
    engine: Engine = "local",
    columns: Columns | None = None,
    dialect: Dialect | None = None,
    skip_bad: bool = False,
    reasons: bool = False,
    rows: Count = ROWS,
    batch_size: Count = BATCH,
    resume: bool = False,
    overwrite: bool = False,
    address: str | None = None,
    workers: int | None = None,
    gpus: float | None = None,
    on_progress: OnProgress | None = None,
) -> BulkResult:
    """Explain the rows of files into Parquet shards, with all of their columns; rows without a text are kept.

    A Parquet file becomes one shard per `rows` rows, any other file one shard. A shard has a temporary name until it is
    complete, so a run that is killed can be resumed: no row is lost or explained twice. A row that cannot be used
    fails only its own shard; the error is raised after all other shards are written.

    Args:
        source: a file, a folder, a pattern such as "reviews/*.parquet", or a URI of pyarrow's file systems, such as
            "s3://bucket/reviews/*.parquet".
        out: the folder of the shards, or its URI.
        model: a `Rationalizer`, used with its budget and constraints; or an argument of `Rationalizer.load`.
        engine: "local" writes one shard after the other in this process; "ray" (extra `ray`) many in parallel.
        columns, batch_size, skip_bad, reasons: see `Explainer`.
        dialect: format of text files, if it cannot be detected.
        rows: rows of a Parquet file per shard.
        resume: keep the undamaged shards that this model made of these files, and write the others.
        overwrite: remove existing shards first.
        address: of a Ray cluster; by default Ray is started on this machine and stopped at the end.
        workers: number of Ray workers; by default one per core, with `gpus` as many as there are GPUs for.
        gpus: GPUs per worker; 0.25 is a quarter of one.
        on_progress: called with the number of rows to explain (None if unknown); returns a context manager whose value
            is called with the number of rows of each finished shard.
    """
    check_engine(engine)
    check_ranges(ranges_of(explain_files), {"rows": rows, "batch_size": batch_size})
    ray_workers.check_workers(workers, gpus)
    options: dict[str, Any] = {"columns": columns, "batch_size": batch_size, "skip_bad": skip_bad, "reasons": reasons}
    explainer = Explainer(model, **options)
    folder = ShardFolder(str(out) if is_remote(str(out)) else resolve(str(out))[1], _model_key(explainer, dialect))
    chunks = _find_chunks(str(source), folder, explainer, rows, dialect)
    total = BulkResult()
    with nullcontext() if folder.is_remote else lock_folder(folder.address):
        remaining, notes = (chunks, ()) if overwrite else _remaining(chunks, folder, resume)
        use_ray = engine == "ray" and bool(remaining)
        if use_ray:
            ray_workers.check_on_cpu(explainer.model)
        with ray_session(address, workers) if use_ray else nullcontext():
            if overwrite:
                folder.clear()
            arguments = (explainer.model, folder, dialect, options)
            results: Iterator[BulkResult]
            if use_ray:
                results = ray_workers.map_on_ray(ChunkWorker, arguments, remaining, workers, gpus)
            else:
                results = map(ChunkWorker(*arguments).explain, remaining)
            counts = [chunk.rows for chunk in remaining]
            known = None if None in counts else sum(count or 0 for count in counts)
            try:
                with _progress(on_progress, known) as advance:
                    for result in results:
                        total += result
                        advance(result.explained + result.empty)
            finally:
                folder.clear_temporary_files()
    if total.errors:
        raise _error(total)
    return total + BulkResult(existing=len(chunks) - len(remaining), notes=notes)


def check_engine(name: str) -> None:
    if name not in get_args(Engine):
        raise ValueError(f"there is no engine {name!r}; use one of {', '.join(get_args(Engine))}")


class ChunkWorker:
    """Explain chunks into shards. If a worker dies its chunk is explained again, and its shard replaced."""

    def __init__(
        self, model: Rationalizer, folder: ShardFolder, dialect: Dialect | None, options: dict[str, Any], **device: Any
    ) -> None:
        self.explainer = Explainer(model, **options, **device)
        self.folder, self.dialect = folder, dialect

    def explain(self, chunk: Chunk) -> BulkResult:
        try:
            return _write_chunk(chunk, self.explainer, self.dialect, partial(self.folder.write, chunk))
        except (ValueError, OSError) as error:  # fails this shard only
            return BulkResult(errors=(str(error),))


def _write_chunk(
    chunk: Chunk,
    explainer: Explainer,
    dialect: Dialect | None,
    write: Callable[[Any, Iterator[Any]], None],
    on_rows: Callable[[int], object] = lambda rows: None,
) -> BulkResult:
    bad = BadRows(skip=explainer.skip_bad)
    schema, tables = explain_chunk(chunk, explainer, bad, dialect)
    added = len(result_columns((), **explainer.model.result_form))
    label = len(schema) - added  # the first added column; null if a row has no explanation
    rows = empty = 0

    def counted() -> Iterator[Any]:
        nonlocal rows, empty
        for table in tables:
            yield table
            rows += table.num_rows
            empty += table.column(label).null_count
            on_rows(table.num_rows)

    write(schema, counted())
    return BulkResult(rows - empty, empty - len(bad), written=1, notes=bad.messages())


def _progress(on_progress: OnProgress | None, total: int | None) -> AbstractContextManager[Callable[[int], object]]:
    return nullcontext(lambda _: None) if on_progress is None else on_progress(total)


def _model_key(explainer: Explainer, dialect: Dialect | None) -> str:
    """Identify the model's weights and settings, and how files are read."""
    trained = explainer.model.trained
    reading = {"columns": explainer.columns.by_kind(), "dialect": str(dialect), "reasons": explainer.reasons}
    weights = {name: tensor.cpu() for name, tensor in trained.model.state_dict().items()}
    return checksum(weights, [trained.description.to_json(), reading])


def _find_chunks(
    source: str, folder: ShardFolder, explainer: Explainer, rows: int, dialect: Dialect | None
) -> list[Chunk]:
    files = find_files(source)
    out = resolve(folder.address)[1]
    inside = next((file.address for file in files if resolve(file.address)[1].startswith(f"{out}/")), None)
    if inside is not None:
        raise ValueError(f"{inside} lies in {out}, the folder to write to; give another --out")
    with ThreadPoolExecutor(CONCURRENT_FILES) as pool:
        per_file = pool.map(lambda file: split_file(file, explainer, rows, dialect), files)
        return [chunk for chunks in per_file for chunk in chunks]


def _remaining(chunks: Sequence[Chunk], folder: ShardFolder, resume: bool) -> tuple[list[Chunk], tuple[str, ...]]:
    """Return the chunks without a finished shard, and notes on damaged shards.

    Raises if the folder's shards cannot be continued.
    """
    folder.clear_temporary_files()
    existing = folder.names()
    if existing and not resume:
        raise FileExistsError(
            f"{folder.address} holds {min(existing)}; use --resume to continue, --overwrite to replace all shards, or "
            "another --out"
        )
    if unknown := existing - {chunk.shard for chunk in chunks}:
        raise ValueError(
            f"{folder.address} holds {min(unknown)}, which belongs to none of these files; give the files it was made "
            "of, another --out, or --overwrite"
        )
    started = [chunk for chunk in chunks if chunk.shard in existing]
    with ThreadPoolExecutor(CONCURRENT_FILES) as pool:
        states = dict(zip(started, pool.map(folder.check, started), strict=True))
    damaged = [chunk.shard for chunk in started if states[chunk] == "damaged"]
    notes = tuple(f"{join(folder.address, shard)} was damaged and is written again" for shard in damaged)
    return [chunk for chunk in chunks if states.get(chunk) != "finished"], notes


def _error(total: BulkResult) -> DataError:
    failed = len(total.errors)
    if failed == 1 and not total.written:
        return DataError(total.errors[0])
    listed = "; ".join(total.errors[:3]) + (f"; and {failed - 3} more" if failed > 3 else "")
    problem = f"{failed} of {failed + total.written} shards could not be written: {listed}"
    return DataError(problem, "the others are complete; correct the rows and continue with --resume")
