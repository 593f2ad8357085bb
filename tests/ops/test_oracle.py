"""Every layer against a general QP solver and enumeration, on drawn cases."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rationalizer import ops
from tests.ops import oracles
from tests.ops.layers import chains, row

CASES = settings(max_examples=400)


def assert_close(z, want):
    """An interior point near a kink is good to 1e-4 or so; a proven optimum is one to rounding."""
    error = np.abs(z[0].numpy() - want.z).max()
    assert error <= (2e-8 if want.proven else 2e-3), (error, z, want)


@CASES
@given(chains())
def test_sparsemax(case):
    s, _, _ = case
    assert_close(ops.sparsemax(row(s)), oracles.sparsemax(s))


@CASES
@given(chains(), st.sampled_from([0.0, 0.1, 0.7, 5.0]))
@example((np.array([0.0, 0, 0, 1, 2, -3, 1, 1]), np.zeros(7), 0), 0.0)  # dependent constraints at the optimum
def test_fusedmax(case, tv):
    s, _, _ = case
    assert_close(ops.fusedmax(row(s), tv=tv), oracles.fusedmax(s, tv))


@CASES
@given(chains())
def test_budget(case):
    s, _, limit = case
    assert_close(ops.budget(row(s), limit), oracles.budget(s, limit))


@CASES
@given(chains())
def test_pair_budget(case):
    s, r, limit = case
    assert_close(ops.pair_budget(row(s), limit, transition=row(r)), oracles.pair_budget(s, r, limit))


@CASES
@given(chains(longest=7))
def test_sequence_budget(case):
    s, r, limit = case
    z, info = ops.sequence_budget(row(s), limit, transition=row(r), return_info=True)
    assert info.converged.all()
    assert_close(z, oracles.sequence_budget(s, r, limit))


@CASES
@given(chains(longest=7, sign="±"))
def test_sequence_budget_with_transitions_of_any_sign(case):
    s, r, limit = case
    z, info = ops.sequence_budget(row(s), limit, transition=row(r), return_info=True)
    assert info.converged.all()
    assert_close(z, oracles.sequence_budget(s, r, limit))


@settings(max_examples=1500)
@given(chains(longest=10, sign="±"))
def test_sequence_budget_map(case):
    s, r, limit = case
    y = ops.sequence_budget_map(row(s), limit, transition=row(r))[0].numpy()
    assert set(np.unique(y)) <= {0.0, 1.0}
    assert y.sum() <= limit
    best = oracles.sequence_scores(s, r, oracles.sequence_budget_map(s, r, limit)[None])[0]
    assert oracles.sequence_scores(s, r, y[None])[0] == pytest.approx(best, rel=1e-12, abs=1e-12)


@CASES
@given(chains(longest=12), st.integers(0, 13))
def test_decoders(case, k):
    s, _, _ = case
    n = len(s)
    count = min(k, n)
    top = ops.top_k(row(s), k)[0].numpy()
    window = ops.contiguous(row(s), k)[0].numpy()
    assert top.sum() == window.sum() == count
    assert top @ s == pytest.approx(np.sort(s)[n - count :].sum(), abs=1e-9)
    sums = [s[i : i + count].sum() for i in range(n - count + 1)]
    assert window @ s == pytest.approx(max(sums), rel=1e-12, abs=1e-9)
    assert np.count_nonzero(np.diff(np.pad(window, 1)) > 0) <= 1


def test_contiguous_with_large_offset():
    """What all windows share must not cost the digits that tell them apart."""
    scores = 1e15 + torch.tensor([[0.0, 1.0, 0.0, 2.0, 1.0, 0.0, 1.0, 0.0]], dtype=torch.float64).repeat(1, 40)
    scores[0, 200:203] += 1
    chosen = ops.contiguous(scores, 3)[0].nonzero().squeeze(-1)
    sums = (scores - 1e15).unfold(-1, 3, 1).sum(-1)[0]
    assert chosen[0] == sums.argmax()


@pytest.mark.parametrize("huge", [1e20, 1e150, 1.7e308])
@pytest.mark.parametrize("count", [1, 4])
def test_contiguous_beside_huge_scores(huge, count):
    small = torch.tensor([1.0, 2.0, 4.0, 3.0, 1.0, 5.0], dtype=torch.float64)
    large = torch.full((count,), huge, dtype=torch.float64)
    best = ops.contiguous(torch.cat([-large, small, -large])[None], 2)[0]
    assert best.nonzero()[:, 0].tolist() == [count + 2, count + 3]
    best = ops.contiguous(torch.cat([small[:3], large, small])[None], count + 2)[0]  # 4 and 1, or 2 + 4, or 1 + 2
    assert best.nonzero()[:, 0].tolist() == list(range(1, count + 3))
    scaled = huge * torch.tensor([[0.5, 1.0, 1.0, -1.0, 1.0, 1.0, 1.0]], dtype=torch.float64)
    assert ops.contiguous(scaled, 3)[0].tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_tiny_score_next_to_huge_score():
    """What the reference calls proven must be so in absolute terms, not relative to the largest score."""
    s, r = np.array([2e-8, 0.0, -2e4]), np.zeros(2)
    assert ops.pair_budget(row(s), 1, transition=row(r))[0].tolist() == [2e-8, 0.0, 0.0]
    want = oracles.pair_budget(s, r, 1)
    assert not want.proven or abs(want.z[0] - 2e-8) <= 2e-9


def test_most_reference_solutions_are_certified():
    """Otherwise the comparisons above would be loose ones."""
    rng = np.random.default_rng(0)
    proven = [oracles.sequence_budget(rng.normal(size=6), rng.random(5), 2).proven for _ in range(50)]
    assert np.mean(proven) > 0.8


@pytest.mark.parametrize("n", [8, 14])
@pytest.mark.parametrize("transition", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("temperature", [0.05, 0.3])
def test_sequence_budget_is_a_mixture_of_best_sequences(n, transition, temperature):
    """Exactness without a QP solver: z mixes sequences that are all best at scores s − z (and only such)."""
    from scipy.optimize import nnls

    limit = max(2, n // 4)
    s = 0.3 * torch.randn(40, n, dtype=torch.float64, generator=torch.Generator().manual_seed(n)) / temperature
    r = np.full(n - 1, transition / temperature)
    z, info = ops.sequence_budget(s, limit, transition=transition / temperature, return_info=True)
    assert info.converged.all()
    y = oracles.sequences(n, limit).astype(float)
    for scores, solution in zip(s.numpy(), z.numpy(), strict=True):
        value = oracles.sequence_scores(scores - solution, r, y)
        best = y[value >= value.max() - 1e-9]
        _, residual = nnls(np.vstack([best.T, np.ones(len(best))]), np.append(solution, 1.0))
        assert residual <= 1e-8


TIED = st.sampled_from([0.0, 0.25, 0.3, 0.5, 0.75, 1.0])
TIED_EDGES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0])


@st.composite
def tied(draw, sign="+"):
    """Few different values, so that most scores are tied, and all of them often."""
    n = draw(st.integers(2, 7))
    scores = draw(st.one_of(st.lists(TIED, min_size=n, max_size=n), TIED.map(lambda value: [value] * n)))
    edges = draw(
        st.one_of(st.lists(TIED_EDGES, min_size=n - 1, max_size=n - 1), TIED_EDGES.map(lambda r: [r] * (n - 1)))
    )
    if sign == "±":
        signs = draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n - 1, max_size=n - 1))
        edges = [edge * s for edge, s in zip(edges, signs, strict=True)]
    return np.array(scores), np.array(edges, dtype=float), draw(st.integers(1, n))


def assert_jacobian(layer, s):
    """Where steps to both sides, along the axes and across, agree on a derivative, the gradient is that derivative."""
    step, n = 1e-6, len(s)
    across = np.random.default_rng(0).normal(size=(4, n))
    directions = torch.from_numpy(np.vstack([np.eye(n), across]))
    scores = torch.from_numpy(s)
    z = layer(scores[None])
    ahead, behind = ((layer(scores + sign * step * directions) - z) / (sign * step) for sign in (1, -1))
    smooth = (ahead - behind).abs().max() < 1e-5 and (directions @ ahead[:n] - ahead).abs().max() < 1e-4
    if smooth:
        jacobian = torch.autograd.functional.jacobian(lambda x: layer(x[None])[0], scores)
        torch.testing.assert_close(jacobian, ahead[:n].T, rtol=0, atol=1e-4)


@CASES
@given(tied(), st.sampled_from([0.0, 0.1, 0.25, 0.7]))
@example((np.array([0.3, 0.3, 0.0, 1.0, 1.0]), np.full(4, 0.1), 2), 0.0)  # the relaxation alone has a kink here
def test_gradients_at_ties(case, tv):
    s, r, limit = case
    edges = torch.from_numpy(r)
    assert_jacobian(ops.sparsemax, s)
    assert_jacobian(lambda x: ops.fusedmax(x, tv=tv), s)
    assert_jacobian(lambda x: ops.budget(x, limit), s)
    assert_jacobian(lambda x: ops.pair_budget(x, limit, transition=edges), s)
    assert_jacobian(lambda x: ops.sequence_budget(x, limit, transition=edges), s)


@CASES
@given(tied(sign="±"))
def test_gradients_at_ties_with_transitions_of_any_sign(case):
    s, r, limit = case
    assert_jacobian(lambda x: ops.sequence_budget(x, limit, transition=torch.from_numpy(r)), s)


def test_gradient_beyond_the_span_of_the_support():
    """000, 101 and 010 make up z, but 100 and 001 are as good: the layer is the identity here."""
    scores = torch.full((3,), 0.3, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda s: ops.sequence_budget(s, 3, transition=-1.0), scores)
    torch.testing.assert_close(jacobian, torch.eye(3, dtype=torch.float64), rtol=0, atol=1e-12)


@CASES
@given(tied(sign="±"))
def test_sequence_budget_at_ties(case):
    s, r, limit = case
    z, info = ops.sequence_budget(row(s), limit, transition=row(r), return_info=True)
    assert info.converged.all()
    assert_close(z, oracles.sequence_budget(s, r, limit))
