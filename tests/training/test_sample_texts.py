"""Sample texts that are saved with a model."""

from dataclasses import replace

import pytest

from rationalizer.data import generated_pairs, make_corpus
from rationalizer.models import TrainedModel
from rationalizer.models.atomic_files import write_record
from rationalizer.models.sample_texts import LONGEST, choose_samples

TEXTS = [f"text number {k}" for k in range(12)]


def corpus(texts, labels, task=None):
    """Return a corpus whose dev set equals its training set."""
    found = make_corpus(texts, labels, dev=(), task=task)
    return replace(found, dev=found.train)


def test_classes_alternate():
    labels = ["a"] * 8 + ["b"] * 2 + ["c"] * 2
    found = choose_samples(corpus(TEXTS, labels), 5)
    assert found == (TEXTS[0], TEXTS[8], TEXTS[10], TEXTS[1], TEXTS[9])
    assert choose_samples(corpus(TEXTS, labels), 0) == ()


def test_short_texts_are_preferred():
    long = ["long " * LONGEST + str(k) for k in range(3)]
    labels = ["a", "b"] * 6 + ["a", "b", "a"]
    assert not set(long) & set(choose_samples(corpus([*long, *TEXTS], labels), 6))
    shortest = choose_samples(corpus([*long, *TEXTS[:2]], ["a", "b", "a", "a", "b"]), 3)
    assert set(shortest) == {*TEXTS[:2], long[0]}


def test_regression_samples_span_the_values():
    values = [k / 10 for k in range(12)]
    assert choose_samples(corpus(TEXTS, values, "regression"), 3) == (TEXTS[0], TEXTS[5], TEXTS[11])


def test_dev_is_preferred_without_repeats():
    found = make_corpus(TEXTS, ["a", "b"] * 6, dev=())
    assert choose_samples(found, 2) == (TEXTS[0], TEXTS[1])
    dev = [*found.train[-1:], *found.train[-1:]]
    assert choose_samples(replace(found, dev=dev), 3) == (TEXTS[-1],)


def test_pairs_are_sampled_as_pairs():
    found = choose_samples(generated_pairs(train=2, dev=20, test=1), 4)
    assert len(found) == 4
    assert all(isinstance(premise, str) and isinstance(hypothesis, str) for premise, hypothesis in found)


def test_samples_are_saved_with_the_model(spectra_run, tmp_path):
    trained = TrainedModel.load(spectra_run)
    assert len(trained.examples) == trained.config.keep_examples == 6
    trained.save(tmp_path)
    assert TrainedModel.load(tmp_path).examples == trained.examples
    replace(trained, examples=()).save(tmp_path)
    assert not (tmp_path / "examples.json").exists()
    assert TrainedModel.load(tmp_path).examples == ()


def test_samples_of_the_wrong_kind_raise(spectra_run, tmp_path):
    TrainedModel.load(spectra_run).save(tmp_path)
    write_record(tmp_path / "examples.json", {"examples": [["one", "two"]]})
    with pytest.raises(ValueError, match=r"examples\.json: an example is not one text"):
        TrainedModel.load(tmp_path)
