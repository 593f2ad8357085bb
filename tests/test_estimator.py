"""Under the habits of scikit-learn, tried with the library itself."""

import pickle

import numpy as np
import pandas
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from rationalizer import Rationalizer
from rationalizer.models.setting_docs import describe_settings
from rationalizer.text import Budget

SMALL = {"hidden": 8, "vector_size": 8, "embeddings": "none", "epochs": 4, "batch_size": 8, "learning_rate": 0.03}
TEXTS = ["A warm, funny film.", "Dull and far too long!", "Funny, warm and short.", "A dull, long evening."] * 6
SPECTRA = describe_settings("spectra")
NAMES = ["good", "bad", "good", "bad"] * 6


def small(**settings):
    return Rationalizer(**{**SMALL, **settings})


@pytest.fixture(scope="module")
def model():
    return small().fit(TEXTS, NAMES)


class Lower(BaseEstimator, TransformerMixin):
    def fit(self, texts, labels=None):
        return self

    def transform(self, texts):
        return [text.lower() for text in texts]


def test_clone(model):
    settings = {"method": "sfe", "budget": Budget.share(0.3), "hidden": 12, "seed": 4}
    given = Rationalizer(**settings)
    assert given.get_params().items() >= settings.items()
    copy = clone(given)
    assert copy.get_params() == given.get_params()
    assert copy.config == given.config
    with pytest.raises(NotFittedError, match="not trained"):
        clone(model).predict(TEXTS)


def test_all_settings_are_parameters(model, tmp_path):
    made = Rationalizer(hidden=12)
    params = made.get_params()
    settings = {one.name: one for part in ("own", "encoder", "objective", "common") for one in getattr(SPECTRA, part)}
    assert params.keys() == {"method", *settings}
    assert (params["method"], params["budget"], params["hidden"], params["epochs"]) == (None, None, 12, 12)
    assert Rationalizer(**params).config == made.config
    before = made.set_params(**SMALL).get_params()
    assert made.fit(TEXTS, NAMES).get_params() == before
    model.save(tmp_path)
    assert Rationalizer.load(tmp_path).get_params().items() >= {"method": "spectra", "epochs": 4, "seed": 0}.items()
    with pytest.raises(ValueError, match="stauts"):
        made.set_params(stauts=1)


def test_clones_have_the_defaults_of_another_method_encoder_or_kind_of_text():
    copy = clone(clone(small(epochs=1)))
    assert copy.set_params(method="sfe", budget="30%").config == small(method="sfe", budget="30%", epochs=1).config
    copy = clone(Rationalizer(epochs=1))
    assert copy.set_params(encoder="org/bert").config == Rationalizer(encoder="org/bert", epochs=1).config
    copy = clone(Rationalizer(encoder="org/bert", epochs=1))
    assert copy.set_params(epochs=5).config == Rationalizer(encoder="org/bert", epochs=5).config
    pairs = [("a man plays a guitar", "a man makes music"), ("a dog sleeps", "no dog sleeps")] * 8
    on_pairs = clone(small(epochs=1)).fit(pairs, ["yes", "no"] * 8)
    assert on_pairs.config.method == "at-most-one"
    assert on_pairs.get_params()["method"] is None


def test_gumbel_for_pairs(tmp_path):
    """Also a method for single texts, with other settings."""
    pairs = [("a man plays a guitar", "a man makes music"), ("a dog sleeps", "no dog sleeps")] * 8
    Rationalizer("gumbel", **{**SMALL, "epochs": 1}).fit(pairs, ["yes", "no"] * 8).save(tmp_path)
    loaded = Rationalizer.load(tmp_path)
    assert loaded.set_params(epochs=2).get_params()["epochs"] == 2
    assert loaded.fit(pairs, ["yes", "no"] * 8).pairs


def test_clone_of_loaded_model(model, tmp_path):
    model.save(tmp_path)
    loaded = Rationalizer.load(tmp_path)
    again = clone(loaded).fit(TEXTS, NAMES)
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))


def test_set_params():
    made = small().set_params(budget="30%", epochs=2)
    assert (str(made.budget), made.config.epochs) == ("30%", 2)
    with pytest.raises(ValueError, match="epochs"):
        made.set_params(epoch=3)
    assert "epoch" not in made.get_params()
    assert made.set_params(method="at-most-one").pairs


