"""Learning rates and their schedule."""

import pytest
import torch

from rationalizer.models import configure
from rationalizer.training.learning_rates import build_optimizer, set_rates
from tests.nn.tiny_models import highlight_model
from tests.nn.tiny_transformers import highlight_model as on_transformer
from tests.nn.tiny_transformers import pair_model, write_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"))


def rates(model, optimizer):
    by_parameter = {p: group["lr"] for group in optimizer.param_groups for p in group["params"]}
    return {name: by_parameter[p] for name, p in model.named_parameters() if p.requires_grad}


def test_encoders_have_separate_rates(encoder):
    config = configure(overrides={"encoder": encoder, "learning_rate": 0.01})
    model = on_transformer(encoder, generator_rate=1e-3, predictor_rate=1e-4)
    optimizer = build_optimizer(model, config)
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
    assert set(rates(model, build_optimizer(model, configure())).values()) == {2e-3}


def test_pairs(encoder):
    model = pair_model(encoder, generator_rate=1e-3)
    config = configure("at-most-one", {"encoder": encoder, "learning_rate": 0.01})
    found = rates(model, build_optimizer(model, config))
    assert {found[name] for name in found if name.startswith("encoder.")} == {1e-3}
    assert {found[name] for name in found if not name.startswith("encoder.")} == {0.01}


@pytest.mark.parametrize(("progress", "factor"), [(0.0, 0.0), (0.1, 0.5), (0.2, 1.0), (0.6, 0.5), (1.0, 0.0)])
def test_warmup_and_decay(progress, factor):
    model = highlight_model()
    config = configure(overrides={"warmup": 0.2, "decay": True, "learning_rate": 1.0})
    optimizer = build_optimizer(model, config)
    set_rates(optimizer, config, progress, 1.0)
    assert list(rates(model, optimizer).values()) == pytest.approx([factor] * len(rates(model, optimizer)))


def test_rates_are_constant_by_default():
    model, config = highlight_model(), configure()
    optimizer = build_optimizer(model, config)
    for progress in (0.0, 0.5, 1.0):
        set_rates(optimizer, config, progress, 0.1)
        assert set(rates(model, optimizer).values()) == {2e-3}


@pytest.mark.parametrize(("selected", "share"), [(0.2, 0.2), (1.0, 1.0), (0.01, 0.05)])
def test_slow_predictor_rate_is_the_selected_share(selected, share):
    model = highlight_model()
    config = configure(overrides={"slow_predictor": True, "learning_rate": 1.0})
    optimizer = build_optimizer(model, config)
    set_rates(optimizer, config, 0.5, selected)
    for name, rate in rates(model, optimizer).items():
        slow = name.startswith(("encoder.predictor", "head"))
        assert rate == pytest.approx(share if slow else 1.0), name
