"""Files of any number and size, explained into a folder of Parquet shards that can be resumed, or one into another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from rationalizer.bulk import ray_workers as on_ray
from rationalizer.bulk.batch_explainer import Explainer
from rationalizer.bulk.filesystems import find, is_remote, opened
from rationalizer.bulk.parquet_shards import Shards, write
from rationalizer.bulk.work_units import Piece, explained, pieces_of
from rationalizer.data import BadRows, Columns, Dialect
from rationalizer.inference.predict import BATCH
from rationalizer.model import Rationalizer
from rationalizer.models.atomic_files import checksum
from rationalizer.ranges import Count, check_ranges, ranges_of
from rationalizer.ray_cluster import ray_session
from rationalizer.text.errors import DataError
from rationalizer.training.folder_lock import lock_folder

Engine = Literal["local", "ray"]
OnProgress = Callable[[int | None], AbstractContextManager[Callable[[int], object]]]
ROWS = 20_000  # of a Parquet file in one shard: what a worker that dies has done for nothing
AT_ONCE = 16  # files that are looked into together: an answer may come from far away


@dataclass(frozen=True)
class BulkResult:
    """What came of files, or of a piece of one."""

    explained: int = 0
    empty: int = 0  # rows without a text, which are kept as they are
    written: int = 0  # shards
    existing: int = 0  # shards that were finished before
    notes: tuple[str, ...] = ()  # on rows that were skipped
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
    **how: Any,
) -> BulkResult:
    """Explains the rows of one file into one Parquet file; `how` as of `Explainer`, the rest as of `explain_files`."""
    explainer = Explainer(model, **how)
    (found,) = find(str(source))
    (piece,) = pieces_of(found, explainer, 10**12, dialect)
    counts = _Counts(BadRows(skip=explainer.skip_bad))
    schema, tables = explained(piece, explainer, counts.bad, dialect)
    with _progress_of(on_progress, piece.rows) as advance:
        write(str(out), schema, counts.of(tables, advance), {"made by": _made_by(explainer, dialect)})
    return counts.outcome()


def explain_files(
    source: str | Path,
    out: str | Path,
    model: Rationalizer | str | Path,
    *,
    engine: Engine = "local",
    columns: Columns | None = None,
    dialect: Dialect | None = None,
    skip_bad: bool = False,
    rows: Count = ROWS,
    batch_size: Count = BATCH,
    resume: bool = False,
    overwrite: bool = False,
    address: str | None = None,
    workers: int | None = None,
    gpus: float | None = None,
    on_progress: OnProgress | None = None,
) -> BulkResult:
    """Explains the rows of files into Parquet shards, with all of their columns; rows without a text are kept, too.

    A Parquet file gives a shard for every `rows` of its rows, any other file one. A shard has another name until it is
    whole, so what is there is finished: nothing is lost and nothing comes twice, whatever dies on the way. A row that
    cannot be used is an error of its shard alone, told when the others are written.

    Args:
        source: a file, a folder, or a pattern such as "reviews/*.parquet"; or the address of one in pyarrow's file
            systems, such as "s3://bucket/reviews/*.parquet".
        out: the folder of the shards, or its address.
        model: a `Rationalizer`, with the budget and the constraints that it shall keep to; or what `Rationalizer.load`
            takes.
        engine: "local", one shard after the other in this process; or "ray" (extra `ray`), many at a time.
        columns, batch_size, skip_bad: see `Explainer`.
        dialect: how text files are written, where it is not found out.
        rows: of a Parquet file in one shard.
        resume: keep the shards that this model has made of these files, and make the others.
        overwrite: remove the shards that are there.
        address: of a Ray cluster; by default Ray is started on this machine, and stopped in the end.
        workers: of Ray; by default one for every core, with `gpus` as many as there are GPUs for.
        gpus: of each worker; 0.25 is a quarter of one.
        on_progress: called with the number of rows to explain (None if unknown); returns a context manager whose value
            is called with the number of rows of each finished shard.
    """
    check_engine(engine)
    check_ranges(ranges_of(explain_files), {"rows": rows, "batch_size": batch_size})
    on_ray.check_workers(workers, gpus)
    how: dict[str, Any] = {"columns": columns, "batch_size": batch_size, "skip_bad": skip_bad}
    explainer = Explainer(model, **how)
    shards = Shards(str(out) if is_remote(str(out)) else opened(str(out))[1], _made_by(explainer, dialect))
    pieces = _pieces(str(source), shards, explainer, rows, dialect)
    total = BulkResult()
    with nullcontext() if shards.are_remote else lock_folder(shards.folder):
        left = pieces if overwrite else _left(pieces, shards, resume)
        on_cluster = engine == "ray" and bool(left)
        if on_cluster:
            on_ray.check_can_be_sent(explainer.model)
        with ray_session(address, workers) if on_cluster else nullcontext():
            if overwrite:
                shards.clear()
            arguments = (explainer.model, shards, dialect, how)
            outcomes: Iterator[BulkResult]
            if on_cluster:
                outcomes = on_ray.each(PieceWorker, arguments, left, workers, gpus)
            else:
                outcomes = map(PieceWorker(*arguments).explain, left)
            known = all(piece.rows is not None for piece in left)
            try:
                with _progress_of(on_progress, sum(piece.rows or 0 for piece in left) if known else None) as advance:
                    for outcome in outcomes:
                        total += outcome
                        advance(outcome.explained + outcome.empty)
            finally:
                shards.clear_leftovers()
    if total.errors:
        raise DataError(_complaint(total))
    return total + BulkResult(existing=len(pieces) - len(left))


def check_engine(name: str) -> None:
    if name not in get_args(Engine):
        raise ValueError(f"there is no engine {name!r}; known are {', '.join(get_args(Engine))}")


class PieceWorker:
    """Explains pieces into shards. A piece may come twice, if a worker died: it has one shard, which is replaced."""

    def __init__(
        self, model: Rationalizer, shards: Shards, dialect: Dialect | None, how: dict[str, Any], **on: Any
    ) -> None:
        self.explainer = Explainer(model, **how, **on)
        self.shards, self.dialect = shards, dialect

    def explain(self, piece: Piece) -> BulkResult:
        counts = _Counts(BadRows(skip=self.explainer.skip_bad))
        try:
            schema, tables = explained(piece, self.explainer, counts.bad, self.dialect)
            self.shards.write(piece, schema, counts.of(tables))
        except (ValueError, OSError) as error:  # of this piece: the others go on
            return BulkResult(errors=(str(error),))
        return counts.outcome()


class _Counts:
    """What passes."""

    def __init__(self, bad: BadRows) -> None:
        self.bad, self.rows, self.empty = bad, 0, 0

    def of(self, tables: Iterable[Any], advance: Callable[[int], object] = lambda _: None) -> Iterator[Any]:
        for table in tables:
            yield table
            self.rows += table.num_rows
            self.empty += table.column(table.num_columns - 4).null_count  # the labels
            advance(table.num_rows)

    def outcome(self) -> BulkResult:
        return BulkResult(self.rows - self.empty, self.empty - len(self.bad), written=1, notes=self.bad.messages())


def _progress_of(on_progress: OnProgress | None, total: int | None) -> AbstractContextManager[Callable[[int], object]]:
    return nullcontext(lambda _: None) if on_progress is None else on_progress(total)


def _made_by(explainer: Explainer, dialect: Dialect | None) -> str:
    """What tells a model and how it reads from others."""
    trained = explainer.model.trained
    reading = {"columns": explainer.columns.by_kind(), "dialect": str(dialect)}
    weights = {name: tensor.cpu() for name, tensor in trained.model.state_dict().items()}
    return checksum(weights, [trained.description.to_json(), reading])


def _pieces(source: str, shards: Shards, explainer: Explainer, rows: int, dialect: Dialect | None) -> list[Piece]:
    found = find(source)
    folder = opened(shards.folder)[1]
    inside = [each.address for each in found if opened(each.address)[1].startswith(f"{folder}/")]
    if inside:
        raise ValueError(f"{inside[0]} lies in {folder}, the folder to write to; give another --out")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        of_each = pool.map(lambda one: pieces_of(one, explainer, rows, dialect), found)
        return [piece for pieces in of_each for piece in pieces]


def _left(pieces: Sequence[Piece], shards: Shards, resume: bool) -> list[Piece]:
    """The pieces to explain, after a look at what is in the folder."""
    shards.clear_leftovers()
    there = shards.names()
    if there and not resume:
        raise FileExistsError(
            f"{shards.folder} holds {min(there)}; go on with it by --resume, replace all by --overwrite, or give "
            "another --out"
        )
    if others := there - {piece.shard for piece in pieces}:
        raise ValueError(
            f"{shards.folder} holds {min(others)}, which is of none of these files; give those it was made of, another "
            "--out, or --overwrite"
        )
    begun = [piece for piece in pieces if piece.shard in there]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        finished = dict(zip(begun, pool.map(shards.is_finished, begun), strict=True))
    return [piece for piece in pieces if not finished.get(piece)]


def _complaint(total: BulkResult) -> str:
    failed = len(total.errors)
    if failed == 1 and not total.written:
        return total.errors[0]
    shown = "; ".join(total.errors[:3]) + (f"; and {failed - 3} more" if failed > 3 else "")
    return (
        f"{failed} of {failed + total.written} shards could not be written: {shown}. The others are there; the same "
        "command with --resume goes on"
    )
