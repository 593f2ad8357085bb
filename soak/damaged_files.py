"""Damaged models and checkpoints: either all is as before, or a clear error; never other predictions."""

from __future__ import annotations

import contextlib
import io
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
from soak.damage import damage

# What matters most, of an unfinished run and of a model; the other files are damaged less often.
LOADED = (("checkpoint.safetensors",), ("config.json", "encoder.json", "model.safetensors"))


def run(soak: Soak) -> None:
    model = small_models.train_small(soak.folder / "model")
    unfinished = _train_until_killed(soak.folder / "unfinished")
    texts = small_models.texts(20)
    said, finished = _said(model, texts), _finished(_copy(unfinished, soak.folder / "copy"))
    shutil.rmtree(soak.folder / "copy")

    def judge(case: Case) -> None:
        of_model = case.number % 2 == 0
        folder = _copy(model if of_model else unfinished, soak.folder / f"case-{case.number}")
        files = sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in (".json", ".safetensors"))
        damage(case, folder / case.pick(LOADED[of_model]) if case.chance(0.7) else case.pick(files))
        if of_model:
            _compare(lambda: _said(folder, texts), said, folder)
        else:
            _compare(lambda: _finished(folder), finished, folder)
        shutil.rmtree(folder)

    soak.check(100, judge, seconds=60)


def _copy(source: Path, target: Path) -> Path:
    return Path(shutil.copytree(source, target))


def _said(folder: Path, texts: list[str]) -> Any:
    return [explanation.to_dict() for explanation in Rationalizer.load(folder).explain(texts)]


def _train_until_killed(folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        killed_after(patch, 8)  # 6 steps an epoch
        with contextlib.suppress(Killed):
            _finished(folder)
    return folder


def _finished(folder: Path) -> Any:
    """The weights at which a training ends that is begun, or taken up, in a folder."""
    config = configure("spectra", {**small_models.SETTINGS, "checkpoint_seconds": 0})
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained = train(small_models.corpus(), config, folder, resume=True)
    return {name: tensor.numpy().tobytes() for name, tensor in trained.model.state_dict().items()}


def _compare(load: Callable[[], Any], expected: Any, folder: Path) -> None:
    try:
        found = load()
    except (ValueError, FileNotFoundError) as error:
        said = str(error)
        if str(folder) not in said:
            raise Unclear(f"the error does not name the file: {type(error).__name__}: {said}") from None
        if "\n" in said:
            raise Unclear(f"the error has several lines: {type(error).__name__}: {said}") from None
        return
    if found != expected:
        raise Wrong("loaded, and says something else")
