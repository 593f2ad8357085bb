"""The user's object on pairs of texts."""

import json

import numpy as np
import pandas as pd
import pytest

from rationalizer import PairExplanation, Rationalizer
from rationalizer.data import generated_pairs as pairs

SMALL = {"hidden": 8, "vector_size": 8, "epochs": 2, "batch_size": 16}


@pytest.fixture(scope="module")
def texts():
    corpus = pairs(seed=2, train=80, dev=8, test=8)
    return [(one.premise.text, one.hypothesis.text) for one in corpus.train], [
        corpus.classes[one.label] for one in corpus.train
    ]


@pytest.fixture(scope="module")
def model(texts):
    return Rationalizer("budget", budget=3, **SMALL).fit(*texts, progress=False, device="cpu")


def test_explain(model):
    premise, hypothesis = "Two old nurses often help dogs.", "Nurses help dogs."
    e = model.explain(premise, hypothesis)
    assert isinstance(e, PairExplanation)
    assert e.premise == premise
    assert e.alignment.shape == (len(e.premise_tokens), len(e.hypothesis_tokens))
    assert len(e.pairs) == np.count_nonzero(e.alignment) <= 3
    assert {(word.premise, word.hypothesis) for word in e.words} == {
        (e.premise_tokens[i], e.hypothesis_tokens[j]) for i, j in e.pairs
    }
    assert e.label in model.classes_
    assert sum(e.probabilities.values()) == pytest.approx(1, abs=1e-5)
    assert e.faithful
    for token, (start, end) in zip(e.hypothesis_tokens, e.hypothesis_offsets, strict=True):
        assert hypothesis[start:end] == token
    assert json.loads(json.dumps(e.to_dict()))["pairs"] == [list(pair) for pair in e.pairs]


def test_pairs_as_json_stores_them(model, texts):
    pairs = [list(pair) for pair in texts[0]]
    with pytest.raises(ValueError, match="pairs=True"):
        Rationalizer(**SMALL).fit(pairs, texts[1])
    fitted = Rationalizer(**SMALL).fit(pairs, texts[1], pairs=True, progress=False)
    assert (fitted.pairs, fitted.config.method) == (True, "at-most-one")
    assert fitted.predict(pairs[:3]).tolist() == fitted.predict(texts[0][:3]).tolist()
    assert not Rationalizer(**SMALL).fit(pairs, texts[1], pairs=False, progress=False).pairs


def test_explain_list(model, texts):
    some = texts[0][:5]
    listed = model.explain(some, annotations=[[(0, 0)]] * 5)
    assert [e.label for e in listed] == model.predict(some).tolist()
    assert listed[0].annotation == ((0, 0),)
    np.testing.assert_allclose(listed[1].alignment, model.explain(*some[1]).alignment)
    assert model.predict_proba(some).shape == (5, 3)


def test_set_budget(model):
    pair = ("Two old nurses often help dogs in autumn.", "Two nurses help dogs in autumn.")
    before = len(model.explain(*pair).pairs)
    model.budget = 1
    assert len(model.explain(*pair).pairs) == 1
    model.budget = 3
    assert len(model.explain(*pair).pairs) == before


def test_default_method(texts, tmp_path):
    model = Rationalizer(**SMALL).fit(texts[0][:40], texts[1][:40], progress=False, device="cpu")
    assert (model.pairs, model.config.method) == (True, "at-most-one")
    model.save(tmp_path)
    loaded = Rationalizer.load(tmp_path)
    assert loaded.pairs
    assert loaded.predict(texts[0][:6]).tolist() == model.predict(texts[0][:6]).tolist()


def test_tables_and_dev_pairs(texts):
    table = pd.DataFrame(texts[0][:40], columns=["premise", "hypothesis"])
    dev = (texts[0][40:50], texts[1][40:50])
    model = Rationalizer("gumbel", faithful=False, **SMALL).fit(
        table, pd.Series(texts[1][:40]), dev=dev, progress=False, device="cpu"
    )
    assert model.pairs
    assert not model.explain(*texts[0][0]).faithful


def test_lists_of_two(texts):
    model = Rationalizer("at-most-one", **SMALL)
    model.fit([list(pair) for pair in texts[0]], texts[1], progress=False, device="cpu")
    assert model.pairs
    assert model.predict([list(pair) for pair in texts[0][:4]]).shape == (4,)
    tokens = [[premise.split(), hypothesis.split()] for premise, hypothesis in texts[0]]
    model.fit(tokens, texts[1], progress=False, device="cpu")
    assert model.explain(*tokens[0]).premise_tokens == tuple(tokens[0][0])
    with pytest.raises(ValueError, match="row 80"):
        model.fit([*texts[0][:-1], "alone"], texts[1])
    with pytest.raises(ValueError, match="premise"):
        model.fit(pd.DataFrame({"text": texts[1], "label": texts[1]}), texts[1])


def test_failed_training_changes_nothing(texts):
    model = Rationalizer(**SMALL).fit(*texts, progress=False, device="cpu")
    before = model.predict(texts[0])
    with pytest.raises(ValueError, match="80 labels"):
        model.fit(["a text"] * 40, texts[1])
    assert model.pairs
    assert model.predict(texts[0]).tolist() == before.tolist()


def test_invalid_arguments(model, texts):
    with pytest.raises(ValueError, match="pairs of texts"):
        model.explain("One text.")
    with pytest.raises(ValueError, match="annotations"):
        model.explain(*texts[0][0], annotations=[(0, 0)])
    with pytest.raises(ValueError, match="spectra"):
        Rationalizer("spectra", **SMALL).fit(*texts, progress=False)
    with pytest.raises(ValueError, match="budget"):
        Rationalizer("budget", **SMALL).fit(["a b", "c d"] * 10, ["x", "y"] * 10, progress=False)
    single = Rationalizer("full-text", **SMALL).fit(["a b", "c d"] * 10, ["x", "y"] * 10, progress=False)
    with pytest.raises(ValueError, match="single texts"):
        single.explain("a", "b")
