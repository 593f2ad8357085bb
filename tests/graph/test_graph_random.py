"""Random graphs with loops and negations, against general solvers on the enumerated local polytope."""

import local_polytope
import numpy as np
import pytest
import torch
from random_graphs import AtLeastTwoInARow, random_graph

from rationalizer.graph import (
    AndOut,
    Budget,
    FactorGraph,
    InfeasibleError,
    OrOut,
    Pair,
    Sequence,
    SequenceBudget,
    Xor,
)


def drawn(seed, small=False):
    random = np.random.default_rng(seed)
    variables = int(random.integers(6, 11 if small else 41))
    factors = int(random.integers(1, 10 if small else 21))
    scale = 10.0 ** random.uniform(-1, 3)
    return random_graph(seed, variables, factors, scale=scale)


def in_engine(scores, build):
    g = FactorGraph()
    z = g.variable(scores)
    build(g, z)
    return g, z


def quadratic_value(scores, enumerated, z):
    return local_polytope.lp_value(scores, enumerated, np.round(z, 12)) - 0.5 * z @ z


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_lp_sparsemap(first):
    solved = 0
    for seed in range(first, first + 20):
        scores, build, enumerated = drawn(seed)
        feasible = local_polytope.lp_value(scores[0].numpy(), enumerated) > -np.inf
        g, z = in_engine(scores, build)
        if not feasible:
            with pytest.raises(InfeasibleError, match="infeasible"):
                g.lp_sparsemap(solver="general")
            continue
        solution = g.lp_sparsemap(solver="general")
        assert solution.converged.all(), seed
        found, expected = solution[z][0].numpy(), local_polytope.lp_sparsemap(scores[0].numpy(), enumerated)
        solved += 1
        if np.abs(found - expected).max() > 1e-6:
            # The general solver stops early on some degenerate graphs; then ours must be allowed and better.
            values = [quadratic_value(scores[0].numpy(), enumerated, x) for x in (found, expected)]
            assert values[0] > values[1] + 1e-10, (seed, values)
    assert solved > 10


@pytest.mark.parametrize("seed", [2, 4, 6, 17, 22, 25, 26, 38, 39])
def test_gradient_is_the_symmetric_projector_and_matches_finite_differences(seed):
    scores, build, _ = drawn(seed, small=True)
    g, z = in_engine(scores.requires_grad_(), build)
    solution = g.lp_sparsemap(solver="general")[z][0]
    rows = [torch.autograd.grad(value, scores, retain_graph=True)[0][0] for value in solution]
    jacobian = torch.stack(rows)
    torch.testing.assert_close(jacobian, jacobian.T, rtol=0, atol=1e-9)
    torch.testing.assert_close(jacobian @ jacobian, jacobian, rtol=0, atol=1e-9)

    direction = torch.randn(scores.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    step = 1e-6
    ends = []
    for sign in (1, -1):
        h, w = in_engine(scores.detach() + sign * step * direction, build)
        ends.append(h.lp_sparsemap(solver="general")[w][0])
    torch.testing.assert_close((ends[0] - ends[1]) / (2 * step), jacobian @ direction[0], rtol=0, atol=1e-6)


def test_gradients_of_factor_scores():
    draw = torch.Generator().manual_seed(3)

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=draw).requires_grad_()

    scores, states = normal(2, 8), normal(2, 3, 3)
    pair, transition, hidden, bonus = normal(2, 4), normal(2, 7), normal(2, 3, 3), normal(1)

    def layer(scores, states, pair, transition, hidden, bonus):
        g = FactorGraph()
        z, w = g.variable(scores), g.variable(states)
        g.add(Pair(z[:, :4], ~z[:, 4:], pair))
        g.add(SequenceBudget(z, 3, transition))
        g.add(Sequence(w, hidden))
        g.add(AtLeastTwoInARow(z[:, 2:7], bonus))
        g.add(OrOut(w[:, :, 0], z[:, 0]))
        solution = g.lp_sparsemap(temperature=0.7)
        assert solution.converged.all()
        return solution[z], solution[w]

    hidden = normal(2, 2, 3, 3)
    inputs = (scores, states, pair, transition, hidden, bonus)
    assert torch.autograd.gradcheck(layer, inputs, eps=1e-6, atol=1e-5)


