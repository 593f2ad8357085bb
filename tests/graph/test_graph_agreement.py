"""On every graph that an op covers, engine and op agree, in value and in gradient."""

import pytest
import torch

from rationalizer import ops
from rationalizer.graph import AtMostOne, Budget, FactorGraph, Pair, SequenceBudget, Xor


def compare(scores, build, op, *extra, mask=None, temperature=1.0):
    """Value and gradients of the engine's own path, of the routed one, and of the op itself."""
    inputs = [value.clone().requires_grad_() for value in (scores, *extra)]
    expected = op(*inputs)
    direction = torch.randn(expected.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    gradients = torch.autograd.grad((expected * direction).sum(), inputs)
    for solver in ("general", "auto"):
        g = FactorGraph()
        z = g.variable(inputs[0], mask=mask)
        build(g, z, *inputs[1:])
        solution = g.lp_sparsemap(solver=solver, temperature=temperature)
        assert solution.converged.all()
        torch.testing.assert_close(solution[z], expected, rtol=0, atol=1e-8)
        found = torch.autograd.grad((solution[z] * direction).sum(), inputs)
        for ours, theirs in zip(found, gradients, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-7)
        if solver == "general":
            assert (solution.iterations > 0).any()  # it did not take the op's way


def normal(*shape, scale=1.0, seed=0):
    return scale * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("scale", [0.3, 3.0, 1e4])
@pytest.mark.parametrize("budget", [3, torch.tensor([0, 2, 30])])
def test_budget(scale, budget):
    scores = normal(3, 20, scale=scale)
    compare(scores, lambda g, z: g.add(Budget(z, budget)), lambda s: ops.budget(s, budget))


def chain(g, z, transition, budget):
    g.add(Pair(z[:, :-1], z[:, 1:], transition))
    g.add(Budget(z, budget))


@pytest.mark.parametrize("scale", [0.3, 3.0, 300.0])
def test_pair_budget(scale):
    scores, transition = normal(3, 24, scale=scale), normal(3, 23, scale=scale, seed=5).abs()
    compare(
        scores,
        lambda g, z, r: chain(g, z, r, 5),
        lambda s, r: ops.pair_budget(s, 5, transition=r),
        transition,
    )


def test_pairs_of_score_zero_have_the_gradient_of_the_op():
    compare(
        normal(3, 12),
        lambda g, z, r: chain(g, z, r, 4),
        lambda s, r: ops.pair_budget(s, 4, transition=r),
        torch.zeros(3, 11, dtype=torch.float64),
    )


def test_pair_budget_with_padding_and_temperature():
    mask = torch.arange(14) < torch.tensor([[14], [9], [1]])
    compare(
        normal(3, 14),
        lambda g, z, r: chain(g, z, r, torch.tensor([4, 3, 1])),
        lambda s, r: ops.pair_budget(s, torch.tensor([4, 3, 1]), transition=r, mask=mask, temperature=0.3),
        normal(13, seed=4).abs(),
        mask=mask,
        temperature=0.3,
    )


@pytest.mark.parametrize(("n", "scale"), [(12, 1.0), (30, 3.0), (30, 100.0)])
def test_sequence_budget(n, scale):
    scores, transition = normal(3, n, scale=scale), normal(n - 1, scale=scale, seed=7)
    compare(
        scores,
        lambda g, z, r: g.add(SequenceBudget(z, n // 4, r)),
        lambda s, r: ops.sequence_budget(s, n // 4, transition=r),
        transition,
    )


def test_an_oracle_is_queried_few_times():
    queries = []

    class Counted(SequenceBudget):
        def map(self, scores):
            queries.append(len(scores))
            return super().map(scores)

    compare(
        normal(4, 48),
        lambda g, z: g.add(Counted(z, 9, 0.5)),
        lambda s: ops.sequence_budget(s, 9, transition=0.5),
    )
    # In both graphs: a round per configuration of the mixture, about n/3, and two queries for the gradient.
    assert 10 < len(queries) < 2 * 35


@pytest.mark.parametrize("temperature", [0.01, 20.0])
def test_sequence_budget_at_other_temperatures(temperature):
    compare(
        normal(2, 24),
        lambda g, z, r: g.add(SequenceBudget(z, 6, r)),
        lambda s, r: ops.sequence_budget(s, 6, transition=r, temperature=temperature),
        normal(23, seed=7),
        temperature=temperature,
    )


def test_sequence_budget_skips_padding():
    mask = torch.tensor([[1, 1, 1, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 0, 1, 0]]).bool()
    compare(
        normal(2, 8),
        lambda g, z, r: g.add(SequenceBudget(z, 3, r)),
        lambda s, r: ops.sequence_budget(s, 3, transition=r, mask=mask, temperature=0.5),
        normal(2, 7, seed=3),
        mask=mask,
        temperature=0.5,
    )


MATCHINGS = {
    "XorAtMostOne": ((Xor, AtMostOne, None), {"rows": "exactly_one"}),
    "AtMostOne2": ((AtMostOne, AtMostOne, None), {}),
    "Budget": ((AtMostOne, AtMostOne, 4), {"budget": 4}),
    "Xor2": ((Xor, Xor, None), {"rows": "exactly_one", "columns": "exactly_one"}),
}


def align(g, z, rows, columns, budget):
    g.add(rows(z, dim=-1))
    g.add(columns(z, dim=-2))
    if budget is not None:
        g.add(Budget(z, budget))


@pytest.mark.parametrize("scale", [0.1, 3.0, 60.0, 1e5])
@pytest.mark.parametrize("kind", MATCHINGS)
def test_matching(kind, scale):
    factors, options = MATCHINGS[kind]
    scores = normal(3, 6, 6 if kind == "Xor2" else 8, scale=scale)
    compare(scores, lambda g, z: align(g, z, *factors), lambda s: ops.matching(s, **options))


@pytest.mark.parametrize("kind", ["XorAtMostOne", "AtMostOne2", "Budget"])
def test_matching_with_padding(kind):
    factors, options = MATCHINGS[kind]
    row_mask = torch.arange(5) < torch.tensor([[5], [3], [0]])
    column_mask = torch.arange(7) < torch.tensor([[7], [4], [5]])
    compare(
        normal(3, 5, 7),
        lambda g, z: align(g, z, *factors),
        lambda s: ops.matching(s, row_mask=row_mask, column_mask=column_mask, temperature=0.2, **options),
        mask=row_mask[:, :, None] & column_mask[:, None, :],
        temperature=0.2,
    )


@pytest.mark.parametrize("kind", ["AtMostOne2", "Budget"])
def test_map_of_matchings(kind):
    factors, options = MATCHINGS[kind]
    scores = normal(4, 6, 8, scale=3.0)
    g = FactorGraph()
    z = g.variable(scores)
    align(g, z, *factors)
    assert torch.equal(g.map()[z], ops.matching_map(scores, **options))
    assert g.lp_map().integral.all()


def test_graphs_that_no_op_solves_are_not_dispatched():
    """Negated literals, negative transitions, gaps in a mask, part of a variable: the ops would say something else."""
    scores = normal(1, 6)
    gap = torch.tensor([[True, True, False, True, True, True]])
    builds = [
        lambda g, z: g.add(Budget(~z, 2)),
        lambda g, z: g.add(Budget(z[:, :4], 2)),
        lambda g, z: (g.add(Budget(z, 2)), g.add(Budget(z[:, :3], 1))),
        lambda g, z: chain(g, z, -1.0, 2),
        lambda g, z: chain(g, z, 1.0, 2),
    ]
    for build in builds:
        g = FactorGraph()
        z = g.variable(scores, mask=gap)
        build(g, z)
        general, auto = g.lp_sparsemap(solver="general"), g.lp_sparsemap()
        assert torch.equal(general[z], auto[z])
        assert (auto.iterations > 0).all()


def test_float_transition_keeps_precision():
    """0.1 is another number in float32."""
    scores = torch.randn(2, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    g = FactorGraph()
    z = g.variable(scores)
    g.add(Pair(z[:, :-1], z[:, 1:], 0.1))
    g.add(Budget(z, 8))
    expected = ops.pair_budget(scores, 8, transition=0.1)
    torch.testing.assert_close(g.lp_sparsemap(solver="general")[z], expected, rtol=0, atol=1e-12)
