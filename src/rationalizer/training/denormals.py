"""Numbers below 1e-38, which a CPU computes with in dozens of times the time: taken for 0 while a model learns.

A relaxed selection is made of them. Words that `gumbel` all but leaves out have weights like 1e-30, whose products
are such numbers, and a training took four times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

DENORMAL = 1e-40


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """On a CPU that can; afterwards as before."""
    before = are_zero()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def are_zero() -> bool:
    return not bool((torch.full((1,), DENORMAL) * 0.5).any())  # PyTorch does not tell otherwise
