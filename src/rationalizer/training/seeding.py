"""Random numbers that depend on the seed and the step only."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seed_all(*key: int) -> None:
    """Starts every generator a method may draw from at a place that `key` fixes.

    Done before each step with (seed, step), it makes a resumed run draw what the uninterrupted one draws, and
    no generator's state has to be kept.
    """
    state = np.random.SeedSequence(key).generate_state(3, np.uint32)
    torch.manual_seed(int(state[0]))  # of all devices
    np.random.seed(state[1])  # noqa: NPY002 (extractors written by others may use the global generator)
    random.seed(int(state[2]))


@contextmanager
def preserve_rng_state() -> Iterator[None]:
    """Whatever is seeded and drawn within, the caller's generators go on as if nothing had happened."""
    torch_state, python_state = torch.get_rng_state(), random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002
    cuda_states = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    try:
        yield
    finally:
        torch.set_rng_state(torch_state)
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
        if cuda_states:
            torch.cuda.set_rng_state_all(cuda_states)
