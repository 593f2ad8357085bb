import dataclasses

import numpy as np
import pytest

from rationalizer.models.config import Config, configure
from rationalizer.models.presets import PRESETS, presets_for
from rationalizer.nn import ALIGNERS, ENCODERS, EXTRACTORS, OBJECTIVES
from rationalizer.text import Budget


def test_defaults():
    config = configure()
    assert (config.method, str(config.budget), config.patience) == ("spectra", "20%", 5)
    assert set(config.options) == {"temperature", "transition", "start_spread", "mask_tolerance"}


@pytest.mark.parametrize("method", sorted(EXTRACTORS))
@pytest.mark.parametrize("dataset", [None, *(name for name, preset in PRESETS.items() if not preset.pairs)])
def test_every_preset_is_valid_and_survives_json(dataset, method):
    config = configure(method, {"seed": 3}, dataset=dataset)
    assert Config.from_json(config.to_json()) == config
    before_pairs = {key: value for key, value in config.to_json().items() if key not in ("pairs", "faithful")}
    assert Config.from_json(before_pairs) == config


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("spectra", {"full_text_epochs": 2, "epochs": 2}, "leaves none of 2 epochs"),
        ("full-text", {"full_text_epochs": 1}, "full_text_epochs is for methods that select"),
        ("budget", {"full_text_epochs": 1}, "full_text_epochs is for methods that select"),
        ("sfe", {"objective": "mcd"}, "differentiable"),
        ("sfe-baseline", {"objective": "mrd"}, "differentiable"),
        ("sfe", {"objective": "dar"}, "differentiable"),
        ("at-most-one", {"objective": "mcd"}, "select words of single texts"),
        ("full-text", {"objective": "dr"}, "select words of single texts"),
        ("spectra", {"objective": "dr", "shared": True, "encoder": "x/y"}, "shared=false"),
        ("spectra", {"objective": "fr", "shared": False}, "shared=true"),
        ("spectra", {"objective": "mcd2"}, "mcd"),
        ("spectra", {"objective": "joint", "full_text_weight": 1}, "objective full-text, "),
        ("spectra", {"objective": "mgr", "generator_count": 1}, "generator_count must be at least 2"),
        ("spectra", {"objective": "dar", "epochs": 2}, "leaves none of 2 epochs"),
        ("spectra", {"guide": "full-text"}, "objective=mcd"),
        ("spectra", {"slow_predictor": True}, "objective=dr"),
        ("spectra", {"pooling": "last", "encoder": "x/y"}, "pooling=last is for the two directions of a BiLSTM"),
        ("sfe", {"initial_weights": "xavier", "encoder": "x/y"}, "xavier"),
        ("spectra", {"embeddings": "none", "encoder": "x/y"}, "'embeddings' is a setting of the encoder bilstm"),
        ("spectra", {"window": 100}, "'window' is a setting of the encoder transformer"),
    ],
)
def test_incompatible_settings_raise(method, settings, message):
    with pytest.raises(ValueError, match=message):
        configure(method, settings)


def test_full_text_epochs_leave_one_epoch_for_selections():
    settings = (("spectra", {}, 1), ("spectra", {"epochs": 1}, 0), ("at-most-one", {}, 0))
    for method, changed, epochs in settings:
        assert configure(method, {"encoder": "x/y", **changed}).objective_options["full_text_epochs"] == epochs


def test_presets_set_the_options_of_their_own_objective_only():
    transformer = {"encoder": "x/y", "objective": "mcd"}
    assert configure(overrides={"encoder": "x/y"}).objective_options["full_text_weight"] == 1
    assert configure(overrides=transformer).objective_options == {"full_text_weight": 1.0, "full_text_epochs": 0}
    assert configure(dataset="sst").objective == "joint"
    chosen = configure(overrides={"objective": "full-text"}, dataset="sst")
    assert chosen.objective_options == configure().objective_options


def test_objectives_set_defaults_of_the_encoder():
    assert configure(overrides={"objective": "fr"}).encoder_options["shared"]
    for objective in ("dr", "mgr"):
        settings = {"objective": objective, "encoder": "x/y", "generator_rate": 1e-4}
        assert configure(overrides=settings).encoder_options["predictor_rate"] == 1e-4
        assert configure(overrides={**settings, "predictor_rate": 1e-5}).encoder_options["predictor_rate"] == 1e-5


def test_method_settings_do_not_shadow_common_settings():
    common = {field.name for field in dataclasses.fields(Config)}
    for extractor in EXTRACTORS.values():
        assert not common & set(extractor.options())
        for encoder in ENCODERS.values():
            assert not set(encoder.options()) & (common | set(extractor.options()))
    others = common.union(*(kind.options() for kind in (*EXTRACTORS.values(), *ALIGNERS.values(), *ENCODERS.values())))
    for objective in OBJECTIVES.values():
        assert not others & set(objective.options())


