"""How many threads a training takes on a CPU: as many as help, by what they make of one of its own batches.

Small models lose by threads, which wait for one another at every little operation, and where other programs use the
cores they lose many times over; large models gain. Another number of threads adds up in another order, which changes
the last digits of a result: a run keeps its number, and goes on with it when it is resumed.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch

from rationalizer.models.batches import batch_loader
from rationalizer.training.learning_rates import build_optimizer
from rationalizer.training.seeding import preserve_rng_state, seed_all

if TYPE_CHECKING:
    from rationalizer.training.module import Learner

BATCHES = 9  # of which the one of middle size is learned from
SECONDS = 0.2  # for every number of threads
LONG = 1.0  # seconds of a step that need not be taken again to be known
NEAR = 1.1  # times as long as with more threads: fewer are as good


@contextmanager
def set_threads(number: int | None) -> Iterator[None]:
    """So many threads of PyTorch, and of the layers, within; None: as they are."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def step_seconds(learner: Learner) -> dict[int, float]:
    """Seconds of a training step, by number of threads: with all of them, half as many, and so on until fewer are
    slower. The model and all random generators stay as they are."""
    with preserve_rng_state():
        return halved(_practice(learner), torch.get_num_threads())


def halved(step: Callable[[], object], most: int, clock: Callable[[], float] = time.perf_counter) -> dict[int, float]:
    taken: dict[int, float] = {}
    number = most
    while number and (not taken or fewest(taken) == min(taken)):
        with set_threads(number):
            begun = clock()
            step()  # warms up
            taken[number] = clock() - begun
            if taken[number] < LONG:
                count, begun = 0, clock()
                while clock() < begun + SECONDS:
                    step()
                    count += 1
                taken[number] = (clock() - begun) / count
        number //= 2
    return taken


def fewest(taken: Mapping[int, float]) -> int:
    """The least number of threads that is as good as any."""
    best = min(taken.values())
    return min(number for number, seconds in taken.items() if seconds <= NEAR * best)


def _practice(learner: Learner) -> Callable[[], None]:
    """A step of the training, of a copy of the model, always on the same batch."""
    config, examples = learner.config, learner.corpus.train
    how: dict[str, Any] = {"batch_size": config.batch_size, "batch_tokens": config.batch_tokens}
    how |= {"shuffle": True, "seed": config.seed, "constraints": learner.batch_constraints(examples)}
    batches = list(islice(batch_loader(examples, learner.model.encoder, **how), BATCHES))
    batch = sorted(batches, key=lambda batch: sum(words.mask.numel() for words in batch.texts))[len(batches) // 2]
    model = copy.deepcopy(learner.model)
    optimizer = build_optimizer(model, config)
    assert batch.labels is not None
    labels = batch.labels

    def step() -> None:
        seed_all(config.seed)
        optimizer.zero_grad()
        output = model(*batch.texts, budget=config.budget, constraints=batch.limits)
        loss = model.method_loss(output, model.head.loss(output.outputs, labels)).loss
        whole = model.full_text_outputs(*batch.texts) if config.full_text_weight else None
        if whole is not None:
            loss = loss + model.head.loss(whole, labels).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step
