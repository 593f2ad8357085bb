"""Damaged models and checkpoints: the same predictions as before, or a clear error; never other predictions."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.training.interrupted import Killed, killed_after

from rationalizer import Rationalizer
from rationalizer.models import configure
from rationalizer.training import train
from soak import small_models
from soak.cases import Case, Soak, Unclear, Wrong

# The most important files of an unfinished run and of a model; the others are damaged less often.
MAIN_FILES = (("checkpoint.safetensors",), ("config.json", "encoder.json", "model.safetensors"))
REPLACEMENTS: tuple[Any, ...] = (None, True, -1, 0, 1e300, "", "x", [], {}, [[]], {"x": 1})


def run(soak: Soak) -> None:
    model = small_models.train_small(soak.folder / "model")
    unfinished = _train_until_killed(soak.folder / "unfinished")
    texts = small_models.texts(20)
    explained, weights = _explain(model, texts), _finish_training(_copy(unfinished, soak.folder / "copy"))
    shutil.rmtree(soak.folder / "copy")

    def check_case(case: Case) -> None:
        is_model = case.number % 2 == 0
        folder = _copy(model if is_model else unfinished, soak.folder / f"case-{case.number}")
        files = sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in (".json", ".safetensors"))
        _damage(case, folder / case.pick(MAIN_FILES[is_model]) if case.chance(0.7) else case.pick(files))
        if is_model:
            _compare(lambda: _explain(folder, texts), explained, folder)
        else:
            _compare(lambda: _finish_training(folder), weights, folder)
        shutil.rmtree(folder)

    soak.check(100, check_case, seconds=60)


def _copy(source: Path, target: Path) -> Path:
    return Path(shutil.copytree(source, target))


def _explain(folder: Path, texts: list[str]) -> Any:
    return [explanation.to_dict() for explanation in Rationalizer.load(folder).explain(texts)]


def _train_until_killed(folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        killed_after(patch, 8)  # 6 steps an epoch
        with contextlib.suppress(Killed):
            _finish_training(folder)
    return folder


def _finish_training(folder: Path) -> Any:
    """Start or resume the training in a folder; return its final weights."""
    config = configure("spectra", {**small_models.SETTINGS, "checkpoint_seconds": 0})
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained = train(small_models.corpus(), config, folder, resume=True)
    return {name: tensor.numpy().tobytes() for name, tensor in trained.model.state_dict().items()}


def _compare(load: Callable[[], Any], expected: Any, folder: Path) -> None:
    try:
        found = load()
    except (ValueError, FileNotFoundError) as error:
        message = str(error)
        if str(folder) not in message:
            raise Unclear(f"the error does not name the file: {type(error).__name__}: {message}") from None
        if "\n" in message:
            raise Unclear(f"the error has several lines: {type(error).__name__}: {message}") from None
        return
    if found != expected:
        raise Wrong("loaded without an error, with other results")


def _damage(case: Case, path: Path) -> None:
    """Damage the file in a random way, and note which."""
    content = path.read_bytes()
    kinds = ["bit", "bit", "cut", "zeros", "empty", "deleted"]
    if path.suffix == ".json":
        kinds += ["key"] * 6
    kind = case.pick(kinds)
    if kind == "deleted":
        path.unlink()
        case.note(f"{path.name} deleted")
    elif kind == "key":
        path.write_text(json.dumps(_damage_key(case, path.name, json.loads(content))))
    else:
        path.write_bytes(_damaged_bytes(case, path.name, kind, content))


def _damaged_bytes(case: Case, name: str, kind: str, content: bytes) -> bytes:
    if kind == "empty":
        case.note(f"{name} emptied")
        return b""
    # Half of the damage is near the start, where headers are.
    offset = int(case.random.integers(len(content) if case.chance(0.5) else min(len(content), 200)))
    if kind == "cut":
        case.note(f"{name} cut to {offset} of {len(content)} bytes")
        return content[:offset]
    changed = bytearray(content)
    if kind == "zeros":
        size = min(int(case.random.integers(1, 513)), len(content) - offset)
        changed[offset : offset + size] = bytes(size)
        case.note(f"{name} with {size} zeros from byte {offset}")
    else:
        bit = int(case.random.integers(8))
        changed[offset] ^= 1 << bit
        case.note(f"{name} with bit {bit} of byte {offset} flipped")
    return bytes(changed)


def _damage_key(case: Case, name: str, value: Any) -> Any:
    """Delete, rename or retype one key (or entry) of a JSON value, at any depth."""
    container, path = value, name
    while True:
        keys = list(container) if isinstance(container, dict) else list(range(len(container)))
        key = case.pick(keys)
        path = f"{path}[{key!r}]"
        inner = container[key]
        if not isinstance(inner, (dict, list)) or not inner or case.chance(0.4):
            break
        container = inner
    kind = case.pick(["deleted", "renamed", "retyped"])
    if kind == "deleted":
        del container[key]
    elif kind == "renamed" and isinstance(container, dict):
        container[f"{key}x"] = container.pop(key)
    else:
        kind = "retyped"
        container[key] = case.pick([value for value in REPLACEMENTS if type(value) is not type(inner)])
        path += f" = {container[key]!r}"
    case.note(f"{path} {kind}")
    return value
