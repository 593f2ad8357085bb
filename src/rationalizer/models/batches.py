"""Batches of examples with texts of similar length, in an order that the seed determines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from rationalizer.constraints import LayerConstraints, PairLayerConstraints
from rationalizer.data.disk_examples import Numbers, labels, lengths, words_of_sides
from rationalizer.models.batch_constraints import BatchConstraints
from rationalizer.nn import Encoder
from rationalizer.text import AnyExample, WordBatch
from rationalizer.text.example import LabelValue

# Shuffled examples are sorted by length within pools of this many batches: large enough for little padding, small
# enough that batches are composed differently in every epoch.
POOL_BATCHES = 50
Annotations = bool | Sequence[str]  # whether batches have annotations; or the labels of which each has its own

T = TypeVar("T")


@dataclass(frozen=True)
class Batch:
    """Examples with one text each, or two."""

    texts: tuple[WordBatch, ...]
    labels: Tensor | None  # (batch,) int64 classes or float32 values; (batch, targets) float32, NaN if not given
    index: Tensor  # (batch,) int64: position of each example in its dataset
    constraints: LayerConstraints | PairLayerConstraints | None = None
    annotation: Tensor | None = None  # (batch, n) bool; (batch, labels, n) for each label; (batch, m, n) for pairs
    removed: Tensor | None = None  # (batch, n) bool: words of a model's rationale that people unmarked
    weights: Tensor | None = None  # (batch,) float32 factors of the losses; None: all 1
    share: float = 1.0  # size of this shard relative to the whole batch

    def to(self, device: torch.device | str) -> Batch:
        labels = None if self.labels is None else self.labels.to(device)
        constraints = None if self.constraints is None else self.constraints.to(device)
        annotation = None if self.annotation is None else self.annotation.to(device)
        texts = tuple(words.to(device) for words in self.texts)
        weights = None if self.weights is None else self.weights.to(device)
        removed = None if self.removed is None else self.removed.to(device)
        moved: dict[str, Any] = {"labels": labels, "constraints": constraints, "annotation": annotation}
        moved["removed"] = removed
        return replace(self, texts=texts, weights=weights, **moved)

    def __len__(self) -> int:
        return len(self.index)


class Shard(NamedTuple):
    """The part of every batch that one of several processes computes: each example is in one shard."""

    rank: int = 0
    world_size: int = 1

    def take(self, batch: Sequence[T]) -> tuple[Sequence[T], float]:
        """Return the shard and its share of the batch. All processes must take every step: if a batch is too small,
        one of them gets an example with a share of 0."""
        own = batch[self.rank :: self.world_size]  # batches are sorted by length, so that shards have similar lengths
        return (own, len(own) / len(batch)) if own else (batch[:1], 0.0)


def collate(
    examples: Sequence[tuple[int, AnyExample]],
    encoder: Encoder,
    constraints: BatchConstraints | None = None,
    *,
    annotations: Annotations = False,
) -> Batch:
    """Return a batch of (position, example) pairs, padded to the longest text; `annotations`: with their annotation, or
    with one for each of these labels."""
    if not examples:
        raise ValueError("a batch needs at least one example")
    members = [example for _, example in examples]
    texts = tuple(encoder.collate(side) for side in zip(*(example.texts for example in members), strict=True))
    index = torch.tensor([position for position, _ in examples], dtype=torch.int64)
    built = None if constraints is None else constraints(examples, [words.counted for words in texts])
    labels = _labels([example.label for example in members])
    annotation = _annotation(members, texts, annotations) if annotations else None
    removed = _removed(members, texts[0]) if annotations is True else None
    return Batch(texts, labels, index, built, annotation, removed, _weights(members))


def _weights(examples: Sequence[AnyExample]) -> Tensor | None:
    weights = [example.weight for example in examples]
    return None if all(weight == 1 for weight in weights) else torch.tensor(weights, dtype=torch.float32)


def _annotation(examples: Sequence[AnyExample], texts: Sequence[WordBatch], which: Annotations) -> Tensor:
    if not isinstance(which, bool):
        by_label = np.zeros((len(examples), len(which), texts[0].mask.shape[1]), dtype=np.bool_)
        for table, example in zip(by_label, examples, strict=True):
            marked = getattr(example, "label_annotations", None) or {}
            for row, name in zip(table, which, strict=True):
                row[: len(marked.get(name, ()))] = marked.get(name, ())
        return torch.from_numpy(by_label)
    annotation = np.zeros((len(examples), *(words.mask.shape[1] for words in texts)), dtype=np.bool_)
    for row, example in zip(annotation, examples, strict=True):
        for index in example.annotated:
            row[index] = True
    return torch.from_numpy(annotation)


def _removed(examples: Sequence[AnyExample], words: WordBatch) -> Tensor | None:
    """Which words people unmarked; None if there is no such word in the batch."""
    found = [getattr(example, "removed", None) or () for example in examples]
    if not any(map(any, found)):
        return None
    removed = torch.zeros_like(words.mask)
    for row, own in zip(removed, found, strict=True):
        row[: len(own)] = torch.tensor(own, dtype=torch.bool)
    return removed


def _labels(labels: Sequence[LabelValue]) -> Tensor | None:
    if all(label is None for label in labels):
        return None
    if any(label is None for label in labels):
        raise ValueError(f"a batch has labels for all its examples or for none, got {list(labels)}")
    if isinstance(labels[0], tuple):
        return torch.from_numpy(np.array(labels, dtype=np.float32))
    floating = any(isinstance(label, float) for label in labels)
    return torch.tensor(labels, dtype=torch.float32 if floating else torch.int64)


class BucketSampler(Sampler[list[int]]):
    """Yields batches of positions whose texts have similar lengths: `batch_size` of them, or as many as have at most
    `batch_tokens` words, padding included, and at least one.

    The order depends on (seed, epoch) and the lengths only, not on workers or on global random states.
    `set_epoch(epoch, start=k)` continues an interrupted epoch: it skips the first k batches.

    Args:
        lengths: the lengths that are similar within a batch.
        sides: (texts, 1), or (texts, 2) for pairs: the numbers of words to pad; by default `lengths`.
        classes: the class of each text. An epoch then has every class equally often, and as many texts as there are:
            texts of rare classes several times, and of frequent classes other ones in every epoch.
    """

    def __init__(
        self,
        lengths: Sequence[int] | Numbers,
        batch_size: int,
        *,
        batch_tokens: int | None = None,
        sides: Numbers | None = None,
        classes: Numbers | None = None,
        shuffle: bool = True,
        seed: int = 0,
        epoch: int = 0,
        start: int = 0,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self.lengths = np.asarray(lengths, dtype=np.int64)
        self.batch_size = batch_size
        self.batch_tokens = batch_tokens
        self.sides = self.lengths[:, None] if sides is None else sides
        if classes is not None and not shuffle:
            raise ValueError("classes are drawn equally often only with shuffle=True")
        self.classes = classes
        self.shuffle = shuffle
        self.seed = seed
        self.set_epoch(epoch, start)

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        self.epoch = epoch
        self.start = 0
        self._cached_plan: tuple[Numbers, Numbers, Numbers] | None = None
        if start and not 0 <= start <= self.batches:
            raise ValueError(f"start counts batches already seen, from 0 to {self.batches}, got {start}")
        self.start = start

    @property
    def batches(self) -> int:
        """Number of batches in the epoch; with `batch_tokens` it may differ between epochs."""
        return -(-len(self.lengths) // self.batch_size) if self.batch_tokens is None else len(self._plan()[2])

    def __len__(self) -> int:
        return self.batches - self.start

    def __iter__(self) -> Iterator[list[int]]:
        order, ends, batch_order = self._plan()
        starts = np.concatenate([[0], ends[:-1]])
        for k in batch_order[self.start :].tolist():
            yield order[starts[k] : ends[k]].tolist()

    def _plan(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return all positions, grouped by batch; the end of each batch; and the order of the batches. Arrays rather
        than lists: two numbers per text."""
        if self._cached_plan is None:
            generator = np.random.default_rng((self.seed, self.epoch)) if self.shuffle else None
            order = np.arange(len(self.lengths)) if generator is None else self._draw(generator)
            ends: list[Numbers] = []
            for start, end in pairwise(self._pools(order)):
                pool = order[start:end]
                pool[:] = pool[np.argsort(self.lengths[pool], kind="stable")]
                ends.append(start + self._ends(pool))
            all_ends = np.concatenate(ends) if ends else np.zeros(0, np.int64)
            batch_order = np.arange(len(all_ends)) if generator is None else generator.permutation(len(all_ends))
            self._cached_plan = order, all_ends, batch_order
        return self._cached_plan

    def _draw(self, generator: np.random.Generator) -> Numbers:
        """Return the positions of an epoch in random order: each once, or with `classes` every class equally often."""
        count = len(self.lengths)
        if self.classes is None:
            return generator.permutation(count)
        _, numbers = np.unique(self.classes, return_inverse=True)
        members = np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])
        share, left = divmod(count, len(members))
        extra = generator.permutation(len(members)) < left  # classes with one more text
        drawn = []
        for own, one_more in zip(members, extra.tolist(), strict=True):
            times, rest = divmod(share + one_more, len(own))
            drawn += [np.repeat(own, times), generator.permutation(own)[:rest]]
        return generator.permutation(np.concatenate(drawn))

    def _pools(self, order: Numbers) -> list[int]:
        """Return the starts of the pools, and the end of the last one."""
        if not self.shuffle:
            return [0, len(order)]
        if self.batch_tokens is None:
            return [*range(0, len(order), self.batch_size * POOL_BATCHES), len(order)]
        pool = np.cumsum(self.sides[order].sum(1)) // (self.batch_tokens * POOL_BATCHES)  # by text
        return [0, *(1 + np.flatnonzero(np.diff(pool))).tolist(), len(order)]

    def _ends(self, pool: Numbers) -> Numbers:
        """Return the ends of the batches of a sorted pool; each takes as many texts as fit."""
        if self.batch_tokens is None:
            return np.minimum(np.arange(self.batch_size, len(pool) + self.batch_size, self.batch_size), len(pool))
        sides, ends, end, reach = self.sides[pool], [], 0, 64
        while end < len(pool):
            widths = np.maximum.accumulate(sides[end : end + reach]).sum(1)
            padded = widths * np.arange(1, len(widths) + 1)
            fitting = int(np.searchsorted(padded, self.batch_tokens, side="right"))
            if fitting < reach:
                end += max(1, fitting)
                ends.append(end)
            reach = 2 * max(1, fitting)
        return np.array(ends, dtype=np.int64)


