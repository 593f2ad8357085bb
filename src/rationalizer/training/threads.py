"""The number of CPU threads of a run.

Small models use one thread: more threads wait for one another at every small operation, and many times as long if other
programs use the cores. For large models the number is measured on one of the run's own batches, and again when steps
become much slower, because other programs have started. Another number of threads sums in another order, which changes
the last digits of a result: a run stores its number, and uses it again when it is resumed.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

import torch

from rationalizer.models.devices import set_threads
from rationalizer.nn import TrainingStep
from rationalizer.training.learning_rates import build_optimizer
from rationalizer.training.seeding import preserve_rng_state, seed_all

if TYPE_CHECKING:
    from rationalizer.training.loop import TrainingLoop

SAMPLED_BATCHES = 9  # the one of median size is measured
SECONDS = 0.2  # duration of the trial for each number of threads
LONG_STEP = 1.0  # seconds; longer steps are not repeated
TOLERANCE = 1.1  # fewer threads are as good if a step takes at most this many times as long

RECENT = 8  # number of steps in the mean time that is compared
SLOWER = 2.5  # times as long as before: measured again


class StepClock:
    """Notices when training steps become much slower than those of the same kind were."""

    def __init__(self) -> None:
        self._times: list[float] = []  # seconds per word of the last steps
        self._fastest = float("inf")  # mean of `RECENT` steps

    def is_slower(self, words: int, seconds: float) -> bool:
        """Add a step; return whether the last ones took `SLOWER` times as long as the fastest. Then it starts again."""
        self._times = [*self._times, seconds / max(words, 1)][-RECENT:]
        if len(self._times) < RECENT:
            return False
        mean = sum(self._times) / RECENT
        self._fastest = min(self._fastest, mean)
        if mean <= SLOWER * self._fastest:
            return False
        self._times, self._fastest = [], float("inf")
        return True


def measure_threads(loop: TrainingLoop) -> dict[int, float]:
    """Return the seconds of a training step by number of threads: all of them, half as many, and so on until fewer
    are slower. The model and all random number generators stay as they are."""
    with preserve_rng_state():
        return time_thread_numbers(_make_step(loop), torch.get_num_threads())


def time_thread_numbers(
    step: Callable[[], object], most: int, clock: Callable[[], float] = time.perf_counter
) -> dict[int, float]:
    seconds: dict[int, float] = {}
    number = most
    while number and (not seconds or fewest_threads(seconds) == min(seconds)):
        with set_threads(number):
            start = clock()
            step()  # warm-up
            seconds[number] = clock() - start
            if seconds[number] < LONG_STEP:
                count, start = 0, clock()
                while clock() < start + SECONDS:
                    step()
                    count += 1
                seconds[number] = (clock() - start) / count
        number //= 2
    return seconds


def fewest_threads(seconds: Mapping[int, float]) -> int:
    """Return the smallest number of threads that is as good as any."""
    best = min(seconds.values())
    return min(number for number, taken in seconds.items() if taken <= TOLERANCE * best)


def _make_step(loop: TrainingLoop) -> Callable[[], None]:
    """Return a training step of a copy of model and objective, always on the same batch."""
    config = loop.config
    loader = loop.load_batches(loop.corpus.train, shuffle=True, seed=config.seed)
    batches = sorted(islice(loader, SAMPLED_BATCHES), key=lambda each: sum(text.mask.numel() for text in each.texts))
    batch = batches[len(batches) // 2]
    model = copy.deepcopy(loop.model)
    objective = copy.deepcopy(loop.objective)
    optimizer = build_optimizer(model, objective, config)
    texts = TrainingStep(batch.texts, batch.labels, batch.constraints, epoch=objective.warmup_epochs)

    def step() -> None:
        seed_all(config.seed)
        optimizer.zero_grad()
        loss = objective.loss(model, texts).loss
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step
