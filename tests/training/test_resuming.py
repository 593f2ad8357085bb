"""Interrupted runs resume to the same result."""

import os
import random
import signal
import time
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import torch

from rationalizer.data import generated_pairs
from rationalizer.data import generated_reviews as reviews
from rationalizer.models import TrainedModel, configure
from rationalizer.models.atomic_files import read_tensors
from rationalizer.training import train
from rationalizer.training.loop import TrainingLoop
from tests.training.interrupted import SMALL, Killed, killed_after, require_resumable, same, train_for_long, weights

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("method", "settings", "steps"),  # 6 steps an epoch
    [
        ("spectra", {}, (0, 3, 5, 6, 17)),
        ("spectra", {"tuned": False, "lower": False}, (3, 6)),  # frozen vectors are random
        ("spectra", {"averaging": 0.0, "embeddings": None, "start_spread": 1.0}, (3, 6)),
        (
            "full-text",
            {"batch_tokens": 250, "warmup": 0.2, "decay": True},
            (7, 12),
        ),  # the number of steps per epoch varies
        ("spectra", {"budget": "18% on average, 8% to 35%"}, (3, 11)),
        ("sfe-baseline", {}, (5, 11)),
        ("hardkuma", {}, (5, 11)),
    ],
)
def test_resumed_run_equals_uninterrupted_run(corpus, method, settings, steps, tmp_path, monkeypatch):
    config = configure(method, {**SMALL, **settings, "checkpoint_seconds": 0})
    require_resumable(corpus, config, steps, tmp_path, monkeypatch)


@pytest.mark.parametrize("method", ["spectra", "at-most-one"])
def test_double_precision(method, tmp_path, monkeypatch):
    """Losses of a resumed float64 run are equal bit for bit. Saved weights are float32."""
    pairs = method == "at-most-one"
    corpus = (generated_pairs if pairs else reviews)(train=32, dev=8, test=0)
    config = configure(method, {**SMALL, "epochs": 1, "embeddings": None, "checkpoint_seconds": 0}, pairs=pairs)
    double = require_resumable(corpus, config, [1], tmp_path, monkeypatch, device="cpu", precision="64-true")
    kept = weights(TrainedModel.load(tmp_path / "1"))
    assert same(kept, weights(double))
    assert all(value.dtype != torch.float64 for value in kept.values())
    losses = [each.history["epochs"][0]["loss"] for each in (double, train(corpus, config))]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def checkpoint_time(run: Path) -> int:
    try:
        return os.stat(run / "checkpoint.safetensors").st_mtime_ns
    except FileNotFoundError:
        return 0


def test_killed_processes_resume_to_the_same_weights(tmp_path):
    """Real processes, ended at random moments while they train and write; asked to, none says that it is done."""
    context = get_context("forkserver")  # imports are shared by both processes
    context.set_forkserver_preload(["lightning_fabric", "tests.training.interrupted"])
    run, generator, at = tmp_path / "run", random.Random(0), []
    for sign, code in ((signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)):
        process, before = context.Process(target=train_for_long, args=(run,)), checkpoint_time(run)
        process.start()
        while checkpoint_time(run) == before and process.is_alive():
            time.sleep(0.01)
        time.sleep(generator.uniform(0, 0.4))
        os.kill(process.pid, sign)
        process.join(timeout=60)
        assert process.exitcode == code, f"the run ended before it was told to; checkpoints at {at}"
        at.append(read_tensors(run / "checkpoint.safetensors")[1]["progress"]["step"])
    train_for_long(run)
    train_for_long(tmp_path / "whole")
    assert at == sorted(set(at))
    assert at[-1] > 0
    assert (run / "model.safetensors").read_bytes() == (tmp_path / "whole/model.safetensors").read_bytes()
    assert not [path for path in run.iterdir() if "checkpoint" in path.name or path.suffix == ".tmp"]


def test_finished_run_is_loaded(corpus, tmp_path, monkeypatch):
    config = configure("spectra", {**SMALL, "epochs": 1})
    trained = train(corpus, config, tmp_path)
    monkeypatch.setattr(TrainingLoop, "training_step", None)
    assert same(weights(train(corpus, config, tmp_path, resume=True)), weights(trained))


def test_resume_with_other_settings_or_data_raises(corpus, tmp_path, monkeypatch):
    config = configure("spectra", {**SMALL, "checkpoint_seconds": 0})
    with monkeypatch.context() as patch:
        killed_after(patch, 4)
        with pytest.raises(Killed):
            train(corpus, config, tmp_path)
    with pytest.raises(FileExistsError, match="already holds a run"):
        train(corpus, config, tmp_path)
    with pytest.raises(FileNotFoundError, match="unfinished run"):
        TrainedModel.load(tmp_path)
    with pytest.raises(ValueError, match="a run with hidden = 8, not 9"):
        train(corpus, replace(config, encoder_options={**config.encoder_options, "hidden": 9}), tmp_path, resume=True)
    shorter = replace(corpus, dev=corpus.dev[:-1])
    with pytest.raises(ValueError, match="a run with other training data"):
        train(shorter, config, tmp_path, resume=True)
    train(corpus, replace(config, checkpoint_seconds=60.0), tmp_path, resume=True)
    with pytest.raises(ValueError, match="a run with seed = 0, not 1"):
        train(corpus, replace(config, seed=1), tmp_path, resume=True)
    with pytest.raises(ValueError, match="a run with other training data"):  # also for a finished run
        train(shorter, config, tmp_path, resume=True)


def test_missing_run_raises(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no trained model: config\.json"):
        TrainedModel.load(tmp_path)
    with pytest.raises(ValueError, match="needs the run_dir"):
        train(reviews(train=4, dev=2, test=0), configure(), resume=True)


def test_pretrained_vectors_are_frozen_and_not_read_again(corpus, tmp_path, monkeypatch):
    words = sorted({token.lower() for example in corpus.train for token in example.tokens})
    word = words[len(words) // 2]
    generator = np.random.default_rng(0)
    source = tmp_path / "vectors.txt"
    table = {word: generator.normal(size=5).round(3) for word in words}
    source.write_text("".join(f"{word} {' '.join(map(str, table[word]))}\n" for word in words))
    config = configure("spectra", {**SMALL, "embeddings": str(source), "checkpoint_seconds": 0})
    expected = train(corpus, config)
    vectors = expected.encoder.vectors
    assert vectors.size == 5
    row = vectors.decoded()[vectors.words.index(word)]
    assert row.tolist() == pytest.approx(table[word].tolist(), abs=np.abs(table[word]).max() / 250)
    with monkeypatch.context() as patch:
        killed_after(patch, 8)
        with pytest.raises(Killed):
            train(corpus, config, tmp_path / "run")
    source.unlink()
    assert same(weights(train(corpus, config, tmp_path / "run", resume=True)), weights(expected))
