"""Folders of Parquet shards. A shard is written completely or not at all, and records its source and model."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from pyarrow import fs, parquet

from rationalizer.bulk.chunks import Chunk
from rationalizer.bulk.filesystems import is_remote, join, resolve, walk

METADATA_KEY = b"rationalizer"
_RECORD = re.compile(rb'rationalizer.{1,8}\{"', re.DOTALL)  # the key and the beginning of the origin in a file's footer
_FOOTER_BYTES = 2**20  # from the end of a file, in which its origin is searched
ShardState = Literal["finished", "outdated", "damaged"]
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
    record = {**origin, "checksum": _checksum(origin, _as_read_again(schema))}
    schema = schema.with_metadata({**metadata, METADATA_KEY: json.dumps(record, sort_keys=True).encode()})
    try:
        with (
            system.open_output_stream(temporary, compression=None) as sink,
            parquet.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True) as writer,
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

    def check(self, chunk: Chunk) -> ShardState:
        """Read the chunk's existing shard; raise if another model or another program wrote it."""
        shard = join(self.address, chunk.shard)
        if not (_is_shard(shard) or _is_cut_off(shard)):
            raise _foreign(shard)
        origin = _read_origin(shard)
        if origin is None:
            return "damaged"
        if origin.get("made by") != self.model_key:
            raise ValueError(
                f"{shard} was made by another model, or with another budget, constraints or columns; use the same "
                "ones, another --out, or --overwrite"
            )
        return "finished" if origin == self._origin(chunk) else "outdated"

    def names(self) -> set[str]:
        return {name for name, _ in walk(self.address) if name.endswith(".parquet")}

    def clear(self) -> None:
        """Remove all shards; raise if a Parquet file is not a shard."""
        shards = [join(self.address, name) for name in sorted(self.names())]
        foreign = next((shard for shard in shards if not _is_shard(shard)), None)
        if foreign is not None:
            raise _foreign(foreign)
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


def _is_shard(address: str) -> bool:
    """Return whether `write_parquet` wrote the file. This does not need an undamaged file."""
    system, path = resolve(address)
    with system.open_input_file(path) as file:
        file.seek(max(0, file.size() - _FOOTER_BYTES))
        return _RECORD.search(file.read()) is not None


def _is_cut_off(address: str) -> bool:
    """Return whether the file is the beginning of a Parquet file, which nothing can read."""
    system, path = resolve(address)
    with system.open_input_file(path) as file:
        head = file.read(4)
        file.seek(max(0, file.size() - 4))
        return b"PAR1".startswith(head) and file.read(4) != b"PAR1"


def _foreign(address: str) -> FileExistsError:
    return FileExistsError(f"{address} was not written by this command; remove it, or give another --out")


def _read_origin(shard: str) -> dict[str, Any] | None:
    """Read the whole shard and return the origin that it records; None if it is damaged."""
    system, path = resolve(shard)
    try:
        with (
            system.open_input_file(path) as file,
            parquet.ParquetFile(file, page_checksum_verification=True) as content,
        ):
            rows = sum(len(batch) for batch in content.iter_batches())
            schema = content.schema_arrow
            origin = dict(json.loads(schema.metadata[METADATA_KEY]))
            checksum = origin.pop("checksum")
            complete = rows == content.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        return None
    return origin if complete and checksum == _checksum(origin, schema) else None


def _checksum(origin: dict[str, Any], schema: pa.Schema) -> str:
    """Return the checksum of what the checksums of Parquet pages do not include."""
    columns = schema.to_string(show_field_metadata=False, show_schema_metadata=False)
    return hashlib.sha256(json.dumps([origin, columns], sort_keys=True).encode()).hexdigest()


def _as_read_again(schema: pa.Schema) -> pa.Schema:
    """Return the schema as a Parquet file stores it: the names of list elements may change."""
    file = pa.BufferOutputStream()
    parquet.write_table(schema.empty_table(), file)
    return parquet.read_schema(pa.BufferReader(file.getvalue()))
