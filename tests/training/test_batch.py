import random
from itertools import pairwise

import numpy as np
import pytest
import torch

from rationalizer.data import generated_pairs, make_examples
from rationalizer.data.disk_examples import word_counts
from rationalizer.models.batches import Batch, BucketSampler, batch_loader, collate
from rationalizer.nn import VectorEncoder
from rationalizer.text import Vocabulary


def texts(n, seed=0):
    generator = random.Random(seed)
    return [" ".join(f"w{generator.randrange(20)}" for _ in range(generator.randrange(1, 40))) for _ in range(n)]


def encoder_class(words):
    return VectorEncoder(Vocabulary(words))


@pytest.fixture(scope="module")
def examples():
    return make_examples(texts(200), [k % 3 for k in range(200)], classes=["x", "y", "z"])


@pytest.fixture(scope="module")
def encoder(examples):
    return VectorEncoder(Vocabulary.from_counts(word_counts(examples)))


def same(a: Batch, b: Batch) -> bool:
    (one,), (other,) = a.texts, b.texts
    return torch.equal(one.seen, other.seen) and torch.equal(one.mask, other.mask) and torch.equal(a.index, b.index)


def test_collate_pads_to_the_longest():
    examples = make_examples(["a b, c", "b"], [0.5, 1.0])
    batch = collate([(7, examples[0]), (3, examples[1])], encoder_class(["a", "b"]))
    (words,) = batch.texts
    assert words.seen.tolist() == [[1, 2, 0, 0], [2, 0, 0, 0]]
    assert words.mask.tolist() == [[True] * 4, [True, False, False, False]]
    assert words.counted.tolist() == [[True, True, False, False], [True, False, False, False]]  # c is unknown
    assert batch.labels.dtype == torch.float32
    assert batch.labels.tolist() == [0.5, 1.0]
    assert batch.index.tolist() == [7, 3]
    assert len(batch) == 2


def test_pairs_are_collated_as_two_texts():
    pairs = make_examples([("a b", "b"), ("b", "a a a")], [0, 1])
    premise, hypothesis = collate(list(enumerate(pairs)), encoder_class(["a", "b"])).texts
    assert premise.seen.tolist() == [[1, 2], [2, 0]]
    assert hypothesis.seen.tolist() == [[2, 0, 0], [1, 1, 1]]


def test_class_labels_are_integers_or_none():
    encoder = encoder_class(["a"])
    assert collate([(0, make_examples(["a"])[0])], encoder).labels is None
    labelled = make_examples(["a", "b"], ["no", "yes"])
    assert collate(list(enumerate(labelled)), encoder).labels.dtype == torch.int64


def test_collate_of_partly_labelled_or_empty_batch_raises():
    one, two = make_examples(["a", "b"], [0, 1])[0], make_examples(["b"])[0]
    with pytest.raises(ValueError, match="for all its examples or for none"):
        collate([(0, one), (1, two)], encoder_class(["a"]))
    with pytest.raises(ValueError, match="at least one example"):
        collate([], encoder_class(["a"]))


def test_batches_move_between_devices():
    moved = collate(list(enumerate(make_examples(["a"], [1]))), encoder_class(["a"])).to("meta")
    (words,) = moved.texts
    assert {t.device.type for t in (words.seen, words.parts, words.mask, words.counted, moved.labels)} == {"meta"}


def test_every_example_occurs_once_per_epoch():
    for shuffle in (True, False):
        sampler = BucketSampler(np.random.default_rng(0).integers(1, 90, 1003), 8, shuffle=shuffle, seed=1)
        batches = list(sampler)
        assert sorted(k for batch in batches for k in batch) == list(range(1003))
        assert len(batches) == len(sampler) == 126


def test_batches_have_little_padding_and_change_with_the_epoch():
    lengths = np.random.default_rng(0).integers(1, 200, 2000)
    sampler = BucketSampler(lengths, 16, seed=3)
    first = list(sampler)
    padded = sum(len(batch) * lengths[batch].max() for batch in first)
    assert padded < 1.1 * lengths.sum()
    sampler.set_epoch(1)
    second = list(sampler)
    assert first != second
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in second}
    assert lengths[first[0]].mean() != min(lengths[batch].mean() for batch in first)  # not sorted by length


