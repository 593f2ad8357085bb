"""Pairs of texts go through the same training, checkpoints, inference and scores as single texts."""

import numpy as np
import pytest
import torch

from rationalizer.data import Corpus
from rationalizer.data import generated_pairs as pairs
from rationalizer.data import generated_reviews as reviews
from rationalizer.inference import evaluate, predict
from rationalizer.models import TrainedModel, configure
from rationalizer.nn import ALIGNERS
from rationalizer.training import train

SMALL = {"hidden": 8, "vector_size": 8, "embeddings": None, "epochs": 2, "batch_size": 16}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return pairs(seed=1, train=96, dev=24, test=24)


def fit(corpus, method="at-most-one", run_dir=None, **settings):
    config = configure(method, {**SMALL, "budget": corpus.budget, **settings}, pairs=True)
    return train(corpus, config, run_dir, progress=False, device="cpu", resume=run_dir is not None)


@pytest.mark.parametrize("method", ALIGNERS)
def test_every_method_trains_predicts_and_is_scored(method, corpus):
    trained = fit(corpus, method, epochs=1, faithful=method != "softmax")
    found = predict(trained, corpus.test)
    assert found.outputs.shape == (24, 3)
    for pair, weights, scores in zip(corpus.test, found.weights, found.scores, strict=True):
        assert weights.shape == scores.shape == pair.shape
    scored = evaluate(trained, corpus.test)
    assert scored.documents == scored.aligned == 24
    assert 0 < scored.alignments <= max(m * n for m, n in (pair.shape for pair in corpus.test))
    assert scored.size is None
    promised = method not in ("softmax", "gumbel")
    assert scored.violation == (0 if promised else None)
    expected = np.mean([(weights != 0).sum() for weights in found.weights])
    assert scored.alignments == pytest.approx(expected)


def test_saved_and_loaded(corpus, tmp_path):
    trained = fit(corpus, "budget", faithful=False, run_dir=tmp_path / "run")
    loaded = TrainedModel.load(tmp_path / "run")
    assert loaded.pairs
    assert loaded.config == trained.config
    assert not loaded.config.faithful
    before, after = (predict(model, corpus.test) for model in (trained, loaded))
    np.testing.assert_array_equal(before.outputs, after.outputs)
    for one, other in zip(before.weights, after.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_resumed_run_equals_uninterrupted_run(corpus, tmp_path):
    whole = fit(corpus, "at-most-one", tmp_path / "whole")

    class Stopped(Exception):
        pass

    from rationalizer.training.loop import TrainingLoop

    original = TrainingLoop._train_epoch

    def stop(self):
        if self.progress.epoch == 1:
            raise Stopped
        original(self)

    TrainingLoop._train_epoch = stop
    try:
        with pytest.raises(Stopped):
            fit(corpus, "at-most-one", tmp_path / "part")
    finally:
        TrainingLoop._train_epoch = original
    resumed = fit(corpus, "at-most-one", tmp_path / "part")
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name]), name


def test_budget_can_change_after_training(corpus):
    trained = fit(corpus, "budget", budget=4)
    for budget in (1, 2, 0.5):
        counts = [int((weights != 0).sum()) for weights in predict(trained, corpus.test, budget=budget).weights]
        limits = [
            min(budget, *pair.shape) if isinstance(budget, int) else max(1, round(budget * min(pair.shape)))
            for pair in corpus.test
        ]
        assert all(count <= limit for count, limit in zip(counts, limits, strict=True))
        assert max(counts) >= 1
    assert evaluate(trained, corpus.test, budget=2).violation == 0
    with pytest.raises(ValueError, match="use budget or ot-exact-k"):
        predict(fit(corpus, epochs=1), corpus.test, budget=2)


def test_texts_and_pairs_mismatch_raises(corpus):
    texts = reviews(train=20, dev=8, test=8)
    with pytest.raises(ValueError, match="'spectra' is a method for single texts; for pairs of texts use one of"):
        train(corpus, configure("spectra", SMALL), progress=False)
    with pytest.raises(ValueError, match="'at-most-one' is a method for pairs of texts; for single texts use one of"):
        train(texts, configure("at-most-one", SMALL), progress=False)
    with pytest.raises(ValueError, match="holds pairs of texts; configure with pairs=True"):
        train(corpus, configure("gumbel", SMALL), progress=False)
    trained = fit(corpus, epochs=1)
    with pytest.raises(ValueError, match="got single texts"):
        predict(trained, texts.test)
    with pytest.raises(ValueError, match="defined for single texts"):
        evaluate(trained, corpus.test, faithfulness=True)


def test_method_or_data_determine_pairs():
    assert configure("at-most-one").pairs
    assert not configure("spectra").pairs
    assert not configure("gumbel").pairs
    assert configure("gumbel", pairs=True).pairs
    assert configure(pairs=True).method == "at-most-one"
    assert configure("gumbel", pairs=True).pooling == "max-mean"
    snli = configure("at-most-one", dataset="snli", pairs=True)
    assert (snli.encoder_options["hidden"], snli.batch_size, snli.patience, snli.options["temperature"]) == (
        200,
        16,
        3,
        0.1,
    )
    assert configure("softmax", dataset="snli", pairs=True).options["temperature"] == 1.0
