"""Files that are either there whole or not at all, whenever the process dies. No pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import safetensors
import safetensors.torch
from torch import Tensor


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
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
    with replacing(path) as file:
        file.write(content)


def write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        content = text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, as broken texts have them
        content = (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()
    write_bytes(path, content)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); it was changed or written by something else") from None


def write_tensors(path: Path, tensors: Mapping[str, Tensor], state: Any = None) -> None:
    """Tensors, and a JSON value that belongs to them, in one safetensors file."""
    on_host = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = {} if state is None else {"state": json.dumps(state, allow_nan=False)}
    write_bytes(path, safetensors.torch.save(on_host, metadata))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], Any]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            state = (file.metadata() or {}).get("state")
            return {name: file.get_tensor(name) for name in file.keys()}, state and json.loads(state)  # noqa: SIM118
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file ({error}); it is damaged or something else") from None
