"""Helpers that interrupt runs and compare resumed runs with uninterrupted ones."""

import pytest
import torch

from rationalizer.data import generated_reviews
from rationalizer.models import configure
from rationalizer.training import train
from rationalizer.training.loop import TrainingLoop

SMALL = {"hidden": 8, "epochs": 3, "min_epochs": 1, "batch_size": 16}


def weights(trained):
    return trained.model.state_dict()


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def train_for_long(run):
    """Train for 144 short steps with a checkpoint after each; resume if an earlier call was interrupted."""
    torch.set_num_threads(1)
    settings = {"hidden": 8, "vector_size": 8, "embeddings": None, "epochs": 6, "min_epochs": 6, "batch_size": 4}
    corpus = generated_reviews(train=96, dev=24, test=0)
    train(corpus, configure("hardkuma", {**settings, "checkpoint_seconds": 0}), run, resume=True)


class Killed(BaseException):
    """Ends a run in the middle of a step. A BaseException, so that no handler in the run catches it."""


def killed_after(monkeypatch, step):
    original = TrainingLoop.training_step

    def training_step(self, batch):
        if self.progress.step == step:
            raise Killed
        return original(self, batch)

    monkeypatch.setattr(TrainingLoop, "training_step", training_step)


def require_resumable(corpus, config, steps, folder, monkeypatch, **trainer):
    """Check that runs killed at each of these steps and resumed equal an uninterrupted run, and return that run."""
    trainer.setdefault("threads", torch.get_num_threads())  # another number changes the last digits
    expected = train(corpus, config, **trainer)
    for step in steps:
        run = folder / f"{step}"
        with monkeypatch.context() as patch:
            killed_after(patch, step)
            with pytest.raises(Killed):
                train(corpus, config, run, **trainer)
        resumed = train(corpus, config, run, resume=True, **trainer)
        assert same(weights(resumed), weights(expected)), step
        for key in ("best", "best_epoch", "steps"):
            assert resumed.history[key] == expected.history[key]
        losses = [[row["loss"] for row in metrics["epochs"]] for metrics in (resumed.history, expected.history)]
        assert losses[0] == losses[1]
    return expected
