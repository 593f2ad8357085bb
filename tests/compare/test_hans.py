"""Accuracy on HANS of a model with known predictions."""

from dataclasses import replace

import pytest
import torch

from rationalizer.data import Corpus, DataError, make_examples
from rationalizer.data import generated_pairs as pairs
from rationalizer.models import configure
from rationalizer.paper.hans_evaluation import hans_accuracy, hans_table
from rationalizer.training import train

PARTS = [(label, heuristic) for label in (0, 1) for heuristic in ("lexical_overlap", "subsequence", "constituent")]


@pytest.fixture(scope="module")
def trained():
    config = configure("at-most-one", {"hidden": 4, "vector_size": 4, "epochs": 1}, pairs=True)
    return train(pairs(train=12, dev=3, test=3), config, progress=False, device="cpu")


def hans(parts=PARTS, group=None):
    examples = make_examples([("The dog saw a cat.", "The cat saw a dog.")] * len(parts))
    test = [replace(one, label=label, group=group or part) for one, (label, part) in zip(examples, parts, strict=True)]
    return Corpus("hans", "classification", ("entailment", "non-entailment"), (), (), test)


def answering(trained, answer):
    """Return a model that predicts one class for every pair."""
    with torch.no_grad():
        linear = trained.model.head.linear
        linear.weight.zero_()
        linear.bias.copy_(torch.tensor([float(name == answer) for name in trained.classes]))
    return trained


@pytest.mark.parametrize("answer", ["entailment", "neutral", "contradiction"])
def test_neutral_and_contradiction_count_as_non_entailment(trained, answer):
    found = hans_accuracy(answering(trained, answer), hans())
    assert found == {
        (("entailment", "non-entailment")[label], part): float((label == 0) == (answer == "entailment"))
        for label, part in PARTS
    }
    heads, cells = hans_table({"ours": found})
    assert heads == ["label", "heuristic", "ours", "paper, vanilla", "paper, augmented"]
    assert [row[2] for row in cells] == ["1.0000" if value else ".0000" for value in found.values()]
    assert cells[0][3:] == [".9942", ".9962"]


def test_missing_parts_are_empty_and_unknown_parts_raise(trained):
    found = hans_accuracy(trained, hans(PARTS[:1]))
    assert list(found) == [("entailment", "lexical_overlap")]
    assert [row[2] for row in hans_table({"ours": found})[1]][1:] == [""] * 5
    with pytest.raises(DataError, match="'other'"):
        hans_accuracy(trained, hans(group="other"))
    with pytest.raises(DataError, match="no evaluation pairs"):
        hans_accuracy(trained, hans([]))
    two = replace(trained, description=replace(trained.description, classes=("no", "yes", "maybe")))
    with pytest.raises(ValueError, match="no, yes, maybe"):
        hans_accuracy(two, hans())