@pytest.mark.parametrize(
    ("dataset", "method", "expected"),
    [
        (
            "sst",
            "spectra",
            {"learning_rate": 1e-4, "weight_decay": 1e-6, "temperature": 0.1, "transition": 1e-3},
        ),
        ("agnews", "spectra", {"learning_rate": 1e-3, "temperature": 0.05}),
        ("imdb", "spectra", {"learning_rate": 1e-4, "temperature": 0.05, "transition": 1e-3, "patience": 25}),
        ("beer", "spectra", {"learning_rate": 1e-4, "temperature": 0.05}),
        ("hotels", "spectra", {"temperature": 0.1, "transition": 0.01, "patience": 25}),
        ("sst", "fusedmax", {"weight_decay": 1e-5, "temperature": 0.1, "tv": 0.7, "patience": 25}),
        ("beer", "sparsemax", {"weight_decay": 1e-6, "temperature": 0.1, "learning_rate": 1e-4}),
        (
            "sst",
            "sfe",
            {"learning_rate": 2e-4, "weight_decay": 1e-5, "sparsity": 0.01, "fused": 0.0, "patience": 25},
        ),
        ("sst", "sfe-baseline", {"learning_rate": 2e-4, "sparsity": 0.01, "fused": 0.0}),
        ("sst", "gumbel", {"learning_rate": 2e-4, "sparsity": 0.01, "temperature": 0.1, "patience": 25}),
        ("agnews", "sfe-baseline", {"learning_rate": 1e-3}),
        ("hotels", "sfe", {"learning_rate": 1e-3, "sparsity": 0.002}),
        ("beer", "sfe", {"learning_rate": 1e-4, "weight_decay": 1e-6, "sparsity": 0.001, "fused": 0.0}),
        ("imdb", "gumbel", {"learning_rate": 1e-4, "weight_decay": 1e-5, "sparsity": 0.001}),
        (
            "sst",
            "hardkuma",
            {"lagrangian_rate": 0.01, "lambda_max": 1.0, "patience": 25, "learning_rate": 2e-4},
        ),
        ("imdb", "hardkuma", {"lagrangian_rate": 0.05, "lambda_max": 2.0, "fused_target": None}),
        ("beer", "hardkuma", {"learning_rate": 1e-3, "lambda_max": 2.0, "fused_target": 0.02}),
    ],
)
def test_presets_equal_the_papers_values(dataset, method, expected):
    config = configure(method, dataset=dataset)
    flat = {**config.to_json(), **config.options, **config.encoder_options}
    assert {key: flat[key] for key in expected} == expected
    common = {
        "hidden": 200,
        "dropout": 0.1,
        "pooling": "last",
        "batch_size": 32,
        "clip": 5.0,
        "epochs": 25,
        "min_epochs": 5,
    }
    common |= {"averaging": 0.0, "keep_by": "score", "word_scores": False, "word_sums": False}
    assert {key: flat[key] for key in common} == common
    assert config.initial_weights == ("pytorch" if method == "spectra" else "xavier")
    assert config.objective == "joint"
    assert (config.punctuation, config.encoder_options["tuned"]) == ("count", False)


def test_overrides_take_precedence_over_presets():
    config = configure("hardkuma", {"patience": 3, "lambda_max": 4}, dataset="imdb")
    assert config.patience == 3
    assert config.options["lambda_max"] == 4.0
    assert config.learning_rate == 1e-4


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("learning_rate", "1e-4", 1e-4),
        ("learning_rate", 1, 1.0),
        ("hidden", "32", 32),
        ("hidden", np.int64(8), 8),
        ("hidden", 8.0, 8),
        ("patience", "none", None),
        ("patience", "7", 7),
        ("lower", "false", False),
        ("budget", "0.1", Budget.share(0.1)),
        ("budget", "5", Budget.count(5)),
        ("budget", 5, Budget.count(5)),
        ("budget", 1.0, Budget.share(1)),
        ("budget", "1", Budget.count(1)),
        ("embeddings", "glove.txt", "glove.txt"),
        ("embeddings", None, None),
        ("pooling", "mean", "mean"),
    ],
)
def test_values_are_parsed_by_the_type_of_their_setting(key, text, value):
    config = configure(overrides={key: text})
    read = config.encoder_options[key] if key in config.encoder_options else getattr(config, key)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("learning_rte", 1, r"no setting 'learning_rte'; did you mean 'learning_rate'\?"),
        ("temprature", 1, r"did you mean 'temperature'\?"),
        ("qqq", 1, "no setting 'qqq'"),
        ("tv", 1, "'tv' is a setting of fusedmax, not of spectra"),
        ("hidden", "many", "hidden must be a whole number, got 'many'"),
        ("hidden", 1.5, "hidden must be a whole number, got 1.5"),
        ("hidden", True, "hidden must be a whole number, got True"),
        ("hidden", 0, "hidden must be at least 1, got 0"),
        ("lower", 1, "lower must be true or false, got 1"),
        ("pooling", "sum", "pooling must be 'max' or 'mean' or 'last' or 'max-mean', got 'sum'"),
        ("patience", 0, "patience must be at least 1 or none, got 0"),
        ("dropout", 1.0, r"dropout must lie in \[0, 1\), got 1.0"),
        ("learning_rate", float("nan"), "learning_rate must be at least 0, got nan"),
        ("clip", 0, "clip must be positive, got 0"),
        ("temperature", 0, "temperature must be positive, got 0"),
        ("temperature", "nan", "temperature must be positive, got nan"),
        ("budget", 0.0, "a budget must be above 0"),
        ("punctuation", "never", "punctuation must be 'free' or 'count', got 'never'"),
        (
            "word_splitting",
            "letters",
            "word_splitting must be 'words' or 'spaces' or 'segments' or none, got 'letters'",
        ),
        ("encoder", "bilstn", r"no encoder 'bilstn'; did you mean 'bilstm'\?"),
    ],
)
def test_invalid_settings_are_named(key, value, message):
    with pytest.raises(ValueError, match=message):
        configure(overrides={key: value})


def test_unknown_method_gets_a_suggestion():
    with pytest.raises(ValueError, match=r"no method 'spectre'; did you mean 'spectra'\?"):
        configure("spectre")


def test_presets_depend_on_dataset_and_aspect():
    assert presets_for("beer-appearance", "spectra") == presets_for("beer", "spectra") != presets_for(None, "spectra")
    for name in ("beer-binary", "beer-binary-aroma", "hatexplain", "beers"):  # not in the paper
        assert presets_for(name, "spectra") == presets_for(None, "spectra")
    assert presets_for("snli", "softmax", pairs=True)["temperature"] == 1.0
