"""Learning rates and their schedule."""

import pytest
import torch

from rationalizer.models import configure
from rationalizer.nn import make_objective
from rationalizer.training.learning_rates import build_optimizer, set_rates
from tests.nn.tiny_models import highlight_model
from tests.nn.tiny_transformers import highlight_model as on_transformer
from tests.nn.tiny_transformers import pair_model, write_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"))


def objective_of(config):
    return make_objective(config.objective, config)


def rates(model, optimizer):
    by_parameter = {p: group["lr"] for group in optimizer.param_groups for p in group["params"]}
    return {name: by_parameter[p] for name, p in model.named_parameters() if p.requires_grad}


def test_encoders_have_separate_rates(encoder):
    config = configure(overrides={"encoder": encoder, "learning_rate": 0.01})
    model = on_transformer(encoder, generator_rate=1e-3, predictor_rate=1e-4)
    optimizer = build_optimizer(model, objective_of(config), config)
    assert isinstance(optimizer, torch.optim.AdamW)
    for name, rate in rates(model, optimizer).items():
        if name.startswith("encoder.generator"):
            assert rate == 1e-3
        elif name.startswith("encoder.predictor"):
            assert rate == 1e-4
        else:
            assert rate == 0.01


def test_other_weights_share_one_rate():
    model = highlight_model()
    assert set(rates(model, build_optimizer(model, objective_of(configure()), configure())).values()) == {2e-3}


def test_pairs(encoder):
    model = pair_model(encoder, generator_rate=1e-3)
    config = configure("at-most-one", {"encoder": encoder, "learning_rate": 0.01})
    found = rates(model, build_optimizer(model, objective_of(config), config))
    assert {found[name] for name in found if name.startswith("encoder.")} == {1e-3}
    assert {found[name] for name in found if not name.startswith("encoder.")} == {0.01}


@pytest.mark.parametrize(("progress", "factor"), [(0.0, 0.0), (0.1, 0.5), (0.2, 1.0), (0.6, 0.5), (1.0, 0.0)])
def test_warmup_and_decay(progress, factor):
    model = highlight_model()
    config = configure(overrides={"warmup": 0.2, "decay": True, "learning_rate": 1.0})
    optimizer = build_optimizer(model, objective_of(config), config)
    set_rates(optimizer, objective_of(config), config, progress, 1.0)
    assert list(rates(model, optimizer).values()) == pytest.approx([factor] * len(rates(model, optimizer)))


def test_rates_are_constant_by_default():
    model, config = highlight_model(), configure()
    optimizer = build_optimizer(model, objective_of(config), config)
    for progress in (0.0, 0.5, 1.0):
        set_rates(optimizer, objective_of(config), config, progress, 0.1)
        assert set(rates(model, optimizer).values()) == {2e-3}


@pytest.mark.parametrize(("selected", "share"), [(0.2, 0.2), (1.0, 1.0), (0.01, 0.05)])
def test_dr_multiplies_the_predictors_rate_by_the_selected_share(selected, share):
    model = highlight_model()
    config = configure(overrides={"objective": "dr", "learning_rate": 1.0})
    optimizer = build_optimizer(model, objective_of(config), config)
    set_rates(optimizer, objective_of(config), config, 0.5, selected)
    for name, rate in rates(model, optimizer).items():
        slow = name.startswith(("encoder.predictor", "head"))
        assert rate == pytest.approx(share if slow else 1.0), name


def test_dr_uses_the_generators_rate_on_a_transformer(encoder):
    config = configure(
        overrides={"objective": "dr", "encoder": encoder, "generator_rate": 1e-3, "warmup": 0.0, "decay": False}
    )
    model = on_transformer(
        encoder, **{name: config.encoder_options[name] for name in ("generator_rate", "predictor_rate")}
    )
    objective = objective_of(config)
    optimizer = build_optimizer(model, objective, config)
    set_rates(optimizer, objective, config, 0.5, 0.25)
    found = rates(model, optimizer)
    assert {found[name] for name in found if name.startswith("encoder.generator")} == {1e-3}
    assert {found[name] for name in found if name.startswith("encoder.predictor")} == {0.25e-3}


def test_mgr_rates():
    """Generator i has i times the rate, the predictor a third of it."""
    model = highlight_model()
    config = configure(overrides={"objective": "mgr", "learning_rate": 0.3})
    objective = objective_of(config)
    objective.prepare(model, tuple)
    optimizer = build_optimizer(model, objective, config)
    set_rates(optimizer, objective, config, 0.5, 1.0)
    found = rates(model, optimizer)
    assert {found[name] for name in found if name.startswith(("encoder.generator", "method"))} == {0.3}
    assert {round(found[name], 9) for name in found if name.startswith(("encoder.predictor", "head"))} == {0.1}
    for factor, generator in enumerate(objective.generators, 2):
        further = rates(generator, optimizer)
        assert len(further) == len([name for name in found if name.startswith(("encoder.generator", "method"))])
        assert set(further.values()) == {factor * 0.3}