class _Shards(Dataset[Any]):
    """Reads this process' shard of a batch of positions, and no other examples."""

    def __init__(self, examples: Sequence[AnyExample], shard: Shard) -> None:
        self.examples = examples
        self.shard = shard

    def __getitems__(self, batch: list[int]) -> tuple[list[tuple[int, AnyExample]], float]:
        own, share = self.shard.take(batch)
        return [(position, self.examples[position]) for position in own], share

    def __len__(self) -> int:
        return len(self.examples)


def _collate_shard(
    shard: tuple[list[tuple[int, AnyExample]], float],
    encoder: Encoder,
    constraints: BatchConstraints | None,
    annotations: Annotations,
) -> Batch:
    examples, share = shard
    return replace(collate(examples, encoder, constraints, annotations=annotations), share=share)


def batch_loader(
    examples: Sequence[AnyExample],
    encoder: Encoder,
    *,
    batch_size: int,
    batch_tokens: int | None = None,
    shuffle: bool,
    seed: int,
    epoch: int = 0,
    workers: int = 0,
    constraints: BatchConstraints | None = None,
    annotations: Annotations = False,
    balanced: bool = False,
    shard: Shard = Shard(),  # noqa: B008 (a tuple)
) -> DataLoader[Any]:
    """Return a loader of batches of `examples`, or of a shard of each. Its `batch_sampler` is a `BucketSampler`.

    Without `shuffle` batches go from the shortest texts to the longest; `Batch.index` has the positions. With
    `balanced` an epoch has every class equally often.
    """
    sides = None if batch_tokens is None else words_of_sides(examples)
    order: dict[str, Any] = {"shuffle": shuffle, "seed": seed, "epoch": epoch}
    order["classes"] = labels(examples) if balanced else None
    sampler = BucketSampler(lengths(examples), batch_size, batch_tokens=batch_tokens, sides=sides, **order)
    return DataLoader(
        _Shards(examples, shard),
        batch_sampler=sampler,
        collate_fn=partial(_collate_shard, encoder=encoder, constraints=constraints, annotations=annotations),
        num_workers=workers,
    )
