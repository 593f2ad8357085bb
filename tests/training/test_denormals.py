import pytest
import torch

from rationalizer.models import configure
from rationalizer.training import train
from rationalizer.training.denormals import DENORMAL, denormals_are_zero, denormals_as_zero
from rationalizer.training.loop import TrainingLoop

pytestmark = pytest.mark.skipif(not torch.set_flush_denormal(False), reason="this processor has no such mode")


def test_mode_is_restored():
    assert not denormals_are_zero()
    with denormals_as_zero():
        assert denormals_are_zero()
        with denormals_as_zero():
            pass
        assert denormals_are_zero()
    assert not denormals_are_zero()
    with pytest.raises(KeyError), denormals_as_zero():
        raise KeyError
    assert not denormals_are_zero()


def test_mode_applies_to_all_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with denormals_as_zero():
            tiny = torch.full((1_000_000,), DENORMAL) * 0.5
    finally:
        torch.set_num_threads(before)
    assert not tiny.view(torch.int32).any()


def test_training_flushes_denormals(corpus, monkeypatch):
    seen = []
    step = TrainingLoop.training_step
    monkeypatch.setattr(TrainingLoop, "training_step", lambda *args: seen.append(denormals_are_zero()) or step(*args))
    train(corpus, configure("gumbel", {"epochs": 1, "hidden": 4}), device="cpu", threads=1)
    assert seen
    assert all(seen)
    assert not denormals_are_zero()
