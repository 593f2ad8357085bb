"""Every numeric setting has a range; values outside raise before training."""

import math

import pytest
import torch

from rationalizer.models.config import Config, configure
from rationalizer.nn import ALIGNERS, ENCODERS, EXTRACTORS
from rationalizer.nn.method import settings_hints
from rationalizer.ranges import ranges_in, ranges_of

HUGE = 10**300
METHODS = [(name, False) for name in sorted(EXTRACTORS)] + [(name, True) for name in sorted(ALIGNERS)]
# What is meant by a value that others cannot have.
MEANINGFUL = {("spectra", "transition", -1)}  # a penalty on neighbours


def numbers(options):
    return [name for name, (kind, _) in options.items() if kind in (int, float, int | None, float | None)]


def cases():
    common = {name: (kind, None) for name, kind in configure_types().items()}
    yield from ((None, False, {}, name) for name in numbers(common))
    for method, pairs in METHODS:
        own = (ALIGNERS if pairs else EXTRACTORS)[method].options()
        yield from ((method, pairs, {}, name) for name in numbers(own))
    for encoder, kind in ENCODERS.items():
        source = "some/transformer" if kind.loads_pretrained else encoder
        yield from ((None, False, {"encoder": source}, name) for name in numbers(kind.options()))


def configure_types():
    from rationalizer.models.config import _common_types

    return _common_types()


CASES = list(cases())


def test_all_kinds_of_settings_are_covered():
    names = {name for *_, name in CASES}
    assert {"seed", "clip", "tv", "lambda_min", "momentum", "hidden", "window", "generator_rate"} <= names
    assert len(CASES) > 40


@pytest.mark.parametrize(("method", "pairs", "given", "name"), CASES)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1, HUGE, str(HUGE), "nan", "1e999"])
def test_numbers_out_of_range_raise(method, pairs, given, name, value):
    if (method, name, value) in MEANINGFUL:
        configure(method, {**given, name: value}, pairs=pairs)
        return
    with pytest.raises(ValueError, match=rf"^{name} must "):
        configure(method, {**given, name: value}, pairs=pairs)


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("hardkuma", {"lambda_min": 2, "lambda_max": 1}, "lambda_min must be at most lambda_max, got 2.0 and 1.0"),
        ("sfe-baseline", {"momentum": 7}, r"momentum must lie in \[0, 1\], got 7.0"),
        ("sfe", {"sparsity": -3}, "sparsity must be at least 0, got -3.0"),
        ("hardkuma", {"lagrangian_momentum": 1}, r"lagrangian_momentum must lie in \[0, 1\), got 1.0"),
        ("pair-budget", {"transition": -0.1}, "transition must be at least 0, got -0.1"),
        ("spectra", {"temperature": 1e-30}, "temperature must be at least 0.0001, got 1e-30"),
        ("spectra", {"faithful": False}, "faithful=false is a setting for pairs of texts, .* leave it out"),
        ("spectra", {"epochs": 10**7}, "epochs must be at most 1,000,000, got 10000000"),
    ],
)
def test_invalid_values_raise(method, settings, message):
    with pytest.raises(ValueError, match=message):
        configure(method, settings)


@pytest.mark.parametrize("method", sorted(EXTRACTORS))
def test_range_limits_are_valid(method):
    """Selections and their gradients are finite at both ends of each range."""
    kind = EXTRACTORS[method]
    states = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    mask, budget = torch.ones(2, 5, dtype=torch.bool), torch.tensor([2, 3])
    for name, allowed in ranges_in(settings_hints(kind)).items():
        for value in (allowed.low, math.nextafter(allowed.high, 0) if allowed.below else allowed.high):
            extractor = kind(4, **{name: float(value)})
            found = extractor(states, mask, budget)
            loss = extractor.loss(found, found.z.sum(-1), mask, budget).loss
            assert found.z.isfinite().all(), (name, value)
            assert loss.isfinite(), (name, value)
            loss.backward()
            assert all(p.grad is None or p.grad.isfinite().all() for p in extractor.parameters()), (name, value)


@pytest.mark.parametrize("method", sorted(ALIGNERS))
def test_range_limits_are_valid_for_pairs(method):
    scores = torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(0)).requires_grad_()
    masks = torch.ones(2, 4, dtype=torch.bool), torch.ones(2, 5, dtype=torch.bool)
    for name, allowed in ranges_in(settings_hints(ALIGNERS[method])).items():
        for value in (allowed.low, allowed.high):
            found = ALIGNERS[method](**{name: value})(scores, *masks, torch.tensor([2, 3]))
            assert found.z.isfinite().all(), (name, value)
            (gradient,) = torch.autograd.grad(found.z.square().sum(), scores)
            assert gradient.isfinite().all(), (name, value)


def test_every_number_declares_its_range():
    for _, kind in [*EXTRACTORS.items(), *ALIGNERS.items()]:
        assert set(numbers(kind.options())) <= set(ranges_in(settings_hints(kind)))
    for kind in ENCODERS.values():
        assert set(numbers(kind.options())) <= set(ranges_of(kind.Options))
    assert set(numbers({name: (kind, None) for name, kind in configure_types().items()})) <= set(ranges_of(Config))
