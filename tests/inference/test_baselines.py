"""Scores of the model are compared with those of simpler models on the same texts."""

from dataclasses import replace

import numpy as np
import pytest

from rationalizer.data import generated_pairs, generated_reviews, make_corpus
from rationalizer.inference.bag_of_words import BagOfWords
from rationalizer.inference.baselines import compare_with_baselines
from rationalizer.models import TrainedModel, configure
from rationalizer.training import train


def texts_and_targets(count, seed):
    corpus = generated_reviews(train=count, dev=1, test=300, seed=seed)
    parts = (corpus.train, corpus.test)
    return [([list(e.tokens) for e in part], np.array([e.label for e in part], dtype=np.int64)) for part in parts]


def features(texts, others):
    """TF-IDF of scikit-learn, from the same words."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    words = [[w.lower() for w in t if any(c.isalnum() for c in w)] for t in (*texts, *others)]
    vectorizer = text.TfidfVectorizer(analyzer=lambda words: words).fit(words[: len(texts)])
    return vectorizer.transform(words[: len(texts)]), vectorizer.transform(words[len(texts) :])


@pytest.mark.parametrize("balanced", [False, True])
def test_logistic_regression_is_that_of_scikit_learn(balanced):
    linear_model = pytest.importorskip("sklearn.linear_model")
    (texts, y), (others, _) = texts_and_targets(200, seed=0)
    y[:60] = 2  # a third class
    inputs, other_inputs = features(texts, others)
    model = linear_model.LogisticRegression(class_weight="balanced" if balanced else None, max_iter=1000, tol=1e-8)
    expected = model.fit(inputs, y).predict_proba(other_inputs)
    weights = len(y) / (3 * np.bincount(y)) if balanced else None
    np.testing.assert_allclose(BagOfWords(texts, y, 3, weights=weights).read(others), expected, atol=0.005)


def test_ridge_regression_is_that_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    (texts, y), (others, _) = texts_and_targets(200, seed=1)
    y = 3.0 * y + np.arange(len(y)) % 3
    inputs, other_inputs = features(texts, others)
    expected = linear_model.Ridge(alpha=1.0).fit(inputs, y).predict(other_inputs)
    np.testing.assert_allclose(BagOfWords(texts, y, 0).read(others), expected, atol=0.01)


def test_a_run_is_compared_with_a_constant_and_with_all_words(spectra_run):
    trained = TrainedModel.load(spectra_run)
    corpus = generated_reviews(train=240, dev=40, test=40)
    found = compare_with_baselines(trained, corpus.train, corpus.test)
    constant, linear, whole = found.values()
    counts = np.bincount([e.label for e in corpus.train])
    assert constant["accuracy"] == np.mean([e.label == counts.argmax() for e in corpus.test])
    assert linear["accuracy"] > constant["accuracy"]
    assert list(compare_with_baselines(trained, None, corpus.test)) == ["its predictor on whole texts"]
    assert compare_with_baselines(trained, None, corpus.test).popitem()[1] == whole
    assert compare_with_baselines(trained, corpus.train, [replace(e, label=None) for e in corpus.test]) == {}


def test_regression_and_pairs(pair_run):
    values = [float(k % 4) for k in range(40)]
    texts = [["good", "fine", "poor", "bad"][k % 4] + " room" for k in range(40)]
    corpus = make_corpus(texts, values, task="regression", dev=())
    small = {"embeddings": None, "hidden": 4, "vector_size": 4, "epochs": 1, "min_epochs": 1}
    found = compare_with_baselines(train(corpus, configure(overrides=small)), corpus.train, corpus.train)
    assert found["the mean of the training texts"]["r2"] == pytest.approx(0)
    assert found["TF-IDF + ridge regression"]["r2"] > 0.8
    pairs = generated_pairs(train=240, dev=40, test=40)
    both = compare_with_baselines(TrainedModel.load(pair_run), pairs.train, pairs.test)
    assert set(both) == {"the most frequent class", "TF-IDF + logistic regression"}
