"""Random numbers that depend only on the seed and the step."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seed_all(*key: int) -> None:
    """Seed all random number generators from `key`.

    Called before each step with (seed, step, rank), it makes a resumed run draw the numbers of an uninterrupted one,
    without storing the state of any generator.
    """
    state = np.random.SeedSequence(key).generate_state(3, np.uint32)
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        torch.manual_seed(int(state[0]))  # for all devices, also those that are first used later
    else:  # `manual_seed` would record the stack for a later use of CUDA, which takes longer than all seeding
        torch.default_generator.manual_seed(int(state[0]))
    np.random.seed(state[1])  # noqa: NPY002 (extractors written by others may use the global generator)
    random.seed(int(state[2]))


@contextmanager
def preserve_rng_state() -> Iterator[None]:
    """Restore the states of all random number generators at the end."""
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
