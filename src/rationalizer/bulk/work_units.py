"""What is explained and written as one: some rows of a Parquet file, or the whole of another file."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from rationalizer.bulk.batch_explainer import Explainer, array
from rationalizer.bulk.filesystems import Found, is_remote, opened, path_of
from rationalizer.data import BadRows, Dialect
from rationalizer.data.bad_rows import BadRow
from rationalizer.data.table_files import ending, stream_table
from rationalizer.inference.predict import BATCHES_PER_ROUND
from rationalizer.text.errors import DataError

AS_JSON = pa.string()  # what one column holds of several kinds, and objects


@dataclass(frozen=True)
class Piece:
    """`rows` of a file after its `first` ones (None: all), and the shard that is made of them."""

    source: str
    first: int
    rows: int | None
    shard: str
    stamp: str

    def __str__(self) -> str:
        return self.source if self.rows is None else f"{self.source}, rows {self.first + 1} to {self.first + self.rows}"


def pieces_of(found: Found, explainer: Explainer, rows: int, dialect: Dialect | None) -> list[Piece]:
    """A Parquet file in pieces of up to `rows` rows, any other as one; an error where the model cannot read it."""
    source = path_of(found.address)
    if ending(source) != ".parquet":
        if not is_remote(found.address):  # from elsewhere it is fetched by whoever reads it
            explainer.columns_in(stream_table(source, dialect=dialect).columns, source)
        return [Piece(found.address, 0, None, f"{found.relative}-00000.parquet", found.stamp)]
    with opened_parquet(found.address) as file:
        names, total = file.schema_arrow.names, file.metadata.num_rows
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"{source}: the column {repeated[0]!r} comes twice; rename one")
    explainer.columns_in(names, source)
    return [
        Piece(found.address, first, min(rows, total - first), f"{found.relative}-{number:05}.parquet", found.stamp)
        for number, first in enumerate(range(0, max(total, 1), rows))
    ]


def explained(piece: Piece, explainer: Explainer, bad: BadRows, dialect: Dialect | None) -> tuple[pa.Schema, Iterator]:
    """The columns of what comes out, and it, round by round: tables."""
    if ending(path_of(piece.source)) == ".parquet":
        with opened_parquet(piece.source) as file:
            return explainer.schema(file.schema_arrow), _of_parquet(piece, explainer, bad)
    return _of_rows(piece, explainer, bad, dialect)


@contextmanager
def opened_parquet(address: str) -> Iterator[Any]:
    system, path = opened(address)
    try:
        with system.open_input_file(path) as raw, parquet.ParquetFile(raw) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{address}: damaged Parquet data ({str(error).strip()}); copy the file again") from error


def _of_parquet(piece: Piece, explainer: Explainer, bad: BadRows) -> Iterator[pa.Table]:
    assert piece.rows is not None
    wanted, ends = range(piece.first, piece.first + piece.rows), 0
    with opened_parquet(piece.source) as file:
        groups = []
        for k in range(file.metadata.num_row_groups):
            begins, ends = ends, ends + file.metadata.row_group(k).num_rows
            if begins < wanted.stop and wanted.start < ends:
                groups.append((k, begins))
        if not groups:
            return
        at = groups[0][1]
        for batch in file.iter_batches(BATCHES_PER_ROUND * explainer.batch_size, row_groups=[k for k, _ in groups]):
            low, high = max(wanted.start - at, 0), min(wanted.stop - at, len(batch))
            if low < high:
                table = pa.Table.from_batches([batch.slice(low, high - low)])
                rows = explainer.rows_of(table, path_of(piece.source), bad, first=at + low + 1)
                yield explainer.with_cells(table, list(rows))
            at += len(batch)


def _of_rows(
    piece: Piece, explainer: Explainer, bad: BadRows, dialect: Dialect | None
) -> tuple[pa.Schema, Iterator[pa.Table]]:
    with _at_hand(piece.source) as path:
        kinds = pa.schema(_kinds(path, dialect))

    def tables() -> Iterator[pa.Table]:
        with _at_hand(piece.source) as path:
            given = explainer.given(stream_table(path, dialect=dialect, blank=True), bad)
            while rows := list(islice(given, BATCHES_PER_ROUND * explainer.batch_size)):
                table = pa.table(
                    [_column([row.row.get(field.name) for row in rows], field.type) for field in kinds], schema=kinds
                )
                yield explainer.with_cells(table, rows)

    return explainer.schema(kinds), tables()


@contextmanager
def _at_hand(address: str) -> Iterator[Path]:
    """The file on this machine; a copy where it is elsewhere."""
    if not is_remote(address):
        yield Path(address)
        return
    system, path = opened(address)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / Path(path).name
        with system.open_input_stream(path, compression=None) as raw, copy.open("wb") as file:
            shutil.copyfileobj(raw, file)
        try:
            yield copy
        except ValueError as error:
            raise DataError(str(error).replace(str(copy), address)) from None


def _kinds(path: Path, dialect: Dialect | None) -> list[tuple[str, pa.DataType]]:
    """What the columns hold: texts in CSV; for JSON and Excel the file is read through, since any row may add some."""
    stream = stream_table(path, dialect=dialect)
    if ending(path) in (".csv", ".tsv"):
        return [(name, pa.string()) for name in stream.columns]
    kinds: dict[str, pa.DataType] = {}
    while rows := list(islice(stream.rows, 1024)):
        usable = [row.row if isinstance(row, BadRow) else row for row in rows]
        for name in dict.fromkeys(name for row in usable for name in row):
            here = _kind([row.get(name) for row in usable])
            kinds[name] = _both(kinds[name], here) if name in kinds else here
    return [(name, AS_JSON if pa.types.is_null(kind) else kind) for name, kind in kinds.items()]


def _kind(values: Sequence[Any]) -> pa.DataType:
    try:
        kind = pa.array(values).type
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return AS_JSON
    plain = kind.value_type if pa.types.is_list(kind) else kind
    return AS_JSON if pa.types.is_nested(plain) else kind


def _both(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    try:
        schemas = [pa.schema([("", kind)]) for kind in (one, other)]
        return pa.unify_schemas(schemas, promote_options="permissive").types[0]
    except pa.ArrowException:
        return AS_JSON


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        plain = (value is None or isinstance(value, str) for value in values)
        values = [v if kept else json.dumps(v, default=str) for v, kept in zip(values, plain, strict=True)]
    return array(values, kind)
