"""The matching layer against a general QP solver and planted solutions; budgets and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rationalizer import ops
from tests.ops.oracles_matching import KINDS, planted, qp, randn, shape_for, violation

SCALES = (0.1, 1.0, 3.0, 60.0, 3e3, 1e5)
kinds = pytest.mark.parametrize("kind", KINDS)


def jacobian(scores: torch.Tensor, **options) -> torch.Tensor:
    columns = torch.autograd.functional.jacobian(lambda s: ops.matching(s, **options), scores)
    return columns.reshape(scores.numel(), scores.numel())


@settings(max_examples=60)
@given(data=st.data())
def test_agrees_with_general_qp(data):
    kind = data.draw(st.sampled_from(list(KINDS)))
    small = data.draw(st.integers(1, 4))
    m, n = shape_for(kind, small, data.draw(st.integers(small, 5)))
    options = dict(KINDS[kind])
    if "budget" in options:
        options["budget"] = data.draw(st.integers(0, small + 1))
        if data.draw(st.booleans()):
            m, n = n, m
    # Few distinct values, for many ties.
    values = st.one_of(st.integers(-2, 2).map(float), st.floats(-4, 4, allow_subnormal=False))
    scores = np.array(data.draw(st.lists(values, min_size=m * n, max_size=m * n))).reshape(m, n)
    scores *= data.draw(st.sampled_from([0.1, 1.0, 10.0]))
    z, info = ops.matching(torch.tensor(scores), **options, return_info=True)
    expected, proven = qp(scores, **options)
    assert info.converged.all()
    assert violation(z, **options) <= 1e-9
    assert np.abs(z.numpy() - expected).max() <= (1e-8 if proven else 1e-3)


@kinds
@pytest.mark.parametrize("scale", SCALES)
def test_planted_solution_at_every_scale_and_size(kind, scale, device):
    rng = np.random.default_rng(int(scale * 10))
    for small, large in ((1, 1), (1, 9), (7, 7), (12, 16), (30, 31), (24, 100), (100, 128), (128, 128)):
        m, n = shape_for(kind, small, large)
        scores, expected, options = planted(rng, m, n, kind, scale)
        z, info = ops.matching(torch.tensor(scores, device=device), **options, return_info=True)
        assert info.converged.all()
        assert violation(z, **options) <= 1e-9
        assert np.abs(z.cpu().numpy() - expected).max() <= 1e-8, (m, n)


@kinds
@pytest.mark.parametrize("scale", SCALES)
def test_ties(kind, scale):
    """The multipliers are not unique here; Z must maximize <S − Z, ·>."""
    m, n = shape_for(kind, 11, 14)
    rng = np.random.default_rng(3)
    rows, columns = rng.standard_normal((m, 1)), rng.standard_normal((1, n))
    distance = np.abs(np.arange(m)[:, None] - np.arange(n))
    batch = [
        np.ones((m, n)),
        rng.integers(-1, 2, (m, n)),
        rows + columns,
        rows * columns,
        3.0 - distance,
        distance == 0,
    ]
    scores = scale * torch.tensor(np.stack(batch).astype(float))
    z, info = ops.matching(scores, **KINDS[kind], return_info=True)
    assert info.converged.all()
    assert violation(z, **KINDS[kind]) <= 1e-9
    best = ops.matching_map(scores - z, **KINDS[kind])
    slack = ((scores - z) * (best - z)).sum((-1, -2))
    assert slack.abs().max() <= 1e-12 * scale * m * n


@kinds
def test_large_random_matrices_converge(kind):
    m, n = shape_for(kind, 100, 128)
    scores = torch.stack([randn(m, n, seed=seed, scale=scale) for seed, scale in enumerate((0.1, 3.0, 60.0, 1e5))])
    z, info = ops.matching(scores, **KINDS[kind], return_info=True)
    assert info.converged.all()
    assert info.gap.max() <= 1e-11
    assert info.iterations.max() <= 200
    assert violation(z, **KINDS[kind]) <= 1e-9
    best = ops.matching_map(scores - z, **KINDS[kind])
    slack = ((scores - z) * (best - z)).sum((-1, -2)).abs() / scores.abs().amax((-1, -2)).clamp(min=1)
    assert slack.max() <= 1e-11


def test_all_equal_scores_spread_evenly():
    z = ops.matching(torch.full((6, 8), 1e5, dtype=torch.float64), rows="exactly_one")
    assert torch.allclose(z, torch.full_like(z, 1 / 8), atol=1e-12, rtol=0)


@kinds
def test_float32_meets_its_tolerances(kind):
    m, n = shape_for(kind, 20, 28)
    for scale in SCALES:
        scores = (scale * randn(2, m, n, seed=7)).float()
        z = ops.matching(scores, **KINDS[kind])
        assert z.dtype == torch.float32
        assert violation(z, **KINDS[kind]) <= 1e-6
        assert (z - ops.matching(scores.double(), **KINDS[kind])).abs().max() <= 1e-7


@kinds
def test_low_temperature_equals_map(kind):
    m, n = shape_for(kind, 9, 12)
    scores = randn(8, m, n, seed=1)
    assert torch.allclose(
        ops.matching(scores, **KINDS[kind], temperature=1e-5),
        ops.matching_map(scores, **KINDS[kind]),
        atol=1e-9,
    )


def test_temperature_divides_in_float64():
    scores = randn(1, 5, 6).float()
    expected = ops.matching(scores.double() / 1e-3).float()
    assert torch.equal(ops.matching(scores, temperature=1e-3), expected)


def test_budgets_from_zero_to_beyond_size():
    scores = randn(7, 5, 6, scale=3.0) + 3.0
    budget = torch.arange(7)
    z = ops.matching(scores, budget=budget)
    assert torch.equal(z[0], torch.zeros(5, 6, dtype=torch.float64))
    assert (z.sum((1, 2)) - budget.clamp(max=5)).abs().max() <= 1e-12
    assert torch.equal(z[5:], ops.matching(scores[5:]))
    assert torch.equal(z[3], ops.matching(scores[3], budget=3))


def test_slack_budget_has_no_effect():
    scores = randn(3, 5, 6) - 2.0
    free = ops.matching(scores)
    assert free.sum((1, 2)).max() < 4
    assert torch.allclose(ops.matching(scores, budget=4), free, atol=1e-12, rtol=0)


def test_exactly_one_with_a_sufficient_budget():
    scores = randn(2, 4, 6)
    assert torch.equal(ops.matching(scores, rows="exactly_one", budget=4), ops.matching(scores, rows="exactly_one"))


@kinds
@pytest.mark.parametrize("scale", [0.3, 2.0, 8.0])
def test_gradcheck(kind, scale):
    m, n = shape_for(kind, 4, 6)
    scores = randn(3, m, n, seed=11, scale=scale).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: ops.matching(s, **KINDS[kind], temperature=0.7), (scores,))


@kinds
@pytest.mark.parametrize("structure", ["random", "equal", "integers", "rank_one", "diagonal"])
def test_jacobian_is_a_projector(kind, structure):
    m, n = shape_for(kind, 4, 6)
    scores = {
        "random": randn(m, n, scale=2.0),
        "equal": torch.full((m, n), 2.0, dtype=torch.float64),
        "integers": randn(m, n, seed=2, scale=2.0).round(),
        "rank_one": randn(m, 1, seed=3) * randn(1, n, seed=4),
        "diagonal": 5.0 * torch.eye(m, n, dtype=torch.float64),
    }[structure]
    j = jacobian(scores, **KINDS[kind])
    assert torch.allclose(j, j.T, atol=1e-12, rtol=0)
    assert torch.allclose(j @ j, j, atol=1e-12, rtol=0)


@pytest.mark.parametrize("budget", [None, 4])
def test_zero_multipliers_at_tight_sums(budget):
    """If all rows of a square matching are equal, the multipliers of the rows can be 0, but the row sums are fixed."""
    row = torch.tensor([5.0, 5.1, 5.2, 5.3], dtype=torch.float64)
    scores = row.expand(4, 4).clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: ops.matching(s, budget=budget), (scores,))
    j = jacobian(scores.detach(), budget=budget)
    assert torch.linalg.matrix_rank(j) == 9
    assert j.reshape(4, 4, 16).sum(1).abs().max() <= 1e-12


def test_total_that_depends_on_rows():
    """Two full rows reach the budget of 2: the total is not an independent equation."""
    scores = torch.tensor([[6.0, 5.8, 5.9], [6.0, 6.1, 5.9], [-9.0, -9.0, -9.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda s: ops.matching(s, budget=2), (scores.requires_grad_(),))


@kinds
def test_gradient_at_large_scores_is_finite(kind):
    m, n = shape_for(kind, 24, 32)
    scores = randn(2, m, n, scale=1e5).requires_grad_()
    ops.matching(scores, **KINDS[kind]).square().sum().backward()
    assert scores.grad.isfinite().all()


@kinds
def test_permutation_equivariance(kind):
    m, n = shape_for(kind, 7, 10)
    scores = randn(m, n, scale=3.0)
    rows = torch.randperm(m, generator=torch.Generator().manual_seed(1))
    columns = torch.randperm(n, generator=torch.Generator().manual_seed(2))
    z = ops.matching(scores, **KINDS[kind])
    assert torch.allclose(ops.matching(scores[rows][:, columns], **KINDS[kind]), z[rows][:, columns], atol=1e-11)


def test_transposition():
    scores = randn(6, 9, scale=3.0)
    assert torch.allclose(ops.matching(scores.T, budget=3), ops.matching(scores, budget=3).T, atol=1e-11)
    assert torch.equal(ops.matching_map(scores.T).T, ops.matching_map(scores))
    assert torch.allclose(
        ops.matching(scores.T, columns="exactly_one"), ops.matching(scores, rows="exactly_one").T, atol=1e-11
    )


def test_shift_of_tight_row_has_no_effect():
    scores = randn(6, 9, scale=3.0)
    z = ops.matching(scores, rows="exactly_one")
    assert torch.allclose(ops.matching(scores + 100 * randn(6, 1, seed=1), rows="exactly_one"), z, atol=1e-11)


def test_scores_beyond_the_range_raise():
    scores = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    z, info = ops.matching(1e29 * scores, return_info=True)
    assert info.converged.all()
    assert torch.isfinite(z).all()
    with pytest.raises(ValueError, match=r"1e\+30"):
        ops.matching(1e29 * scores, temperature=1e-8)


@pytest.mark.parametrize("trial", range(60))
def test_gradients_at_ties(trial):
    """Where the layer is differentiable, its Jacobian is the derivative, also at ties."""
    generator = torch.Generator().manual_seed(trial)
    m, n = torch.randint(1, 4, (2,), generator=generator).tolist()
    scores = torch.randint(-2, 4, (m, n), generator=generator).double() / 4
    exactly = {"rows": "exactly_one"} if m <= n else {"columns": "exactly_one"}
    options = ({}, exactly, {"budget": 1 + trial % 2})[trial % 3]

    def layer(x):
        return ops.matching(x.reshape(m, n), **options).flatten()

    step, here = 1e-5, layer(scores)
    directions = [*torch.eye(m * n, dtype=torch.float64), torch.randn(m * n, generator=generator, dtype=torch.float64)]
    ahead = [(layer(scores.flatten() + step * d) - here) / step for d in directions]
    behind = [(here - layer(scores.flatten() - step * d)) / step for d in directions]
    if any((a - b).abs().max() > 1e-3 for a, b in zip(ahead, behind, strict=True)):
        return  # a kink: there is no derivative
    jacobian = torch.autograd.functional.jacobian(layer, scores.flatten())
    for found, direction in zip(ahead, directions, strict=True):
        torch.testing.assert_close(jacobian @ direction, found, atol=1e-3, rtol=0)
