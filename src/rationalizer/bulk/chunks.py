"""Chunks of files: some rows of a Parquet file, or all rows of another file. Each becomes one shard."""

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

from rationalizer.bulk.batch_explainer import Explainer, make_array
from rationalizer.bulk.filesystems import SourceFile, is_remote, resolve, without_options
from rationalizer.data import BadRows, Dialect
from rationalizer.data.bad_rows import BadRow
from rationalizer.data.column_names import check_unique
from rationalizer.data.file_content import ending
from rationalizer.data.read_options import BATCHES_PER_ROUND
from rationalizer.data.table_files import stream_table
from rationalizer.text.errors import DataError

JSON_TEXT = pa.string()  # for columns with values of several types, and for objects


@dataclass(frozen=True)
class Chunk:
    """`rows` rows of a file after its `first` ones (None: all rows), and the name of their shard."""

    source: str
    first: int
    rows: int | None
    shard: str
    stamp: str

    def __str__(self) -> str:
        return self.source if self.rows is None else f"{self.source}, rows {self.first + 1} to {self.first + self.rows}"


def split_file(file: SourceFile, explainer: Explainer, rows: int, dialect: Dialect | None) -> list[Chunk]:
    """Split a Parquet file into chunks of up to `rows` rows; any other file is one chunk.

    Raises `DataError` if the file has no columns of texts for the model.
    """
    path = without_options(file.address)
    if ending(path) != ".parquet":
        if not is_remote(file.address):  # remote files are copied first, by the worker that reads them
            explainer.resolve_columns(stream_table(path, dialect=dialect).columns, path)
        return [Chunk(file.address, 0, None, f"{file.relative}-00000.parquet", file.stamp)]
    with _open_parquet(file.address) as opened:
        names, total = opened.schema_arrow.names, opened.metadata.num_rows
    check_unique(names, path)
    explainer.resolve_columns(names, path)
    return [
        Chunk(file.address, first, min(rows, total - first), f"{file.relative}-{number:05}.parquet", file.stamp)
        for number, first in enumerate(range(0, max(total, 1), rows))
    ]


def explain_chunk(
    chunk: Chunk, explainer: Explainer, bad: BadRows, dialect: Dialect | None
) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """Return the schema of the explained rows, and an iterator over them as tables."""
    if ending(without_options(chunk.source)) == ".parquet":
        with _open_parquet(chunk.source) as file:
            return explainer.schema(file.schema_arrow), _explain_parquet(chunk, explainer, bad)
    with _local_copy(chunk.source) as path:
        schema = pa.schema(_column_types(path, dialect))
    return explainer.schema(schema), _explain_rows(chunk, explainer, bad, dialect, schema)


@contextmanager
def _open_parquet(address: str) -> Iterator[Any]:
    system, path = resolve(address)
    try:
        with system.open_input_file(path) as raw, parquet.ParquetFile(raw) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        problem = f"damaged Parquet data ({str(error).strip()})"
        raise DataError(problem, "copy the file again", path=address) from error


def _explain_parquet(chunk: Chunk, explainer: Explainer, bad: BadRows) -> Iterator[pa.Table]:
    assert chunk.rows is not None
    path, last = without_options(chunk.source), chunk.first + chunk.rows
    with _open_parquet(chunk.source) as file:
        groups, start, position = [], 0, None
        for k in range(file.metadata.num_row_groups):
            end = start + file.metadata.row_group(k).num_rows
            if start < last and chunk.first < end:
                groups.append(k)
                position = start if position is None else position
            start = end
        if position is None:
            return
        for batch in file.iter_batches(BATCHES_PER_ROUND * explainer.batch_size, row_groups=groups):
            low, high = max(chunk.first - position, 0), min(last - position, len(batch))
            if low < high:
                table = pa.Table.from_batches([batch.slice(low, high - low)])
                yield explainer.explain_batch(table, path, bad, first=position + low + 1)
            position += len(batch)


def _explain_rows(
    chunk: Chunk, explainer: Explainer, bad: BadRows, dialect: Dialect | None, schema: pa.Schema
) -> Iterator[pa.Table]:
    with _local_copy(chunk.source) as path:
        rows = explainer.iter_rows(stream_table(path, dialect=dialect, blank=True), bad)
        while batch := list(islice(rows, BATCHES_PER_ROUND * explainer.batch_size)):
            columns = [_column([row.row.get(field.name) for row in batch], field.type) for field in schema]
            yield explainer.add_columns(pa.table(columns, schema=schema), batch, bad)


@contextmanager
def _local_copy(address: str) -> Iterator[Path]:
    """Give the path of a local file, or of a temporary copy of a remote one."""
    if not is_remote(address):
        yield Path(address)
        return
    system, path = resolve(address)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / Path(path).name
        with system.open_input_stream(path, compression=None) as raw, copy.open("wb") as file:
            shutil.copyfileobj(raw, file)
        try:
            yield copy
        except DataError as error:
            raise DataError(error.problem, error.remedy, path=address, row=error.row, line=error.line) from None


def _column_types(path: Path, dialect: Dialect | None) -> list[tuple[str, pa.DataType]]:
    """Return the columns and their types: strings in CSV; JSON and Excel are read whole, as any row may add columns."""
    stream = stream_table(path, dialect=dialect)
    if ending(path) in (".csv", ".tsv"):
        return [(name, pa.string()) for name in stream.columns]
    types: dict[str, pa.DataType] = {}
    while rows := list(islice(stream.rows, 1024)):
        parsed = [row.row if isinstance(row, BadRow) else row for row in rows]
        for name in dict.fromkeys(name for row in parsed for name in row):
            kind = _type_of([row.get(name) for row in parsed])
            types[name] = _common_type(types[name], kind) if name in types else kind
    return [(name, JSON_TEXT if pa.types.is_null(kind) else kind) for name, kind in types.items()]


def _type_of(values: Sequence[Any]) -> pa.DataType:
    try:
        kind = pa.array(values).type
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return JSON_TEXT
    element = kind.value_type if pa.types.is_list(kind) else kind
    return JSON_TEXT if pa.types.is_nested(element) else kind


def _common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    try:
        schemas = [pa.schema([("", kind)]) for kind in (one, other)]
        return pa.unify_schemas(schemas, promote_options="permissive").types[0]
    except pa.ArrowException:
        return JSON_TEXT


def _column(values: Sequence[Any], kind: pa.DataType) -> Any:
    if pa.types.is_string(kind):
        values = [v if v is None or isinstance(v, str) else json.dumps(v, default=str) for v in values]
    return make_array(values, kind)
