"""Weights of texts in the loss."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rationalizer import Rationalizer
from rationalizer.data import Columns, generated_reviews, make_corpus, read_corpus, stream_corpus
from rationalizer.models.batches import collate
from rationalizer.nn import Classification, Regression
from rationalizer.text import DataError
from tests.training.interrupted import SMALL

CORPUS = generated_reviews(train=120, dev=40, test=40)


def texts_and_labels(examples, flip=False):
    return [one.text for one in examples], [CORPUS.classes[one.label ^ flip] for one in examples]


def test_texts_of_weight_0_change_nothing_that_is_learned():
    """Wrong labels for every text, twice as often as the right ones, are learned unless their weight is 0."""
    texts, labels = texts_and_labels(CORPUS.train)
    wrong = texts_and_labels(CORPUS.train, flip=True)[1]
    dev = texts_and_labels(CORPUS.dev)
    model = Rationalizer(**SMALL | {"epochs": 6, "patience": None, "learning_rate": 0.01, "class_weight": None})
    weights = [1.0] * len(texts) + [0.0] * 2 * len(texts)
    model.fit(texts * 3, labels + wrong * 2, dev=dev, sample_weight=weights, progress=False)
    assert model.score(*texts_and_labels(CORPUS.train)) > 0.7
    model.fit(texts * 3, labels + wrong * 2, dev=dev, progress=False)
    assert model.score(*texts_and_labels(CORPUS.train)) < 0.3


def test_weights_of_1_change_no_bit():
    texts, labels = texts_and_labels(CORPUS.train)
    settings = SMALL | {"epochs": 1}
    plain, weighted = (
        Rationalizer(**settings).fit(texts, labels, sample_weight=weights, progress=False)
        for weights in (None, np.ones(len(texts)))
    )
    np.testing.assert_array_equal(plain.predict_proba(texts), weighted.predict_proba(texts))


@pytest.mark.parametrize("head", [Classification(4, 2), Regression(4, sigmoid=False)])
def test_losses_are_multiplied(head):
    outputs = head(torch.randn(3, 4))
    labels = torch.tensor([0, 1, 1])
    losses = head.loss(outputs, labels)
    head.text_weights = torch.tensor([2.0, 0.0, 0.5])
    torch.testing.assert_close(head.loss(outputs, labels), losses * torch.tensor([2.0, 0.0, 0.5]))


def test_pairs_keep_their_weights():
    pairs = [("a b", "c"), ("d", "e f")]
    corpus = make_corpus(pairs * 2, ["x", "y"] * 2, pairs=True, dev=(), weights=[1, 2, 3, 0.5])
    assert [one.weight for one in corpus.train] == [1, 2, 3, 0.5]
    unweighted = replace(corpus, train=make_corpus(pairs * 2, ["x", "y"] * 2, pairs=True, dev=()).train)
    assert corpus.digest != unweighted.digest


def test_column_of_a_file(tmp_path):
    path = tmp_path / "mine.csv"
    rows = [f"good text {k},yes,{k / 2}\nbad text {k},no,1\n" for k in range(6)]
    path.write_text("text,label,trust\n" + "".join(rows))
    options = {"columns": Columns(weight="trust"), "dev_fraction": 0.25}
    read = read_corpus(path, **options)
    assert sorted(one.weight for one in [*read.train, *read.dev]) == sorted([k / 2 for k in range(6)] + [1.0] * 6)
    streamed = stream_corpus(path, cache_dir=tmp_path / "cache", **options)
    assert [(one.text, one.weight) for one in streamed.train] == [(one.text, one.weight) for one in read.train]
    assert {one.weight for one in read_corpus(path).train} == {1.0}  # a column is used only if it is named
    path.write_text(path.read_text() + "odd,yes,-1\n")
    with pytest.raises(DataError, match="row 13: a weight must be a number"):
        read_corpus(path, **options)


def test_invalid_weights():
    model = Rationalizer(**SMALL)
    with pytest.raises(DataError, match="sample_weight, row 2"):
        model.fit(["a", "b"] * 4, [0, 1] * 4, sample_weight=[1, float("nan")] * 4)
    with pytest.raises(DataError, match="8 texts but 2 weights"):
        model.fit(["a", "b"] * 4, [0, 1] * 4, sample_weight=[1, 2])
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(CORPUS, sample_weight=[1])


def test_batches_without_weights_have_none():
    model = Rationalizer(**SMALL | {"epochs": 1}).fit(CORPUS, progress=False)
    assert collate(list(enumerate(CORPUS.train[:3])), model.trained.encoder).weights is None
