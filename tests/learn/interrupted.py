"""Runs that end in the middle, and what is compared of those that go on."""

import torch

from rationalizer.learn.module import Learner

SMALL = {"hidden": 8, "epochs": 3, "min_epochs": 1, "batch_size": 16}


def weights(trained):
    return trained.model.state_dict()


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


class Killed(BaseException):
    """Ends a run in the middle of a step, as nothing within the run can."""


def killed_after(monkeypatch, step):
    original = Learner.training_step

    def training_step(self, batch, batch_idx):
        if self.progress.step == step:
            raise Killed
        return original(self, batch, batch_idx)

    monkeypatch.setattr(Learner, "training_step", training_step)
