"""HardKuma variables and the multipliers that control their rate."""

import math

import pytest
import torch

from rationalizer.nn import Extraction
from rationalizer.nn.extractors.hardkuma import HIGH, LEAK, LOW, HardKumaDistribution
from rationalizer.text import Budget
from tests.nn.extractor_inputs import batch, build


def test_hardkuma_probabilities_are_those_of_its_samples():
    torch.manual_seed(0)
    a, b = torch.tensor([0.5, 1.0, 2.0, 0.2]), torch.tensor([0.5, 3.0, 1.0, 5.0])
    variables = HardKumaDistribution(a, b)
    samples = HardKumaDistribution(a.expand(200_000, 4), b.expand(200_000, 4)).sample()
    frequencies = (samples > 0).float().mean(0)
    torch.testing.assert_close(variables.log_above(0.0).exp(), frequencies, atol=0.005, rtol=0)
    ones = (samples == 1).float().mean(0)
    torch.testing.assert_close(variables.log_above(1.0).exp(), ones, atol=0.005, rtol=0)


def test_hardkuma_takes_the_most_likely_of_zero_one_and_mean():
    a, b = torch.tensor([0.1, 5.0, 2.0]), torch.tensor([5.0, 0.1, 2.0])
    zero, one, between = HardKumaDistribution(a, b).most_likely().tolist()
    assert zero == 0
    assert one == 1
    mean = 2 * math.gamma(1.5) * math.gamma(2) / math.gamma(3.5)  # b B(1 + 1/a, b)
    assert between == pytest.approx(1.2 * mean - 0.1, abs=1e-5)


@pytest.mark.parametrize("extreme", [1e-6, 100.0])
def test_hardkuma_is_finite_at_its_parameters_limits(extreme):
    for other in (1e-6, 1.0, 100.0):
        a = torch.full((1000,), extreme, requires_grad=True)
        b = torch.full((1000,), other, requires_grad=True)
        variables = HardKumaDistribution(a, b)
        sample = variables.sample()
        (sample.sum() + variables.log_above(0.0).exp().sum()).backward()
        for value in (sample, a.grad, b.grad, variables.most_likely()):
            assert torch.isfinite(value).all()


def test_multipliers_follow_the_moving_average_of_the_violations():
    settings = {"lagrangian_momentum": 0.5, "lagrangian_rate": 2.0, "lambda_init": 0.1, "fused_target": 0.2}
    settings |= {"penalty": 4.0, "target_warmup": 0.0}
    extractor = build("hardkuma", lambda_min=0.09, lambda_max=0.15, **settings)
    mask = torch.tensor([[True, True, True, True], [True, True, False, False]])
    p = torch.tensor([[0.9, 0.6, 0.5, 0.4], [0.8, 0.1, 0.0, 0.0]], requires_grad=True)
    extraction = Extraction(torch.zeros(2, 4), p.clamp(min=1e-9).log())
    budget = torch.tensor([1, 1])
    loss, state = extractor.loss(extraction, torch.tensor([1.0, 3.0]), mask, budget)

    def changes_of(p):
        of = (p[:, :-1] * (1 - p[:, 1:]) + (1 - p[:, :-1]) * p[:, 1:]) * mask[:, 1:]
        return (of.sum(1) / mask.sum(1)).mean()

    rate = ((2.4 - 1) / 4 + (0.9 - 1) / 2) / 2
    changes = ((0.9 * 0.4 + 0.1 * 0.6) + (0.6 * 0.5 + 0.4 * 0.5) + (0.5 * 0.6 + 0.5 * 0.4)) / 4
    changes = (changes + (0.8 * 0.9 + 0.2 * 0.1) / 2) / 2 - 0.2
    violations = [0.5 * rate, 0.5 * changes]
    multipliers = [min(0.15, 0.1 * math.exp(2.0 * violation)) for violation in violations]
    assert state["violations"].tolist() == pytest.approx(violations, abs=1e-6)
    assert state["multipliers"].tolist() == pytest.approx(multipliers, abs=1e-6)
    lagrangian = multipliers[0] * rate + multipliers[1] * changes + 4 * rate**2
    assert loss.item() == pytest.approx(2 + lagrangian, abs=1e-6)
    # As far as the rate goes: (λ + penalty · c) · ∂rate/∂p, the latter 1 over the lengths 4 and 2 and two texts; and
    # penalty · c · LEAK times the slope of −log(−log p).
    difference = torch.autograd.grad(loss, p)[0] - multipliers[1] * torch.autograd.grad(changes_of(p), p)[0]
    share, certainty = torch.tensor([1 / 8] * 4 + [1 / 4] * 2), p.detach()[mask]
    slope = -1 / (certainty * certainty.log())
    torch.testing.assert_close(difference[mask], share * (multipliers[0] + 4 * rate * (1 + LEAK * slope)))

    nothing = Extraction(torch.zeros(2, 4), torch.full((2, 4), -50.0))
    for _ in range(20):
        state = extractor.loss(nothing, torch.zeros(2), mask, budget).state
        for name, value in state.items():
            setattr(extractor, name, value)
    assert extractor.multipliers.tolist() == pytest.approx([0.09, 0.09])  # not below lambda_min
    everything = Extraction(torch.ones(2, 4), torch.zeros(2, 4))
    for _ in range(20):
        state = extractor.loss(everything, torch.zeros(2), mask, budget).state
        for name, value in state.items():
            setattr(extractor, name, value)
    assert extractor.multipliers[0].item() == pytest.approx(0.15)  # not above lambda_max


