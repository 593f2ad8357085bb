"""Folders of Parquet shards. A shard is written completely or not at all, and records its source and model."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import fs, parquet

from rationalizer.bulk.chunks import Chunk
from rationalizer.bulk.filesystems import is_remote, join, resolve, walk

METADATA_KEY = b"rationalizer"
TABLES_PER_GROUP = 16  # smaller row groups compress badly, larger ones need memory
_LEFTOVER = re.compile(r"(.*/)?\.[^/]+\.[0-9a-f]{32}\.tmp")


def write_parquet(address: str, schema: pa.Schema, tables: Iterable[pa.Table], origin: dict[str, Any]) -> None:
    """Write tables to a Parquet file, under a temporary name until it is complete."""
    system, path = resolve(address)
    folder, _, name = path.rpartition("/")
    temporary = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
    if isinstance(system, fs.LocalFileSystem):  # object stores have no folders
        system.create_dir(folder)
    # The input's metadata does not describe the added columns; only pandas' stays valid.
    metadata = {key: value for key, value in (schema.metadata or {}).items() if key == b"pandas"}
    schema = schema.with_metadata({**metadata, METADATA_KEY: json.dumps(origin, sort_keys=True).encode()})
    try:
        with (
            system.open_output_stream(temporary, compression=None) as sink,
            parquet.ParquetWriter(sink, schema, compression="zstd") as writer,
        ):
            group: list[pa.Table] = []
            for table in tables:
                group.append(table.replace_schema_metadata(schema.metadata))
                if len(group) == TABLES_PER_GROUP:
                    writer.write_table(pa.concat_tables(group))
                    group = []
            if group:
                writer.write_table(pa.concat_tables(group))
        system.move(temporary, path)
    except BaseException:
        with suppress(OSError):
            system.delete_file(temporary)
        raise


@dataclass(frozen=True)
class ShardFolder:
    """A folder of shards; `model_key` identifies the model and its settings."""

    address: str
    model_key: str

    @property
    def is_remote(self) -> bool:
        return is_remote(self.address)

    def write(self, chunk: Chunk, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
        write_parquet(join(self.address, chunk.shard), schema, tables, self._origin(chunk))

    def is_finished(self, chunk: Chunk) -> bool:
        """Return whether the chunk's shard exists and is up to date; raise if another model wrote it."""
        shard = join(self.address, chunk.shard)
        origin = _read_origin(shard)
        if origin is not None and origin.get("made by") != self.model_key:
            raise ValueError(
                f"{shard} was made by another model, or with another budget, constraints or columns; use the same "
                "ones, another --out, or --overwrite"
            )
        return origin == self._origin(chunk)

    def names(self) -> set[str]:
        return {name for name, _ in walk(self.address) if name.endswith(".parquet")}

    def clear(self) -> None:
        """Remove all shards; raise if a Parquet file is not a shard."""
        shards = [join(self.address, name) for name in sorted(self.names())]
        foreign = next((shard for shard in shards if _read_origin(shard) is None), None)
        if foreign is not None:
            raise FileExistsError(f"{foreign} was not written by this command; remove it, or give another --out")
        for system, path in map(resolve, shards):
            system.delete_file(path)

    def clear_temporary_files(self) -> None:
        """Remove the incomplete shards of killed workers."""
        for name, _ in walk(self.address):
            if _LEFTOVER.fullmatch(name):
                system, path = resolve(join(self.address, name))
                with suppress(OSError):
                    system.delete_file(path)

    def _origin(self, chunk: Chunk) -> dict[str, Any]:
        return {"made by": self.model_key, "of": chunk.stamp, "first": chunk.first, "rows": chunk.rows}


def _read_origin(shard: str) -> dict[str, Any] | None:
    """Return the origin that a shard records; None if it does not exist, is damaged or is not a shard."""
    system, path = resolve(shard)
    if system.get_file_info(path).type != fs.FileType.File:
        return None
    with suppress(pa.ArrowException, OSError, ValueError, KeyError, TypeError), system.open_input_file(path) as file:
        return dict(json.loads(parquet.read_schema(file).metadata[METADATA_KEY]))
    return None