def test_gradient_at_ties_spans_the_face():
    """½ ½ ½ ½ needs two configurations; the gradient needs the directions of all six."""

    class Half(AtLeastTwoInARow):
        def __init__(self, literals):
            super().__init__(literals, 0.0)
            every = (torch.arange(16)[:, None] >> torch.arange(4)) & 1
            self.allowed = every[every.sum(1) == 2].double()

    scores = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    g = FactorGraph()
    z = g.variable(scores)
    g.add(Half(z))
    solution = g.lp_sparsemap()[z]
    torch.testing.assert_close(solution, torch.full_like(solution, 0.5))
    (gradient,) = torch.autograd.grad(solution[0, 0], scores)
    torch.testing.assert_close(gradient[0], torch.tensor([0.75, -0.25, -0.25, -0.25], dtype=torch.float64))


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_lp_map_and_map(first):
    fractional = 0
    for seed in range(first, first + 20):
        scores, build, enumerated = drawn(seed, small=True)
        if seed % 3 == 0:
            scores = scores.round()  # ties: several optima
        values = scores[0].numpy()
        g, z = in_engine(scores, build)
        bound = local_polytope.lp_value(values, enumerated)
        best = local_polytope.best_assignment(values, enumerated)
        if bound == -np.inf:
            with pytest.raises(InfeasibleError):
                g.lp_map()
            continue
        relaxed = g.lp_map()
        assert relaxed.converged.all()
        attained = local_polytope.lp_value(values, enumerated, relaxed[z][0].numpy())
        assert attained == pytest.approx(bound, rel=1e-7, abs=1e-7), seed
        if best == -np.inf:
            with pytest.raises(InfeasibleError, match="no 0/1 assignment"):
                g.map()
            continue
        found = g.map()[z][0].numpy()
        assert set(np.unique(found)) <= {0.0, 1.0}
        assert local_polytope.assignment_value(values, enumerated, found) == pytest.approx(best, rel=1e-9), seed
        if relaxed.integral.all():
            assert attained == pytest.approx(best, rel=1e-7, abs=1e-7)
        fractional += not relaxed.integral.all()
    assert fractional > 0  # else nothing was searched


def test_map_raises_after_max_nodes():
    """Exactly two of three, three ways round an odd cycle: every bound is fractional."""
    g = FactorGraph()
    z = g.variable(torch.tensor([[1.0, 1.01, 1.02, 1.03, 1.04]], dtype=torch.float64))
    g.add(Pair(z, z[:, [1, 2, 3, 4, 0]], -2.0))
    assert not g.lp_map().integral.any()
    assert torch.equal(g.map()[z], torch.tensor([[0.0, 0, 1, 0, 1]], dtype=torch.float64))
    with pytest.raises(RuntimeError, match="max_nodes"):
        g.map(max_nodes=2)


def test_batch_equals_rows():
    scores, build, _ = random_graph(8, 12, 6, batch=5)
    g, z = in_engine(scores, build)
    together = g.lp_sparsemap(solver="general")[z]
    for b in range(5):
        h, w = in_engine(scores[b : b + 1], build)
        torch.testing.assert_close(h.lp_sparsemap(solver="general")[w][0], together[b], rtol=0, atol=1e-10)


def test_pairs_of_any_signs_in_a_batch_equal_rows():
    """A pair has another form in the program if its score is negative, and none if it is 0."""
    draw = torch.Generator().manual_seed(0)
    scores = torch.randn(6, 9, generator=draw, dtype=torch.float64)
    pairs = torch.randn(6, 8, generator=draw, dtype=torch.float64) * torch.randint(-1, 2, (6, 8), generator=draw)
    weights = torch.randn(6, 9, generator=draw, dtype=torch.float64)

    def layer(rows):
        s, r = scores[rows].clone().requires_grad_(), pairs[rows].clone().requires_grad_()
        g = FactorGraph()
        z = g.variable(s)
        g.add(Pair(z[:, :-1], ~z[:, 1:], r))
        g.add(Budget(z, 4))
        values = g.lp_sparsemap()[z]
        return values, *torch.autograd.grad((values * weights[rows]).sum(), (s, r))

    together = layer(slice(None))
    for b in range(6):
        for alone, row in zip(layer(slice(b, b + 1)), together, strict=True):
            torch.testing.assert_close(alone[0], row[b], rtol=0, atol=1e-10)


def test_mask_equals_absence():
    """A graph with padding everywhere equals the graph of what is left, in value and gradient."""
    draw = torch.Generator().manual_seed(0)
    scores = torch.randn(1, 4, 3, dtype=torch.float64, generator=draw).requires_grad_()
    flags = torch.randn(1, 4, dtype=torch.float64, generator=draw).requires_grad_()
    mask = torch.tensor([[True, True, True, False]])

    def build(z, w, g):
        g.add(Sequence(z, torch.tensor([[1.0, 0, 0], [0, 1.0, 0], [0.5, 0, 0]], dtype=torch.float64)))
        g.add(OrOut(z[..., 0], w[:, 0]))
        g.add(AndOut(~z[..., 1], ~w[:, 1]))
        g.add(Pair(w[:, :-1], w[:, 1:], 0.7))
        g.add(Budget(~w, 1))
        g.add(Xor(z[..., 2]))
        g.add(SequenceBudget(z[..., 0], 1, 0.4))

    g = FactorGraph()
    z, w = g.variable(scores, mask=mask), g.variable(flags, mask=mask)
    build(z, w, g)
    padded = g.lp_sparsemap()
    h = FactorGraph()
    x, y = h.variable(scores[:, :3]), h.variable(flags[:, :3])
    build(x, y, h)
    short = h.lp_sparsemap()
    torch.testing.assert_close(padded[z][:, :3], short[x])
    torch.testing.assert_close(padded[w][:, :3], short[y])
    assert (padded[z][:, 3] == 0).all()
    assert (padded[w][:, 3] == 0).all()
    direction = torch.randn(1, 4, 3, dtype=torch.float64, generator=draw)
    ours = torch.autograd.grad((padded[z] * direction).sum(), [scores, flags], retain_graph=True)
    theirs = torch.autograd.grad((short[x] * direction[:, :3]).sum(), [scores, flags])
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)
        assert (a[:, 3] == 0).all()
