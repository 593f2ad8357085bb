"""Properties of the chain layers: scales, limits, certificates of the closed form, convergence."""

import warnings
from itertools import product

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from rationalizer import ops
from rationalizer.ops.kernels.maximum_entropy_cpu import distance_to_mixture
from rationalizer.ops.kernels.mixture_certificate_cpu import is_mixture_within_budget
from rationalizer.ops.kernels.sequence_budget_map_cpu import budgeted_viterbi


def best_value(u, r, limit):
    y = ops.sequence_budget_map(u, limit, transition=r)
    return (u * y).sum(-1) + (r * y[:, 1:] * y[:, :-1]).sum(-1)


@pytest.mark.parametrize("temperature", [1.0, 0.2, 0.05, 1e-3, 5e-5])
@pytest.mark.parametrize("ratio", [0.0, 0.003, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("n", [20, 150])
def test_exact_at_every_scale(temperature, ratio, n):
    """z is optimal if all sequences of its support are MAP solutions at s − z."""
    generator = torch.Generator().manual_seed(n)
    scores = 0.3 * torch.randn(12, n, dtype=torch.float64, generator=generator)
    limit = n // 5
    edges = 0.3 * ratio * torch.rand(12, n - 1, dtype=torch.float64, generator=generator)
    z, info = ops.sequence_budget(scores, limit, transition=edges, temperature=temperature, return_info=True)
    assert info.converged.all()
    assert (z.sum(-1) <= limit + 1e-9).all()
    u, r = scores / temperature - z, edges / temperature
    best = best_value(u, r, limit)
    # The score of z at s − z lies between its value in the relaxation and the optimum; with the closed form both are
    # the optimum.
    earned = (u * z).sum(-1) + (r * torch.minimum(z[:, 1:], z[:, :-1])).sum(-1)
    tolerance = 1e-10 * (1 + best.abs())
    assert (earned >= best - tolerance).all()
    closed = info.iterations == 0
    assert (earned - best).abs()[closed].le(tolerance[closed]).all()
    assert (info.gap <= tolerance).all()


def test_pair_budget_is_an_upper_bound():
    """The relaxation contains all mixtures of sequences, and has the same solution if it is certified."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(200, 12, dtype=torch.float64, generator=generator)
    z, info = ops.sequence_budget(scores, 3, transition=0.3, temperature=0.5, return_info=True)
    relaxed = ops.pair_budget(scores, 3, transition=0.3, temperature=0.5)
    closed = info.iterations == 0
    assert closed.any()
    assert (~closed).any()
    assert torch.equal(z[closed], relaxed[closed])
    assert ((z - relaxed).abs().amax(-1)[~closed] > 1e-9).float().mean() > 0.9


@pytest.mark.parametrize("transition", [0.0, 0.05, 0.5, 3.0])
def test_low_temperature_equals_map(transition):
    generator = torch.Generator().manual_seed(4)
    scores = torch.randn(60, 25, dtype=torch.float64, generator=generator)
    z = ops.sequence_budget(scores, 6, transition=transition, temperature=1e-7)
    y = ops.sequence_budget_map(scores, 6, transition=transition)
    torch.testing.assert_close(z, y, rtol=0, atol=1e-8)


def test_no_transitions_equals_budget():
    scores = torch.randn(50, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    expected = ops.budget(scores, 8, temperature=0.3)
    torch.testing.assert_close(ops.sequence_budget(scores, 8, temperature=0.3), expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(ops.pair_budget(scores, 8, temperature=0.3), expected, rtol=0, atol=1e-12)


def test_slack_budget_equals_chain():
    """Without a budget the local polytope of the chain is exact, so both layers agree without iterations."""
    scores = torch.randn(50, 15, dtype=torch.float64, generator=torch.Generator().manual_seed(6))
    z, info = ops.sequence_budget(scores, 15, transition=0.7, return_info=True)
    assert (info.iterations == 0).all()
    assert torch.equal(z, ops.pair_budget(scores, 15, transition=0.7))


def test_float32_at_test_temperature():
    """Scores/T of 1e5 in float32: the division and the solve must not lose the digits."""
    scores = torch.randn(16, 200, generator=torch.Generator().manual_seed(8))
    scores[8:] = 1 + 5e-5 * scores[8:]  # so close together that the solution is not 0/1
    for op in (ops.budget, ops.pair_budget, ops.sequence_budget):
        z = op(scores, 40, temperature=5e-5)
        assert ((z[8:] > 0) & (z[8:] < 1)).any(-1).all()
        exact = op(scores.double(), 40, temperature=5e-5)
        torch.testing.assert_close(z.double(), exact, rtol=0, atol=1e-6)


def test_long_rows(device, generator):
    n = 10_000
    scores = (0.3 * torch.randn(2, n, generator=generator)).to(device).requires_grad_()
    z, info = ops.sequence_budget(scores, n // 5, transition=0.001, temperature=0.05, return_info=True)
    assert info.converged.all()
    assert (z.double().sum(-1) - n // 5).abs().max() < 1e-3  # float32 sum of 2,000 terms
    z.sum().backward()
    assert torch.isfinite(scores.grad).all()
    expected = ops.sequence_budget(scores.detach().cpu(), n // 5, transition=0.001, temperature=0.05)
    torch.testing.assert_close(z.detach().cpu(), expected, rtol=0, atol=1e-6)
    big = ops.sequence_budget(scores.detach(), n // 5, transition=3.0, temperature=0.05)
    assert big.double().sum(-1).max() <= n // 5 + 1e-2


def test_convergence_warning():
    scores = torch.randn(4, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(10))
    with pytest.warns(ops.ConvergenceWarning, match="max_iterations"):
        z = ops.sequence_budget(scores, 8, transition=1.0, max_iterations=2)
    assert z.sum(-1).max() <= 8 + 1e-9  # still feasible
    _, info = ops.sequence_budget(scores, 8, transition=1.0, max_iterations=2, return_info=True)
    assert not info.converged.all()
    assert (info.gap[~info.converged] > 0).all()
    assert (info.iterations <= 2).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ops.sequence_budget(scores, 8, transition=1.0)
    with pytest.raises(ValueError, match="max_iterations"):
        ops.sequence_budget(scores, 8, max_iterations=0)


@pytest.mark.parametrize("transition", [0.3, 1.0, 3.0])
def test_early_stop_is_feasible_and_gap_is_a_bound(transition):
    """Also if the limit is reached just as fixed words are freed. ½‖z − z*‖² ≤ gap by strong convexity."""
    scores = torch.randn(16, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def solve(most):
        return ops.sequence_budget(
            scores, 6, transition=transition, temperature=0.3, max_iterations=most, return_info=True
        )

    optimum, info = solve(100_000)
    assert info.converged.all()
    for most in range(1, int(info.iterations.max()) + 1):
        z, stopped = solve(most)
        assert z.min() >= 0
        assert z.max() <= 1
        assert z.sum(-1).max() <= 6 + 1e-9
        assert torch.isfinite(stopped.gap).all()
        assert (0.5 * (z - optimum).square().sum(-1) <= stopped.gap + 1e-12).all()
        assert torch.equal(stopped.converged, info.iterations <= most)


@pytest.mark.parametrize("transition", [1e-4, -1e-4])  # from a nearly optimal mixture, and from the MAP
def test_tied_scores_that_need_as_many_sequences_as_words(transition, device):
    """New sequences soon lie in the affine hull of the support, and must be exchanged for one of it."""
    n, limit = 40, 18
    scores = 0.25 + 0.5 * (torch.rand(8, n, generator=torch.Generator().manual_seed(0)) < 0.5).double()
    edges = torch.full((8, n - 1), transition, dtype=torch.float64)
    z, info = ops.sequence_budget(scores.to(device), limit, transition=edges.to(device), return_info=True)
    assert info.converged.all()
    assert (info.iterations > n).any() == (transition < 0)
    z = z.cpu()
    best = best_value(scores - z, edges, limit)
    pairs = torch.minimum(z[:, 1:], z[:, :-1]) if transition > 0 else (z[:, 1:] + z[:, :-1] - 1).clamp(min=0)
    earned = ((scores - z) * z).sum(-1) + (edges * pairs).sum(-1)
    assert (earned >= best - 1e-10).all()


def test_one_dominant_sequence(device):
    """The weights sum to 1 up to rounding, times a large score; this must not count as a gap."""
    scores = torch.full((1, 8), -539.19786375, dtype=torch.float64, device=device)
    edges = torch.tensor([0.0, 347143.398, 0.0, 0.0, 0.0, -1.0, 109.761], dtype=torch.float64, device=device)
    z, info = ops.sequence_budget(scores, 4, transition=edges, return_info=True)
    assert info.converged.all()
    assert z.tolist() == [[0, 1, 1, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("op", [ops.budget, ops.pair_budget, ops.sequence_budget])
@pytest.mark.parametrize("size", [1e2, 1e5, 1e8, 1e17, 1e200])
def test_ties_are_split_at_every_size(op, size, device):
    """If neighbouring floats differ by more than 1, the threshold itself cannot be represented."""
    scores = torch.tensor([[1.0, 1.0, 2.0, 1.0, 1.0, 0.5, 1.0]], dtype=torch.float64, device=device) * size
    expected = torch.tensor([[0.4, 0.4, 1.0, 0.4, 0.4, 0.0, 0.4]], dtype=torch.float64, device=device)
    torch.testing.assert_close(op(scores, 3), expected, rtol=0, atol=1e-12)


def test_info_has_the_batch_shape():
    z, info = ops.sequence_budget(torch.randn(2, 3, 9), 2, transition=0.2, return_info=True)
    assert z.shape == (2, 3, 9)
    assert info.converged.shape == info.iterations.shape == info.gap.shape == (2, 3)
    assert info.converged.dtype == torch.bool


def test_pair_budget_rejects_negative_transitions():
    with pytest.raises(ValueError, match=r"-0\.5"):
        ops.pair_budget(torch.randn(1, 4), 2, transition=-0.5)


def test_masked_words_use_the_transition_at_the_earlier_word():
    scores = torch.tensor([[1.0, 9.0, 1.0, 1.0]], dtype=torch.float64)
    mask = torch.tensor([[True, False, True, True]])
    edges = torch.tensor([0.5, 7.0, 0.25], dtype=torch.float64)
    closed = ops.sequence_budget(scores[:, [0, 2, 3]], 2, transition=edges[[0, 2]], temperature=0.5)
    z = ops.sequence_budget(scores, 2, transition=edges, mask=mask, temperature=0.5)
    assert torch.equal(z[mask], closed[0])


@pytest.mark.parametrize(
    ("z", "linked", "capacity", "expected"),
    [
        ([0.5, 0.5], [1.0], 1, False),  # one plateau: both or none, so two at once
        ([0.5, 0.5], [0.0], 1, True),  # independent: one after the other
        ([0.8, 0.7, 0.0, 0.5], [1.0, 1.0, 1.0], 2, False),
        ([0.8, 0.7, 0.0, 0.5], [0.0, 1.0, 1.0], 2, True),
        ([0.3, 0.5, 0.2], [1.0, 1.0], 2, True),  # the outer two side by side inside the middle one
        ([0.3, 0.5, 0.4], [1.0, 1.0], 2, False),
        ([1.0, 0.5, 1.0, 0.5], [1.0, 1.0, 1.0], 1, True),
    ],
)
def test_mixture_certificate(z, linked, capacity, expected):
    values = np.array(z)
    work, singles = np.empty((3, 2 * len(z) + 2)), np.empty(len(z))
    assert is_mixture_within_budget(values, np.array(linked), capacity, 0, 0.0, work, singles) == expected


def test_viterbi_offset_does_not_change_the_sequence():
    rng = np.random.default_rng(0)
    for _ in range(50):
        s, r, limit = rng.normal(size=9), rng.normal(size=8), 4
        back, value = np.empty((9, limit + 1), np.uint8), np.empty((2, limit + 1))
        plain, shifted = np.zeros(9, np.uint8), np.zeros(9, np.uint8)
        best = budgeted_viterbi(s, r, 0, limit, 0.0, plain, back, value)
        other = budgeted_viterbi(s - 0.8, r, 0, limit, 0.8, shifted, back, value)
        assert (plain == shifted).all()
        assert other + 0.8 * limit == pytest.approx(best)


def small_spread(rows, n, spread=0.05, seed=0):
    """The start of a training: scores of little spread and a budget that binds."""
    generator = torch.Generator().manual_seed(seed)
    return 0.5 + spread * torch.randn(rows, n, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize(("n", "transition", "spread"), [(200, 1e-4, 0.05), (256, 1e-3, 0.05), (1024, 1.0, 0.3)])
def test_maximum_entropy_certifies_similar_scores(n, transition, spread):
    """The closed form is optimal, and proven so without the active-set method."""
    scores = small_spread(8, n, spread)
    z, info = ops.sequence_budget(scores, n // 5, transition=transition, return_info=True)
    assert info.converged.all()
    proven = info.iterations == 0
    assert proven.sum() >= 5
    edges = torch.full((8, n - 1), transition, dtype=torch.float64)
    earned = ((scores - z) * z).sum(-1) + (edges * torch.minimum(z[:, 1:], z[:, :-1])).sum(-1)
    assert ((earned - best_value(scores - z, edges, n // 5))[proven] >= -1e-9).all()


def nearest_nested_mixture(z, edges, least, most):
    """Return the distance of `z` from the mixtures of sequences that respect the order of neighbours."""
    bits = np.array(list(product((0.0, 1.0), repeat=len(z))))
    words = bits.sum(1)
    kept = (words >= least) & (words <= most) & ((bits == z) | ((z > 0) & (z < 1))).all(1)
    for i in range(len(z) - 1):
        if edges[i] > 0:
            smaller, larger = (i, i + 1) if z[i] <= z[i + 1] else (i + 1, i)
            kept &= bits[:, smaller] <= bits[:, larger]
            kept &= (z[i] != z[i + 1]) | (bits[:, i] == bits[:, i + 1])
    sequences = bits[kept]
    if not len(sequences):
        return np.inf
    heavy = 1e4  # the weight of Σp = 1 beside Σ p_j y_j = z
    rows = np.vstack([sequences.T, np.full(len(sequences), heavy)])
    return nnls(rows, np.append(z, heavy), maxiter=10_000)[1]


@pytest.mark.parametrize("transition", [1e-6, 1e-3, 0.03, 0.1])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("least", [3, 0])  # exactly 3 ones, or at most 3
def test_distance_to_mixture(transition, ties, least):
    """No distance is smaller than that of the nearest mixture, and mixtures that are equal to z are found."""
    edges, stop = transition * (np.arange(9) % 3 > 0), np.zeros(1, np.uint8)
    found, possible = 0, 0
    for seed in range(12):
        scores = small_spread(1, 10, spread=0.2, seed=seed) - (0.0 if least else 0.35)
        scores = (scores * 10).round() / 10 if ties else scores
        z = ops.pair_budget(scores, 3, transition=torch.tensor(edges))[0].numpy()
        nearest = nearest_nested_mixture(z, edges, least, 3)
        equal = distance_to_mixture(z, edges, least, 3, 0.0, stop)
        close = distance_to_mixture(z, edges, least, 3, 0.1, stop)
        assert nearest <= 1e-6 or equal == np.inf
        assert nearest <= close + 1e-6
        assert equal <= 1e-10 or equal == np.inf
        assert close <= 0.1 or close == np.inf
        found, possible = found + (equal < np.inf), possible + (nearest <= 1e-6)
    assert found >= 0.7 * possible > 0
    assert distance_to_mixture(z, edges, least, 3, 0.0, np.ones(1, np.uint8)) == np.inf


@pytest.mark.parametrize("transition", [1e-6, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("tolerance", [1e-3, 3e-2])
def test_tolerance_bounds_the_error(transition, tolerance):
    for scores in (small_spread(8, 60), small_spread(8, 60).mul(4).round() / 4, small_spread(8, 60, spread=1.0)):
        leaf = scores.clone().requires_grad_()
        exact, sure = ops.sequence_budget(scores, 12, transition=transition, return_info=True)
        z, info = ops.sequence_budget(leaf, 12, transition=transition, tolerance=tolerance, return_info=True)
        assert sure.converged.all()
        assert info.converged.all()
        assert (z - exact).abs().max() <= tolerance
        assert info.gap.max() <= tolerance**2
        assert (info.iterations <= sure.iterations).all()
        assert z.sum(-1).max() <= 12 + 1e-9
        assert z.min() >= 0
        assert z.max() <= 1
        (gradient,) = torch.autograd.grad((z * torch.arange(60.0)).sum(), leaf)
        assert torch.isfinite(gradient).all()
    for bad in (-1.0, float("nan"), "much"):
        with pytest.raises(ValueError, match="tolerance"):
            ops.sequence_budget(scores, 12, tolerance=bad)


def test_tied_scores_with_tiny_transitions_converge():
    """Only ties: scores .3 and .7, and equal scores with transitions that differ in the seventh digit."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.where(torch.rand(3, 128, generator=generator) < 0.5, 0.3, 0.7).double()
    z, info = ops.sequence_budget(scores, 64, transition=1e-6, return_info=True)
    assert info.converged.all()
    edges = 1e-7 * torch.rand(2, 63, dtype=torch.float64, generator=generator)
    flat = torch.full((2, 64), 0.3, dtype=torch.float64)
    z, info = ops.sequence_budget(flat, 12, transition=edges, return_info=True)
    assert (z - 12 / 64).abs().max() <= 1e-5
    assert (info.gap <= 1e-6).all()


@pytest.mark.parametrize("size", [1e12, 1e20, 1e32, 1e37, 1e150, 1e290])
def test_scores_of_any_finite_size_have_a_solution(size):
    scores = size * torch.randn(6, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for transition in (0.3 * size, -0.3 * size, 0.3):
        z, info = ops.sequence_budget(scores, 4, transition=transition, return_info=True)
        assert info.converged.all()
        assert torch.equal(z, ops.sequence_budget_map(scores, 4, transition=transition))
    cold = ops.sequence_budget(1e29 * (scores / size), 4, transition=1e28, temperature=1e-8)
    assert torch.isfinite(cold).all()


@pytest.mark.parametrize("transition", [0.0, 0.2, -0.3])
def test_transitions_have_no_effect_at_budget_one(transition):
    scores = torch.rand(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) / 5
    edges = torch.full((4, 5), transition, dtype=torch.float64, requires_grad=True)
    z = ops.sequence_budget(scores, torch.tensor([1, 1, 1, 0]), transition=edges)
    torch.testing.assert_close(z[:3], ops.budget(scores[:3], 1))
    z.square().sum().backward()
    assert not edges.grad.any()
