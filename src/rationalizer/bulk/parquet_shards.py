"""Parquet files of a folder, each there whole or not at all, which say what they were made of and by what."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyarrow import fs, parquet

from rationalizer.bulk.filesystems import below, is_remote, opened, tree
from rationalizer.bulk.work_units import Piece

KEY = b"rationalizer"  # in a shard's metadata
ROUNDS = 16  # that are written as one row group: smaller ones are packed badly, larger ones take memory
_LEFTOVER = re.compile(r"\.[^/]+\.[0-9a-f]{32}\.tmp")


def write(address: str, schema: pa.Schema, tables: Iterable[pa.Table], made_of: dict[str, Any]) -> None:
    """Under another name until it is whole; nothing is left of it after an exception."""
    system, path = opened(address)
    folder, _, name = path.rpartition("/")
    beside = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
    if isinstance(system, fs.LocalFileSystem):  # others make folders by themselves, or have none
        system.create_dir(folder)
    # Of the input's own notes only pandas' stay true when columns are added.
    notes = {key: value for key, value in (schema.metadata or {}).items() if key == b"pandas"}
    schema = schema.with_metadata({**notes, KEY: json.dumps(made_of, sort_keys=True).encode()})
    try:
        with (
            system.open_output_stream(beside, compression=None) as sink,
            parquet.ParquetWriter(sink, schema, compression="zstd") as writer,
        ):
            waiting: list[pa.Table] = []
            for table in tables:
                waiting.append(table.replace_schema_metadata(schema.metadata))
                if len(waiting) == ROUNDS:
                    writer.write_table(pa.concat_tables(waiting))
                    waiting = []
            if waiting:
                writer.write_table(pa.concat_tables(waiting))
        system.move(beside, path)
    except BaseException:
        with suppress(OSError):
            system.delete_file(beside)
        raise


class Shards:
    """The shards of a folder.

    Args:
        folder: where they are.
        made_by: what tells the model and its settings from others.
    """

    def __init__(self, folder: str, made_by: str) -> None:
        self.folder, self.made_by = folder, made_by

    @property
    def are_remote(self) -> bool:
        return is_remote(self.folder)

    def write(self, piece: Piece, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
        write(self.address(piece), schema, tables, self._made_of(piece))

    def is_finished(self, piece: Piece) -> bool:
        """Whether the piece's shard is there. One of an earlier version of the file is not; one of another model is an
        error."""
        found = _made_of(self.address(piece))
        if found is not None and found.get("made by") != self.made_by:
            raise ValueError(
                f"{self.address(piece)} was made by another model, at another budget, or under other constraints or "
                "columns; give what it was made with, another --out, or --overwrite"
            )
        return found == self._made_of(piece)

    def names(self) -> set[str]:
        return {name for name, _ in tree(self.folder) if name.endswith(".parquet") and not _is_leftover(name)}

    def clear(self) -> None:
        """Removes all shards, whatever they were made of. An error where a Parquet file is no shard."""
        addresses = [below(self.folder, name) for name in sorted(self.names())]
        foreign = [address for address in addresses if _made_of(address) is None]
        if foreign:
            raise FileExistsError(f"{foreign[0]} was not written by this command; remove it, or give another --out")
        for system, path in map(opened, addresses):
            system.delete_file(path)

    def clear_leftovers(self) -> None:
        """Removes what killed workers left half written."""
        for name, _ in tree(self.folder):
            if _is_leftover(name):
                system, path = opened(below(self.folder, name))
                with suppress(OSError):
                    system.delete_file(path)

    def address(self, piece: Piece) -> str:
        return below(self.folder, piece.shard)

    def _made_of(self, piece: Piece) -> dict[str, Any]:
        return {"made by": self.made_by, "of": piece.stamp, "first": piece.first, "rows": piece.rows}


def _made_of(address: str) -> dict[str, Any] | None:
    """What a shard says of itself; None where there is none, or a damaged one."""
    system, path = opened(address)
    if system.get_file_info(path).type != fs.FileType.File:
        return None
    with suppress(pa.ArrowException, OSError, ValueError, KeyError, TypeError), system.open_input_file(path) as file:
        return dict(json.loads(parquet.read_schema(file).metadata[KEY]))
    return None


def _is_leftover(name: str) -> bool:
    return _LEFTOVER.fullmatch(name.rpartition("/")[2]) is not None
