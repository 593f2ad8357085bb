"""Examples as batches of words, of similar length, in an order that a seed fixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from rationalizer.constraints import Limits, PairLimits
from rationalizer.data.stored import lengths
from rationalizer.learn.limiting import Limiting
from rationalizer.nn import Reader
from rationalizer.text import AnyExample, Words

# Shuffled examples are sorted by length within pools of this many batches: enough for little padding,
# few enough that who shares a batch with whom changes from epoch to epoch.
POOL_BATCHES = 50

T = TypeVar("T")


@dataclass(frozen=True)
class Batch:
    """Examples of one text each, or of two."""

    texts: tuple[Words, ...]
    labels: Tensor | None  # (batch,) int64 classes or float32 values
    index: Tensor  # (batch,) int64: position of each example in its dataset
    limits: Limits | PairLimits | None = None  # what constraints ask of these texts
    marked: Tensor | None = None  # (batch, n) bool: what people marked; of pairs (batch, m, n): aligned
    share: float = 1.0  # what part of the whole batch this is; see `Part`

    def to(self, device: torch.device | str) -> Batch:
        labels = None if self.labels is None else self.labels.to(device)
        limits = None if self.limits is None else self.limits.to(device)
        marked = None if self.marked is None else self.marked.to(device)
        texts = tuple(words.to(device) for words in self.texts)
        return replace(self, texts=texts, labels=labels, limits=limits, marked=marked)

    def __len__(self) -> int:
        return len(self.index)


class Part(NamedTuple):
    """What one of several processes that train together takes of every batch: each example is in one part."""

    number: int = 0
    of: int = 1

    def take(self, batch: Sequence[T]) -> tuple[Sequence[T], float]:
        """The part, and what share of the batch it is. All processes must take every step: where a small batch has too
        few, one gets an example that counts nothing."""
        own = batch[self.number :: self.of]  # batches are sorted by length: the parts are alike
        return (own, len(own) / len(batch)) if own else (batch[:1], 0.0)


def collate(
    examples: Sequence[tuple[int, AnyExample]],
    reader: Reader,
    limiting: Limiting | None = None,
    *,
    marks: bool = False,
) -> Batch:
    """(position, example) pairs as words, padded to the longest; with `marks` also what people marked in them."""
    if not examples:
        raise ValueError("a batch needs at least one example")
    members = [example for _, example in examples]
    texts = tuple(reader.collate(side) for side in zip(*(example.texts for example in members), strict=True))
    index = torch.tensor([position for position, _ in examples], dtype=torch.int64)
    limits = None if limiting is None else limiting(examples, [words.counted for words in texts])
    labels = _labels([example.label for example in members])
    return Batch(texts, labels, index, limits, _marked(members, texts) if marks else None)


def _marked(examples: Sequence[AnyExample], texts: Sequence[Words]) -> Tensor:
    marked = np.zeros((len(examples), *(words.mask.shape[1] for words in texts)), dtype=np.bool_)
    for row, example in zip(marked, examples, strict=True):
        for place in example.marks:
            row[place] = True
    return torch.from_numpy(marked)


def _labels(labels: Sequence[int | float | None]) -> Tensor | None:
    if all(label is None for label in labels):
        return None
    if any(label is None for label in labels):
        raise ValueError(f"a batch has labels for all its examples or for none, got {list(labels)}")
    floating = any(isinstance(label, float) for label in labels)
    return torch.tensor(labels, dtype=torch.float32 if floating else torch.int64)


class BucketSampler(Sampler[list[int]]):
    """Batches of positions whose texts have similar length.

    The order depends on (seed, epoch) and the lengths only, never on workers or on any global random state.
    `set_epoch(epoch, start=k)` continues an interrupted epoch: its first k batches are left out.
    """

    def __init__(
        self,
        lengths: Sequence[int] | NDArray[np.int64],
        batch_size: int,
        *,
        shuffle: bool = True,
        seed: int = 0,
        epoch: int = 0,
        start: int = 0,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self.lengths = np.asarray(lengths, dtype=np.int64)
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.set_epoch(epoch, start)

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        if not 0 <= start <= self.batches:
            raise ValueError(f"start counts batches already seen, from 0 to {self.batches}, got {start}")
        self.epoch = epoch
        self.start = start

    @property
    def batches(self) -> int:
        """Batches of a whole epoch."""
        return -(-len(self.lengths) // self.batch_size)

    def __len__(self) -> int:
        return self.batches - self.start

    def __iter__(self) -> Iterator[list[int]]:
        order, batches = self._plan()
        for k in batches[self.start :].tolist():
            yield order[k * self.batch_size : (k + 1) * self.batch_size].tolist()

    def _plan(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All positions, those of a batch side by side; and the order of the batches. Two numbers a text, however many
        there are: no lists."""
        if not self.shuffle:
            return np.argsort(self.lengths, kind="stable"), np.arange(self.batches)
        generator = np.random.default_rng((self.seed, self.epoch))
        order = generator.permutation(len(self.lengths))
        for k in range(0, len(order), self.batch_size * POOL_BATCHES):
            pool = order[k : k + self.batch_size * POOL_BATCHES]
            pool[:] = pool[np.argsort(self.lengths[pool], kind="stable")]
        return order, generator.permutation(self.batches)


class _Parts(Dataset[Any]):
    """The examples at positions that share a batch; of other processes' parts none is read."""

    def __init__(self, examples: Sequence[AnyExample], part: Part) -> None:
        self.examples = examples
        self.part = part

    def __getitems__(self, batch: list[int]) -> tuple[list[tuple[int, AnyExample]], float]:
        own, share = self.part.take(batch)
        return [(position, self.examples[position]) for position in own], share

    def __len__(self) -> int:
        return len(self.examples)


def _collated(
    taken: tuple[list[tuple[int, AnyExample]], float], reader: Reader, limiting: Limiting | None, marks: bool
) -> Batch:
    examples, share = taken
    return replace(collate(examples, reader, limiting, marks=marks), share=share)


def loader(
    examples: Sequence[AnyExample],
    reader: Reader,
    *,
    batch_size: int,
    shuffle: bool,
    seed: int,
    epoch: int = 0,
    workers: int = 0,
    limiting: Limiting | None = None,
    marks: bool = False,
    part: Part = Part(),  # noqa: B008 (a tuple)
) -> DataLoader[Any]:
    """Batches of `examples`, or a part of each; its `batch_sampler` is the BucketSampler, for `set_epoch`.

    Without `shuffle` batches go from the shortest texts to the longest: put results back by `Batch.index`.
    """
    sampler = BucketSampler(lengths(examples), batch_size, shuffle=shuffle, seed=seed, epoch=epoch)
    return DataLoader(
        _Parts(examples, part),
        batch_sampler=sampler,
        collate_fn=partial(_collated, reader=reader, limiting=limiting, marks=marks),
        num_workers=workers,
    )
