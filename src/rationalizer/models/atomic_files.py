"""Files that are either there whole or not at all, whenever the process dies, and that say so when they have changed
since. No pickle.

What a run is made of has a checksum inside: a disk, a copy or a hand that changed a bit of it would otherwise give
another model without a word. SHA-256 of 200 MB takes 0.17 s, writing them 0.4 s and more.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from rationalizer.models.json_schema import find_mismatch

RECOPY_REMEDY = "copy it again, or train again"
LEFTOVER = re.compile(r"\..+\.(\d+)\.tmp")  # what `replacing` leaves behind when its process is killed


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` in one step at the end, or is gone after an exception."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    if os.name == "posix":  # the rename itself is on the disk only with its directory
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def write_bytes(path: Path, content: bytes) -> None:
    """Replaces the file in one step."""
    with replace_file(path) as file:
        file.write(content)


def write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        content = text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, as broken texts have them
        content = (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()
    write_bytes(path, content)


def read_json(path: Path, remedy: str = RECOPY_REMEDY) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not JSON ({error}); it was changed or written by something else: {remedy}"
        ) from None


def write_record(path: Path, value: Mapping[str, Any]) -> None:
    """A JSON object with its checksum."""
    write_json(path, {**value, "checksum": _sha256(_canonical(value))})


def read_record(path: Path, shape: Any = dict, remedy: str = RECOPY_REMEDY) -> Any:
    """What `write_record` wrote, if it is still the same and of this shape (see `checks.py`)."""
    return verify_record(read_json(path, remedy), path, shape, remedy)


def verify_record(stored: Any, path: Path, shape: Any = dict, remedy: str = RECOPY_REMEDY) -> Any:
    """The content of a record that was read from `path`, without its checksum."""
    if wrong := find_mismatch(stored, {"checksum": str, str: object}):
        raise ValueError(f"{path} is not a file of this version: {wrong}; {remedy}")
    value = {key: item for key, item in stored.items() if key != "checksum"}
    if _sha256(_canonical(value)) != stored["checksum"]:
        raise ValueError(f"{path} is damaged or was edited by hand: its checksum is of another content; {remedy}")
    if wrong := find_mismatch(value, shape):
        raise ValueError(f"{path}: {wrong}; {remedy}")
    return value


def write_tensors(path: Path, tensors: Mapping[str, Tensor], state: Any = None) -> None:
    """Tensors, and a JSON value that belongs to them, in one safetensors file."""
    on_host = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # In one entry: safetensors writes several in any order, and equal models shall be equal files.
    record = {"checksum": checksum(on_host, state), "state": state}
    write_bytes(path, safetensors.torch.save(on_host, {"record": json.dumps(record, allow_nan=False)}))


def read_tensors(path: Path, remedy: str = RECOPY_REMEDY) -> tuple[dict[str, Tensor], Any]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            # Copies: what safetensors gives is the file itself, and a file written over would end the process.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            stored = json.loads((file.metadata() or {}).get("record", "null"))
    except (safetensors.SafetensorError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a safetensors file ({error}); it is damaged or something else: {remedy}"
        ) from None
    if stored is None:
        raise ValueError(f"{path} has no checksum; it was written by another version or something else: {remedy}")
    if (
        find_mismatch(stored, {"checksum": str, "state": object})
        or checksum(tensors, stored["state"]) != stored["checksum"]
    ):
        raise ValueError(f"{path} is damaged: its checksum is of another content; {remedy}")
    return tensors, stored["state"]


def checksum(tensors: Mapping[str, Tensor], state: Any) -> str:
    """SHA-256 of tensors, their names, types and shapes, and of the JSON value that belongs to them."""
    names = sorted(tensors)
    head = [state, [[name, str(tensors[name].dtype), list(tensors[name].shape)] for name in names]]
    return _sha256(_canonical(head), *(tensors[name].reshape(-1).view(torch.uint8).numpy() for name in names))


def _canonical(value: Any) -> bytes:
    """The same for a value and for what is read again of it, in which all keys are texts and tuples are lists."""
    return json.dumps(json.loads(json.dumps(value)), sort_keys=True, allow_nan=False).encode()


def _sha256(*parts: Any) -> str:
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part)
    return sha.hexdigest()


def clear_leftovers(directory: Path) -> None:
    """Removes what killed processes left half written. Files of living ones stay."""
    for path in directory.glob(".*.tmp"):
        match = LEFTOVER.fullmatch(path.name)
        if match and path.is_file() and not _lives(int(match[1])):
            with suppress(OSError):
                path.unlink()


def _lives(process: int) -> bool:
    if sys.platform == "win32":  # where a file that is being written cannot be removed anyway
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        return True
    return True
