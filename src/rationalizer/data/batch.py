"""Examples as padded tensors, in batches of similar length, in an order that a seed fixes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from typing import Any, Self, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from rationalizer.data.example import AnyExample, Example, PairExample
from rationalizer.data.vocabulary import PADDING, Vocabulary

# Shuffled examples are sorted by length within pools of this many batches: enough for little padding,
# few enough that who shares a batch with whom changes from epoch to epoch.
POOL_BATCHES = 50


@dataclass(frozen=True)
class _Tensors:
    labels: Tensor | None  # (batch,) int64 classes or float32 values
    index: Tensor  # (batch,) int64: position of each example in its dataset

    def to(self, device: torch.device | str) -> Self:
        return self._map(lambda tensor: tensor.to(device))

    def pin_memory(self) -> Self:
        return self._map(Tensor.pin_memory)

    def _map(self, move: Callable[[Tensor], Tensor]) -> Self:
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return replace(self, **{name: move(value) for name, value in values.items() if value is not None})

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True)
class Batch(_Tensors):
    """Examples of one text each."""

    tokens: Tensor  # (batch, n) int64 vocabulary ids, 0 = padding, 1 = unknown
    mask: Tensor  # (batch, n) bool, True on real tokens
    rationale: Tensor | None  # (batch, n) bool; None where no example of the batch has one

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What a model takes: ids and mask of every text."""
        return self.tokens, self.mask

    @property
    def masks(self) -> tuple[Tensor, ...]:
        return (self.mask,)


@dataclass(frozen=True)
class PairBatch(_Tensors):
    """Examples of two texts each."""

    premise: Tensor  # (batch, m) int64
    premise_mask: Tensor  # (batch, m) bool
    hypothesis: Tensor  # (batch, n) int64
    hypothesis_mask: Tensor  # (batch, n) bool

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return self.premise, self.premise_mask, self.hypothesis, self.hypothesis_mask

    @property
    def masks(self) -> tuple[Tensor, ...]:
        return self.premise_mask, self.hypothesis_mask


def collate(examples: Sequence[tuple[int, AnyExample]], vocabulary: Vocabulary) -> Batch | PairBatch:
    """Pads (position, example) pairs to the longest.

    In a batch where some examples have a rationale, the others' rows are all False.
    """
    if not examples:
        raise ValueError("a batch needs at least one example")
    members = [example for _, example in examples]
    labels = _labels([example.label for example in members])
    index = torch.tensor([position for position, _ in examples], dtype=torch.int64)
    if isinstance(members[0], PairExample):
        pairs = cast("list[PairExample]", members)
        premise = _padded([pair.premise for pair in pairs], vocabulary)
        return PairBatch(labels, index, *premise, *_padded([pair.hypothesis for pair in pairs], vocabulary))
    texts = cast("list[Example]", members)
    tokens, mask = _padded(texts, vocabulary)
    rationale = None
    if any(example.rationale is not None for example in texts):
        rationale = torch.zeros_like(mask)
        for row, example in enumerate(texts):
            if example.rationale is not None:
                rationale[row, : len(example.tokens)] = torch.tensor(example.rationale)
    return Batch(labels, index, tokens, mask, rationale)


def _padded(texts: Sequence[Example], vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """Ids and mask."""
    lengths = np.array([len(text.tokens) for text in texts])
    mask = np.arange(lengths.max()) < lengths[:, None]
    tokens = np.full(mask.shape, PADDING, dtype=np.int64)
    tokens[mask] = vocabulary.ids(chain.from_iterable(text.tokens for text in texts))
    return torch.from_numpy(tokens), torch.from_numpy(mask)


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
        lengths: Sequence[int],
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
        yield from self._plan()[self.start :]

    def _plan(self) -> list[list[int]]:
        size = self.batch_size
        if not self.shuffle:
            order = np.argsort(self.lengths, kind="stable")
            return [order[k : k + size].tolist() for k in range(0, len(order), size)]
        generator = np.random.default_rng((self.seed, self.epoch))
        order = generator.permutation(len(self.lengths))
        plan = []
        for k in range(0, len(order), size * POOL_BATCHES):
            pool = order[k : k + size * POOL_BATCHES]
            pool = pool[np.argsort(self.lengths[pool], kind="stable")]
            plan += [pool[j : j + size].tolist() for j in range(0, len(pool), size)]
        return [plan[k] for k in generator.permutation(len(plan))]


class _Positioned(Dataset[tuple[int, Any]]):
    def __init__(self, examples: Sequence[Any]) -> None:
        self.examples = examples

    def __getitem__(self, position: int) -> tuple[int, Any]:
        return position, self.examples[position]

    def __len__(self) -> int:
        return len(self.examples)


def loader(
    examples: Sequence[AnyExample],
    vocabulary: Vocabulary,
    *,
    batch_size: int,
    shuffle: bool,
    seed: int,
    epoch: int = 0,
    workers: int = 0,
) -> DataLoader[Any]:
    """Batches of `examples`; its `batch_sampler` is the BucketSampler, for `set_epoch`.

    Without `shuffle` batches go from the shortest texts to the longest: put results back by `Batch.index`.
    """
    sampler = BucketSampler(list(map(_length, examples)), batch_size, shuffle=shuffle, seed=seed, epoch=epoch)
    return DataLoader(
        _Positioned(examples),
        batch_sampler=sampler,
        collate_fn=partial(collate, vocabulary=vocabulary),
        num_workers=workers,
    )


def _length(example: AnyExample) -> int:
    """What batches are sorted by; of pairs the premise, which is mostly longer, and then the hypothesis."""
    first, *second = example.shape
    return (first << 20) + second[0] if second else first