def test_order_depends_on_seed_and_epoch_only():
    lengths = list(range(1, 300))
    random.seed(5)
    torch.manual_seed(5)
    once = list(BucketSampler(lengths, 4, seed=2, epoch=6))
    random.seed(6)
    torch.manual_seed(6)
    assert list(BucketSampler(lengths, 4, seed=2, epoch=6)) == once
    assert list(BucketSampler(lengths, 4, seed=3, epoch=6)) != once


def test_epoch_resumes_at_its_batch():
    sampler = BucketSampler(list(range(1, 101)), 8, seed=4)
    sampler.set_epoch(2)
    whole = list(sampler)
    sampler.set_epoch(2, start=5)
    assert len(sampler) == len(whole) - 5
    assert list(sampler) == whole[5:]
    sampler.set_epoch(3)
    assert len(list(sampler)) == len(whole)
    with pytest.raises(ValueError, match="from 0 to 13, got 14"):
        sampler.set_epoch(0, start=14)


def padded(sides, batch):
    return len(batch) * sides[batch].max(0).sum()


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("pairs", [False, True])
def test_token_batches_are_filled(pairs, shuffle):
    generator = np.random.default_rng(0)
    premise, hypothesis = generator.geometric(0.02, 3000), generator.integers(1, 20, 3000)
    sides = np.stack([premise, hypothesis], 1) if pairs else premise[:, None]
    lengths = (premise << 20) + hypothesis if pairs else premise
    most = int(sides.sum(1).max()) - 1  # below the longest pair, which gets a batch of its own
    sampler = BucketSampler(lengths, 1, batch_tokens=most, sides=sides, shuffle=shuffle, seed=1)
    batches = list(sampler)
    assert sorted(k for batch in batches for k in batch) == list(range(3000))
    assert len(batches) == len(sampler)
    assert all(padded(sides, batch) <= most or len(batch) == 1 for batch in batches)
    assert sum(padded(sides, batch) > most for batch in batches) == 1
    assert sum(padded(sides, batch) for batch in batches) < 1.15 * sides.sum()
    if not shuffle:
        assert all(padded(sides, [*batch, later[0]]) > most for batch, later in pairwise(batches))


def test_token_batches_depend_on_seed_and_epoch_and_resume():
    lengths = np.random.default_rng(0).integers(1, 60, 2000)
    sampler = BucketSampler(lengths, 8, batch_tokens=100, seed=4)
    first = list(sampler)
    sampler.set_epoch(1)
    second = list(sampler)
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in second}
    sampler.set_epoch(1, start=len(second) - 2)
    assert list(sampler) == second[-2:]
    sampler.set_epoch(0)
    assert list(sampler) == first
    with pytest.raises(ValueError, match=f"from 0 to {len(first)}, got {len(first) + 1}"):
        sampler.set_epoch(0, start=len(first) + 1)


def test_token_batches_count_both_texts_of_a_pair(encoder):
    pairs = generated_pairs(train=60, dev=0, test=0).train
    widths = [
        len(batch) * sum(words.mask.shape[1] for words in batch.texts)
        for batch in batch_loader(pairs, encoder, batch_size=1, batch_tokens=90, shuffle=True, seed=0)
    ]
    assert max(widths) <= 90
    assert np.mean(widths) > 60


def test_workers_do_not_change_the_batches(examples, encoder):
    plain = list(batch_loader(examples, encoder, batch_size=16, shuffle=True, seed=0, epoch=1))
    worked = list(batch_loader(examples, encoder, batch_size=16, shuffle=True, seed=0, epoch=1, workers=2))
    assert len(plain) == len(worked) == 13
    assert all(map(same, plain, worked))


def test_batch_index_matches_the_examples(examples, encoder):
    for batch in batch_loader(examples, encoder, batch_size=16, shuffle=True, seed=0):
        for row, position in enumerate(batch.index.tolist()):
            example = examples[position]
            (words,) = batch.texts
            assert words.seen[row, words.mask[row]].tolist() == list(map(encoder.vocabulary.id, example.tokens))
            assert batch.labels[row] == example.label


def test_unshuffled_batches_are_sorted_by_length(examples, encoder):
    widths = [b.texts[0].mask.shape[1] for b in batch_loader(examples, encoder, batch_size=16, shuffle=False, seed=0)]
    assert widths == sorted(widths)


def test_invalid_batch_size_raises():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        BucketSampler([1], 0)