def test_set_params_of_trained_model(model):
    made = Rationalizer.from_trained(model.trained)
    expected = Rationalizer.from_trained(model.trained)
    expected.budget, expected.constraints = 0.9, ["never=words:funny"]
    made.set_params(budget=0.9, constraints=["never=words:funny"], epochs=1)
    assert made.get_params()["budget"] == 0.9
    assert made.explain(TEXTS[:4]) == expected.explain(TEXTS[:4])
    assert len(made.trained.history["epochs"]) > 1
    assert str(made.fit(TEXTS, NAMES).budget) == "90%"
    assert len(made.trained.history["epochs"]) == 1
    assert str(made.set_params(budget=None).budget) == "20%"


def test_after_a_new_method_everything_waits_for_the_next_fit():
    made = small(epochs=1).fit(TEXTS, NAMES)
    made.set_params(method="sfe", budget="40%").set_params(constraints=["never=stopwords"])
    assert (str(made.budget), made.constraints) == ("20%", ())
    assert str(made.fit(TEXTS, NAMES).budget) == "40%"


def test_fit_with_budget():
    made = small(epochs=1)
    before = made.get_params()
    made.fit(TEXTS, NAMES, budget="50%")
    assert str(made.budget) == "50%"
    assert made.get_params() == before
    assert before["budget"] is None
    with pytest.raises(ValueError, match="budget"):
        made.fit(TEXTS, NAMES, budget="much")
    assert str(made.budget) == "50%"


def test_score(model):
    assert model.score(TEXTS, NAMES) == 1
    assert model.score(TEXTS[:4], ["good", "bad", "bad", "bad"]) == 0.75
    assert model.score(TEXTS[:2], ["good", "good"], sample_weight=[3, 1]) == 0.75
    with pytest.raises(ValueError, match="fair"):
        model.score(TEXTS[:1], ["fair"])
    with pytest.raises(ValueError, match="1 label"):
        model.score(TEXTS[:2], ["good"])


def test_regression_score():
    values = [{"good": 0.9, "bad": 0.1}[name] for name in NAMES]
    model = small(epochs=8).fit(TEXTS, values)
    predicted = model.predict(TEXTS)
    expected = 1 - np.square(np.array(values) - predicted).sum() / np.square(np.array(values) - np.mean(values)).sum()
    assert model.score(TEXTS, values) == pytest.approx(expected)
    assert model.score(TEXTS, values) > 0.5
    assert is_regressor(model)
    assert not hasattr(model, "classes_")


def test_tags(model):
    assert is_classifier(model)
    assert is_classifier(small())
    check_is_fitted(model)
    assert model.classes_.tolist() == ["bad", "good"]
    assert not hasattr(small(), "classes_")
    assert not hasattr(model, "classes")
    assert small().fit(TEXTS, [name == "good" for name in NAMES]).classes_.tolist() == [False, True]


def test_pipeline_and_search():
    search = GridSearchCV(
        Pipeline([("lower", Lower()), ("model", small())]), {"model__budget": ["20%", 2], "model__epochs": [1, 4]}, cv=2
    )
    search.fit(np.array(TEXTS), np.array(NAMES))
    assert search.best_score_ == 1
    assert search.best_params_["model__epochs"] == 4
    assert search.predict(TEXTS[:2]).tolist() == ["good", "bad"]
    assert search.best_estimator_.named_steps["model"].explain("a warm film").label == "good"


def test_cross_validation():
    table = pandas.DataFrame({"text": TEXTS, "stars": [5, 1, 5, 1] * 6}, index=range(100, 124))
    found = cross_val_score(small(), table["text"], table["stars"], cv=3, scoring="roc_auc", error_score="raise")
    assert found.tolist() == [1, 1, 1]
    predicted = cross_val_predict(make_pipeline(small()), table[["text"]], table["stars"], cv=3)
    assert predicted.tolist() == table["stars"].tolist()


def test_calibration(model):
    calibrated = CalibratedClassifierCV(small(), cv=2).fit(TEXTS, NAMES)
    assert calibrated.predict(TEXTS[:2]).tolist() == ["good", "bad"]
    after = CalibratedClassifierCV(FrozenEstimator(model)).fit(TEXTS, NAMES)
    assert after.predict(TEXTS[:2]).tolist() == ["good", "bad"]
    np.testing.assert_allclose(after.predict_proba(TEXTS).sum(1), 1)


def test_pairs():
    pairs = [("a man plays a guitar", "a man makes music"), ("a dog sleeps", "no dog sleeps")] * 8
    found = cross_val_score(small(method="at-most-one", epochs=6), pairs, ["yes", "no"] * 8, cv=2, error_score="raise")
    assert found.tolist() == [1, 1]


def test_pickle(model):
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert again.get_params() == model.get_params()
