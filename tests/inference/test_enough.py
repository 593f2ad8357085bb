"""`Budget.enough`: the fewest words from which the prediction is that of the largest share."""

import numpy as np
import pytest

from rationalizer.data import generated_pairs, generated_reviews, generated_stays
from rationalizer.inference import evaluate, predict
from rationalizer.models import TrainedModel, configure
from rationalizer.text import Budget
from rationalizer.training import train

pytestmark = pytest.mark.long

SMALL = {"hidden": 8, "epochs": 2, "min_epochs": 1, "batch_size": 16, "embeddings": None, "vector_size": 16}
ENOUGH = Budget.enough(0.4, certainty=0.6)


@pytest.fixture(scope="module")
def reviews():
    return generated_reviews(train=128, dev=16, test=48)


@pytest.fixture(scope="module")
def trained(reviews):
    return train(reviews, configure("spectra", {**SMALL, "budget": "enough, at most 40%, 60% certain"}), threads=1)


def expected(trained, examples, budget, **how):
    """The definition, by one prediction for each budget."""
    cap = predict(trained, examples, budget=Budget.share(budget.amount), **how)
    sizes = [int(budget.word_limit(*(mask[None] for mask in masks(trained, one)))) for one in examples]
    found = [(weights, output) for weights, output in zip(cap.weights, cap.outputs, strict=True)]
    for words in range(max(sizes), 0, -1):
        smaller = predict(trained, examples, budget=Budget.count(words), **how)
        for k, (weights, output) in enumerate(zip(smaller.weights, smaller.outputs, strict=True)):
            label = cap.outputs[k].argmax() if output.ndim else None
            if label is None:
                same = abs(output - cap.outputs[k]) <= (1 - budget.certainty) * trained.model.head.deviation
            else:
                same = output.argmax() == label and output[label] >= budget.certainty
            if words < sizes[k] and same and weights.any():
                found[k] = weights, output
    return found


def masks(trained, example):
    return [trained.encoder.word_masks([text.tokens])[1][0] for text in example.texts]


def assert_as_expected(trained, examples, budget, **how):
    ours = predict(trained, examples, budget=budget, **how)
    for k, (weights, output) in enumerate(expected(trained, examples, budget, **how)):
        assert np.array_equal(ours.weights[k], weights)
        np.testing.assert_allclose(ours.outputs[k], output, rtol=0, atol=1e-5)
    return np.array([np.mean(mask) for mask in ours.selected])


def test_by_definition(trained, reviews):
    assert_as_expected(trained, reviews.test[:12], Budget.enough(1, certainty=0.7))
    sizes = assert_as_expected(trained, reviews.test, Budget.enough(0.4, certainty=0.52))
    cap = predict(trained, reviews.test, budget="40%")
    assert np.mean(sizes) < np.mean([np.mean(mask) for mask in cap.selected])
    assert np.array_equal(predict(trained, reviews.test).labels, cap.labels)


def test_with_constraints(trained, reviews):
    for constraints in ("spans=1", "must=words:the"):
        assert_as_expected(trained, reviews.test[:16], ENOUGH, constraints=constraints)


def test_other_methods(reviews):
    settings = {**SMALL, "budget": ENOUGH, "decoding": "contiguous", "epochs": 1}
    assert_as_expected(train(reviews, configure("sfe", settings), threads=1), reviews.test[:16], ENOUGH)


def test_pairs():
    corpus = generated_pairs(train=64, dev=16, test=16)
    settings = {**SMALL, "budget": "enough, at most 100%, 40% certain"}
    trained = train(corpus, configure("budget", settings, pairs=True), threads=1)
    assert_as_expected(trained, corpus.test, trained.config.budget)
    assert evaluate(trained, corpus.test)["violation"] == 0


def test_values():
    corpus = generated_stays(train=64, dev=16, test=16)
    trained = train(corpus, configure("spectra", {**SMALL, "budget": "enough"}), threads=1)
    sizes = assert_as_expected(trained, corpus.test, Budget.enough(0.4, certainty=0.9))
    assert (sizes < 0.4).any()


def test_texts_do_not_influence_each_other(trained, reviews):
    together = predict(trained, reviews.test).selected
    for example, mask in zip(reviews.test[:8], together, strict=False):
        assert np.array_equal(predict(trained, [example]).selected[0], mask)


def test_saved_and_scored(trained, reviews, tmp_path):
    trained.save(tmp_path)
    loaded = TrainedModel.load(tmp_path)
    assert loaded.config.budget == ENOUGH
    assert str(loaded.config.budget) == "enough, at most 40%, 60% certain"
    scores = evaluate(loaded, reviews.test)
    assert scores["size_min"] <= scores["size_quarter"] <= scores["size_median"] <= scores["size_three_quarters"]
    assert scores["size_three_quarters"] <= scores["size_max"]


@pytest.mark.parametrize("method", ["full-text", "sparsemax", "hardkuma"])
def test_methods_without_a_budget_refuse(method):
    with pytest.raises(ValueError, match="enough"):
        configure(method, {"budget": "enough"})
