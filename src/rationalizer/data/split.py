"""Rows held out from training, the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from rationalizer.text.errors import DataError
from rationalizer.text.example import Example, PairExample

E = TypeVar("E", Example, PairExample, Example | PairExample)


def hold_out(examples: Sequence[E], fraction: float, *, seed: int, stratify: bool) -> tuple[list[E], list[E]]:
    """(train, held out), both in the order given.

    round(fraction · n) examples are held out, at least one. With `stratify` every class gives its share, what
    rounding takes away going to the classes that lost most; a class with one example keeps it in train.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"the fraction held out must lie between 0 and 1, got {fraction!r}")
    if len(examples) < 2:
        raise DataError(f"{len(examples)} example is too few to hold some out for dev; add rows, or give a dev split")
    wanted = min(max(1, round(fraction * len(examples))), len(examples) - 1)
    groups: dict[object, list[int]] = {}
    for position, example in enumerate(examples):
        groups.setdefault(example.label if stratify else None, []).append(position)
    members = [groups[key] for key in sorted(groups, key=str)]
    held: set[int] = set()
    generator = np.random.default_rng(seed)
    for positions, count in zip(members, _shares([len(m) for m in members], wanted), strict=True):
        order = generator.permutation(len(positions))
        held.update(positions[k] for k in order[:count])
    if not held:
        raise DataError("every class has a single example, none can be held out for dev; give a dev split")
    train = [example for position, example in enumerate(examples) if position not in held]
    return train, [examples[position] for position in sorted(held)]


def _shares(sizes: Sequence[int], wanted: int) -> list[int]:
    """Whole shares of `wanted` in proportion to the sizes, leaving each group one member where possible."""
    exact = [wanted * size / sum(sizes) for size in sizes]
    shares = [min(int(share), size - 1) for share, size in zip(exact, sizes, strict=True)]
    by_loss = sorted(range(len(sizes)), key=lambda k: shares[k] - exact[k])
    while sum(shares) < wanted:
        room = [k for k in by_loss if shares[k] < sizes[k] - 1]
        if not room:
            break
        for k in room[: wanted - sum(shares)]:
            shares[k] += 1
    return shares
