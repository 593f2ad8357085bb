"""Flush denormals (numbers below 1e-38) to zero during training: arithmetic on them is tens of times slower.

Relaxed selections produce them. Words that `gumbel` almost drops have weights like 1e-30; the products of these are
denormal, and made training take four times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

DENORMAL = 1e-40


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """Flush denormals to zero if the CPU can; restore the previous mode at the end."""
    before = denormals_are_zero()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def denormals_are_zero() -> bool:
    return not bool((torch.full((1,), DENORMAL) * 0.5).any())  # PyTorch has no function for this
