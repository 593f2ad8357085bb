"""Files that are written completely or not at all, whenever the process dies, and that detect changes. No pickle.

All files of a run contain a checksum: without it a flipped bit or an edit would silently give another model. The
checksum detects damage, not forgery: it has no key, so whoever can write the file can compute it. SHA-256 of 200 MB
takes 0.17 s, writing them at least 0.4 s.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import safetensors
from numpy.typing import NDArray

from rationalizer.models.json_schema import find_mismatch

if TYPE_CHECKING:  # PyTorch takes seconds to import, and exported models do without it
    from torch import Tensor

RECOPY_REMEDY = "copy it again, or train again"
LEFTOVER = re.compile(r"\..+\.(\d+)\.tmp")  # left by `replace_file` if its process is killed


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write, which replaces `path` atomically at the end, and is deleted after an exception."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    if os.name == "posix":  # the rename is on disk once the directory is
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file atomically."""
    with replace_file(path) as file:
        file.write(content)


def write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        content = text.encode()
    except UnicodeEncodeError:  # a lone surrogate, from a broken text
        content = (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()
    write_bytes(path, content)


def read_json(path: Path, remedy: str = RECOPY_REMEDY) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON ({error}): {remedy}") from None


def write_record(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object with its checksum."""
    write_json(path, {**value, "checksum": _sha256(_canonical(value))})


def read_record(path: Path, schema: Any = dict, remedy: str = RECOPY_REMEDY) -> Any:
    """Return the content that `write_record` wrote; ValueError if it has changed or does not match the schema."""
    return verify_record(read_json(path, remedy), path, schema, remedy)


def verify_record(stored: Any, path: Path, schema: Any = dict, remedy: str = RECOPY_REMEDY) -> Any:
    """Return the content of a record read from `path`, without its checksum."""
    if problem := find_mismatch(stored, {"checksum": str, str: object}):
        raise ValueError(f"{path} has no checksum: {problem}; {remedy}")
    value = {key: item for key, item in stored.items() if key != "checksum"}
    if _sha256(_canonical(value)) != stored["checksum"]:
        raise ValueError(f"{path} is damaged or was edited by hand: wrong checksum; {remedy}")
    if problem := find_mismatch(value, schema):
        raise ValueError(f"{path}: {problem}; {remedy}")
    return value


def write_tensors(path: Path, tensors: Mapping[str, Tensor], state: Any = None) -> None:
    """Write tensors and a JSON value into one safetensors file."""
    import safetensors.torch

    on_host = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # One entry: safetensors writes several in any order, and equal models must be equal files.
    record = {"checksum": checksum(on_host, state), "state": state}
    write_bytes(path, safetensors.torch.save(on_host, {"record": json.dumps(record, allow_nan=False)}))


def read_tensors(path: Path, remedy: str = RECOPY_REMEDY) -> tuple[dict[str, Tensor], Any]:
    # Copies: safetensors maps the file into memory, and overwriting it would crash the process.
    return _read(path, "pt", lambda tensor: tensor.clone(), checksum, remedy)


def read_arrays(path: Path, remedy: str = RECOPY_REMEDY) -> tuple[dict[str, NDArray[Any]], Any]:
    """The same as NumPy arrays, without PyTorch."""
    return _read(path, "np", np.array, _checksum_of_arrays, remedy)


def _read(path: Path, framework: str, copy: Callable[[Any], Any], checksum: Callable[..., str], remedy: str) -> Any:
    try:
        with safetensors.safe_open(path, framework=framework) as file:
            tensors = {name: copy(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
            stored = json.loads((file.metadata() or {}).get("record", "null"))
        is_record = find_mismatch(stored, {"checksum": str, "state": object}) is None
        is_intact = is_record and checksum(tensors, stored["state"]) == stored["checksum"]
    except (safetensors.SafetensorError, ValueError, TypeError, RuntimeError) as error:  # also RecursionError
        raise ValueError(f"{path} is damaged or not a safetensors file ({error}): {remedy}") from None
    if stored is None:
        raise ValueError(f"{path} has no checksum; it was not written by this package: {remedy}")
    if not is_intact:
        raise ValueError(f"{path} is damaged: wrong checksum; {remedy}")
    return tensors, stored["state"]


def checksum(tensors: Mapping[str, Tensor], state: Any) -> str:
    """Return the SHA-256 of tensors with their names, types and shapes, and of a JSON value."""
    import torch

    return _checksum(
        {n: (str(t.dtype), list(t.shape), t.reshape(-1).view(torch.uint8).numpy()) for n, t in tensors.items()}, state
    )


def _checksum_of_arrays(arrays: Mapping[str, NDArray[Any]], state: Any) -> str:
    return _checksum(
        {n: (f"torch.{a.dtype}", list(a.shape), a.reshape(-1).view(np.uint8)) for n, a in arrays.items()}, state
    )


def _checksum(tensors: Mapping[str, tuple[str, list[int], Any]], state: Any) -> str:
    """The checksum of tensors given as type, shape and bytes."""
    entries = [(name, *tensors[name]) for name in sorted(tensors)]
    head = [state, [[name, kind, shape] for name, kind, shape, _ in entries]]
    return _sha256(_canonical(head), *(content for *_, content in entries))


def _canonical(value: Any) -> bytes:
    """Return bytes that are equal for a value and for the same value after a round trip through JSON."""
    return json.dumps(json.loads(json.dumps(value)), sort_keys=True, allow_nan=False).encode()


def _sha256(*parts: Any) -> str:
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part)
    return sha.hexdigest()


def clear_leftovers(directory: Path) -> None:
    """Remove unfinished files of killed processes. Files of running processes stay."""
    for path in directory.glob(".*.tmp"):
        match = LEFTOVER.fullmatch(path.name)
        if match and path.is_file() and not _is_running(int(match[1])):
            with suppress(OSError):
                path.unlink()


def _is_running(process: int) -> bool:
    if sys.platform == "win32":  # Windows cannot remove an open file
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's
        return True
    return True
