"""The number of threads is measured; measuring does not change the result."""

import pytest
import torch

from rationalizer.models import configure
from rationalizer.models.devices import set_threads
from rationalizer.nn.encoders.vector_bilstm import VectorEncoder
from rationalizer.training import loop, train, trainer
from rationalizer.training.threads import LONG_STEP, RECENT, StepClock, fewest_threads, time_thread_numbers
from tests.training.interrupted import SMALL, Killed, killed_after, same, weights

CONFIG = configure("sfe", {**SMALL, "embeddings": None, "epochs": 1, "constraints": "never=stopwords"})


@pytest.mark.parametrize(
    ("seconds", "tried", "chosen"),
    [
        ({8: 0.9, 4: 0.5, 2: 0.3, 1: 0.2}, [8, 4, 2, 1], 1),  # a small model
        ({8: 0.2, 4: 0.4}, [8, 4], 8),  # a large model: two trials suffice
        ({8: 0.3, 4: 0.2, 2: 0.21, 1: 0.4}, [8, 4, 2, 1], 2),  # fewer threads are as fast
        ({6: 0.3, 3: 0.29, 1: 0.28}, [6, 3, 1], 1),
        ({2: 20 * LONG_STEP, 1: LONG_STEP / 2}, [2, 1], 1),  # cores are busy with other programs
    ],
)
def test_fewest_threads_within_tolerance_are_used(seconds, tried, chosen):
    now, steps = [0.0], []

    def step():
        steps.append(torch.get_num_threads())
        now[0] += seconds[steps[-1]]

    before = torch.get_num_threads()
    taken = time_thread_numbers(step, max(seconds), clock=lambda: now[0])
    assert torch.get_num_threads() == before
    assert list(dict.fromkeys(steps)) == tried
    assert taken == pytest.approx({number: seconds[number] for number in tried})
    assert fewest_threads(taken) == chosen
    assert all(steps.count(number) == 1 for number in tried if seconds[number] > LONG_STEP)


def test_steps_that_become_slower_are_noticed():
    clock = StepClock()
    assert not any(clock.is_slower(10 * k, k) for k in range(1, 40))  # longer texts take longer
    slow = [clock.is_slower(10, 6) for _ in range(2 * RECENT)]
    assert slow.count(True) == 1  # then the slow steps are the measure


def test_small_models_use_one_thread(corpus):
    with set_threads(2):
        small = train(corpus, CONFIG)
        assert torch.get_num_threads() == 2
    assert small.history["threads"] == 1


@pytest.fixture
def large(monkeypatch):
    """Models count as large enough for several threads."""
    monkeypatch.setattr(VectorEncoder, "uses_threads", True)


def test_measured_threads_equal_explicit_threads(corpus, large):
    with set_threads(2):
        measured = train(corpus, CONFIG)
    assert measured.history["threads"] in (1, 2)
    told = train(corpus, CONFIG, threads=measured.history["threads"])
    assert same(weights(measured), weights(told))
    assert told.history["threads"] == measured.history["threads"]


def test_slower_steps_reduce_threads(corpus, large, monkeypatch):
    monkeypatch.setattr(trainer, "measure_threads", lambda *_: {2: 1.0, 1: 2.0})
    monkeypatch.setattr(loop, "measure_threads", lambda *_: {2: 9.0, 1: 1.0})
    monkeypatch.setattr(StepClock, "is_slower", lambda *_: True)
    with set_threads(2):
        assert train(corpus, CONFIG).history["threads"] == 1
        assert train(corpus, CONFIG, threads=2).history["threads"] == 2  # the user's choice
        assert torch.get_num_threads() == 2


def test_resumed_run_keeps_its_threads(corpus, large, tmp_path, monkeypatch):
    config = configure("sfe", {**SMALL, "embeddings": None, "epochs": 1, "checkpoint_seconds": 0})
    monkeypatch.setattr(trainer, "measure_threads", lambda *_: {2: 2.0, 1: 1.0})
    with set_threads(2):
        with monkeypatch.context() as patch:
            killed_after(patch, 3)
            with pytest.raises(Killed):
                train(corpus, config, tmp_path / "run")
        monkeypatch.setattr(trainer, "measure_threads", lambda *_: {2: 1.0, 1: 2.0})
        assert train(corpus, config, tmp_path / "run", resume=True).history["threads"] == 1


def test_zero_threads_raise(corpus):
    with pytest.raises(ValueError, match="threads must be at least 1, got 0"):
        train(corpus, CONFIG, threads=0)