def test_hardkuma_converges_to_its_rate():
    """The task rewards selecting all words. Without a penalty all stay selected until the multiplier drops them all."""
    extractor = build("hardkuma", target_warmup=0.5)
    states, mask = batch((10, 10, 10, 10))
    budget = Budget.parse(0.3).word_limit(mask)
    optimizer = torch.optim.Adam(extractor.parameters(), lr=0.02)
    rates = []
    torch.manual_seed(0)
    for step in range(400):
        extractor.progress = step / 400
        extraction = extractor(states, mask, budget)
        rates.append(extraction.scores.exp().mean().item())
        loss, state = extractor.loss(extraction, -0.1 * extraction.z.mean(1), mask, budget)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for name, value in state.items():
            setattr(extractor, name, value.detach())
    assert rates[30] > 0.85
    assert rates[100] == pytest.approx(0.65, abs=0.07)  # half of the way from 1 to .3
    assert 0.25 < min(rates[220:]) <= max(rates[220:]) < 0.37


@pytest.mark.parametrize(("a", "b"), [(18.0, 1.0), (1.0, 2e-5), (15.0, 1e-3)])
def test_hardkuma_recovers_from_certainty(a, b):
    """All words have probability 1 up to rounding, as after a fast start, so the rate itself has no gradient."""
    extractor = build("hardkuma", target_warmup=0.0)
    states, mask = batch((10, 10, 10, 10))
    budget = Budget.parse(0.3).word_limit(mask)
    with torch.no_grad():
        extractor.parameters_of.weight.mul_(0.1)
        extractor.parameters_of.bias.copy_(torch.tensor([a, b]).expm1().log())  # inverse of softplus
    extraction = extractor(states, mask, budget)
    assert extraction.scores.exp().min() > 0.9999
    optimizer = torch.optim.Adam(extractor.parameters(), lr=0.05)
    for _ in range(1000):
        extraction = extractor(states, mask, budget)
        loss, _ = extractor.loss(extraction, torch.zeros(4), mask, budget)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert extraction.scores.exp().mean().item() == pytest.approx(0.3, abs=0.03)


def test_hardkuma_probabilities_are_accurate():
    a = torch.tensor([1e-6, 1e-3, 0.05, 0.5, 1.0, 5.0, 12.0, 30.0])
    for value in (0.0, 1.0):
        x = (value - LOW) / (HIGH - LOW)
        exact = [math.log(-math.expm1(each * math.log(x))) for each in a[:6].double().tolist()]
        exact += [math.log1p(-(x**each)) for each in a[6:].double().tolist()]
        found = HardKumaDistribution(a, torch.ones(8)).log_above(value)
        torch.testing.assert_close(found, torch.tensor(exact), rtol=1e-5, atol=0)


def test_changes_are_free_without_fused_target():
    free, priced = build("hardkuma", target_warmup=0.0), build("hardkuma", target_warmup=0.0, fused_target=0.0)
    p = torch.tensor([[0.9, 0.1, 0.9, 0.1]])
    extraction, mask = Extraction(torch.zeros(1, 4), p.log()), torch.ones(1, 4, dtype=torch.bool)
    given = (extraction, torch.zeros(1), mask, torch.tensor([2]))
    assert free.loss(*given).loss.item() == pytest.approx(0, abs=1e-6)  # the rate is .5
    assert priced.loss(*given).loss.item() > 1e-5
