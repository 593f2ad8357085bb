"""Hold out dev examples from train, the same for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rationalizer.text.errors import DataError
from rationalizer.text.example import Example, PairExample

MOST = 20_000  # held out by default: a proportion of so many has a standard error below 0.4%

E = TypeVar("E", Example, PairExample, Example | PairExample)


def split_off_dev(
    examples: Sequence[E], fraction: float | None, *, seed: int, stratify: bool
) -> tuple[list[E], list[E]]:
    """(train, held out), both in the order given; see `dev_mask`."""
    held = dev_mask([example.label for example in examples], fraction, seed=seed, stratify=stratify)
    train = [example for example, taken in zip(examples, held.tolist(), strict=True) if not taken]
    return train, [examples[position] for position in np.flatnonzero(held).tolist()]


def dev_mask(labels: Any, fraction: float | None, *, seed: int, stratify: bool) -> NDArray[np.bool_]:
    """A mask of the examples with these labels that are held out.

    round(fraction · n) examples are held out, at least one; without a fraction a tenth, at most `MOST`. With `stratify`
    classes are held out in proportion, by largest remainder; a class with a single example stays in train. For several
    labels the texts are grouped by the rarest that they have.
    """
    if fraction is not None and not 0 < fraction < 1:
        raise DataError(f"the fraction held out must lie between 0 and 1, got {fraction!r}")
    if len(labels) < 2:
        raise DataError(f"{len(labels)} example is too few to hold some out for dev", "add rows, or give a dev split")
    share = min(round(0.1 * len(labels)), MOST) if fraction is None else round(fraction * len(labels))
    wanted = min(max(1, share), len(labels) - 1)
    groups = _strata(labels) if stratify else np.zeros(len(labels), dtype=np.int64)
    found, counts = np.unique(groups, return_counts=True)
    by_label = np.split(np.argsort(groups, kind="stable"), np.cumsum(counts)[:-1])
    members = [by_label[k] for k in sorted(range(len(found)), key=lambda k: str(found[k]))]
    held = np.zeros(len(labels), dtype=bool)
    generator = np.random.default_rng(seed)
    for positions, count in zip(members, _shares([len(m) for m in members], wanted), strict=True):
        held[positions[generator.permutation(len(positions))[:count]]] = True
    if not held.any():
        raise DataError("every class has a single example, none can be held out for dev", "give a dev split")
    return held


def _strata(labels: Any) -> NDArray[Any]:
    """The group of each text: its class; with several labels the rarest that it has; with other targets only one."""
    table = np.array(labels, dtype=None if np.ndim(labels[0]) == 0 else np.float64)
    if table.ndim == 1:
        return table
    table = np.nan_to_num(table)
    if not np.isin(table, (0, 1)).all():
        return np.zeros(len(table), dtype=np.int64)
    rare = np.argsort(table.sum(0), kind="stable")
    return np.where(table.any(1), rare[table[:, rare].argmax(1)], -1)


def _shares(sizes: Sequence[int], wanted: int) -> list[int]:
    """Divide `wanted` in proportion to the sizes, in whole numbers, leaving each group one member if possible."""
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
