"""Predictions and scores of a trained model."""

from dataclasses import replace

import numpy as np
import pytest

from rationalizer.data import generated_reviews as reviews
from rationalizer.inference import evaluate, predict, predict_from, standalone_agreement
from rationalizer.models import configure
from rationalizer.text import Budget
from rationalizer.training import train

SMALL = {"hidden": 8, "vector_size": 8, "embeddings": None, "epochs": 3, "min_epochs": 1, "batch_size": 16}


@pytest.fixture(scope="module")
def corpus():
    return reviews(train=96, dev=24, test=24)


@pytest.fixture(scope="module")
def trained(corpus):
    return train(corpus, configure("spectra", SMALL))


def test_predictions_are_in_the_examples_order(trained, corpus):
    together = predict(trained, corpus.test, batch_size=5)
    for i, example in enumerate(corpus.test):
        alone = predict(trained, [example])
        np.testing.assert_allclose(together.outputs[i], alone.outputs[0], atol=1e-5)
        assert np.array_equal(together.weights[i], alone.weights[0])
        assert len(together.weights[i]) == len(together.scores[i]) == len(example.tokens)


def test_predict_from_own_rationale_equals_prediction(trained, corpus):
    own = predict(trained, corpus.test)
    np.testing.assert_array_equal(predict_from(trained, corpus.test, own.weights), own.outputs)
    with pytest.raises(ValueError, match="mask 0 has 1 entries for"):
        predict_from(trained, corpus.test[:1], [[1]])
    with pytest.raises(ValueError, match="one mask per example"):
        predict_from(trained, corpus.test, [])


def test_no_examples(trained):
    assert predict(trained, []).outputs.shape == (0, 2)


@pytest.mark.parametrize("budget", [0.1, 0.5, 1, 6])
def test_budget_can_be_changed_after_training(trained, corpus, budget):
    selected = predict(trained, corpus.test, budget=budget).selected
    for mask, example in zip(selected, corpus.test, strict=True):
        (counted,) = trained.encoder.word_masks([example.tokens])[1].numpy()
        wanted = budget if isinstance(budget, int) else max(1, round(budget * counted.sum()))
        assert (mask & counted).sum() == wanted
    assert trained.config.budget == Budget.share(0.2)


def test_methods_without_a_budget_raise(corpus):
    full = train(corpus, configure("full-text", {**SMALL, "epochs": 1}))
    with pytest.raises(ValueError, match="full-text"):
        predict(full, corpus.test, budget=0.1)


def test_evaluate_measures_what_the_examples_allow(trained, corpus):
    scores = evaluate(trained, corpus.test, faithfulness=True)
    assert scores.documents == 24
    assert scores.size == pytest.approx(0.2, abs=0.03)
    for name in ("macro_f1", "token_f1", "iou_f1", "auprc", "comprehensiveness", "sufficiency"):
        assert getattr(scores, name) is not None, name
    bare = evaluate(trained, [replace(example, annotation=None) for example in corpus.test])
    assert bare.token_f1 is None
    marked = evaluate(trained, [replace(example, label=None) for example in corpus.test])
    assert (marked.token_f1, marked.macro_f1) == (scores.token_f1, None)
    with pytest.raises(ValueError, match="example 0"):
        evaluate(trained, [replace(corpus.test[0], label=None, annotation=None)])


def test_standalone_agreement_is_a_share(trained, corpus):
    assert 0 <= standalone_agreement(trained, corpus.test) <= 1
