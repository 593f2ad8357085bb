"""Settings that follow from the training texts, unless they are chosen."""

import pytest

from rationalizer import Rationalizer

SHORT = ["lovely warm care", "dirty cold room"] * 8
LONG = [f"{text} {'and so on we went ' * 25}" for text in SHORT]
LABELS = ["good", "bad"] * 8
SMALL = {"epochs": 1, "embeddings": None, "hidden": 2, "vector_size": 2}


def transition(model):
    return model.config.options["transition"]


@pytest.mark.parametrize(
    ("texts", "settings", "expected"),
    [
        (SHORT, {}, 0.1),
        (LONG, {}, 1.0),
        (LONG, {"transition": 0.3}, 0.3),
        (SHORT, {"transition": 2}, 2.0),
        (LONG, {"method": "pair-budget"}, 0.01),  # a large bonus would leave its training without a gradient
    ],
)
def test_transition(texts, settings, expected):
    model = Rationalizer(**SMALL, **settings).fit(texts, LABELS, progress=False)
    assert transition(model) == expected
    assert model.trained.model.method.transition == expected


def test_saved_models_keep_it(tmp_path):
    model = Rationalizer(**SMALL).fit(LONG, LABELS, run_dir=tmp_path / "run", progress=False)
    assert model.get_params()["transition"] is None  # a clone decides by its own texts
    loaded = Rationalizer.load(tmp_path / "run")
    assert transition(loaded) == loaded.trained.model.method.transition == 1.0
    again = Rationalizer(**SMALL).fit(LONG, LABELS, run_dir=tmp_path / "run", resume=True, progress=False)
    assert transition(again) == 1.0
    assert transition(model.fit(SHORT, LABELS, warm_start=True, progress=False)) == 1.0
    assert transition(model.fit(SHORT, LABELS, progress=False)) == 0.1


@pytest.mark.parametrize(
    ("bad", "settings", "expected"),
    [
        (5, {}, None),  # of 16; an even share is 8
        (4, {}, None),
        (3, {}, "balanced"),
        (5, {"class_weight": "balanced"}, "balanced"),
        (3, {"class_weight": None}, None),
        (3, {"class_weight": {"bad": 2.0}}, {"bad": 2.0}),
    ],
)
def test_class_weight(bad, settings, expected):
    labels = ["bad"] * bad + ["good"] * (16 - bad)
    model = Rationalizer(**SMALL, **settings).fit(SHORT, labels, dev=(SHORT, LABELS), progress=False)
    assert model.trained.config.class_weight == expected
    go_on = model.fit(SHORT, ["good"] * 14 + ["bad"] * 2, warm_start=True, progress=False)
    assert go_on.trained.config.class_weight == expected


def test_runs_keep_their_class_weight(tmp_path):
    labels = ["bad"] * 2 + ["good"] * 14
    model = Rationalizer(**SMALL).fit(SHORT, labels, run_dir=tmp_path / "run", progress=False)
    assert model.get_params()["class_weight"] == "auto"
    assert Rationalizer.load(tmp_path / "run").config.class_weight == "balanced"
    again = Rationalizer(**SMALL).fit(SHORT, labels, run_dir=tmp_path / "run", resume=True, progress=False)
    assert again.trained.config.class_weight == "balanced"
