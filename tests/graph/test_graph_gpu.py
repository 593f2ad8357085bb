"""The engine on CUDA tensors gives what it gives on CPU tensors, on their own device; it goes through the host."""

import pytest
import torch
from random_graphs import random_graph

from rationalizer.graph import AtMostOne, Budget, FactorGraph, InfeasibleError, Pair, SequenceBudget, Xor

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def matching(g, z):
    g.add(AtMostOne(z, dim=-1))
    g.add(AtMostOne(z, dim=-2))
    g.add(Budget(z, 4))


def exact_rows(g, z):
    g.add(Xor(z, dim=-1))
    g.add(AtMostOne(z, dim=-2))


def chain(g, z):
    g.add(Pair(z[:, :-1], z[:, 1:], normal(z.shape[0], z.shape[1] - 1, seed=1).to(z.scores)))
    g.add(Budget(z, torch.tensor([0, 3, 50][: z.shape[0]])))


def masked(g, z):
    g.add(AtMostOne(z, dim=-1))


MASK = torch.tensor([[True, True, False, True, True], [True, False, False, False, False], [False] * 5])
CASES = {
    "matching": (normal(5, 6, 9), matching, None),
    "matching, large scores": (3e3 * normal(3, 6, 9), matching, None),
    "exact rows": (normal(3, 5, 8, seed=3), exact_rows, None),
    "ties": (normal(3, 5, 8, seed=4).round(), exact_rows, None),
    "chain with scores of both signs": (normal(3, 20), chain, None),
    "masked": (normal(3, 5, 4), masked, MASK),
    "no factors": (normal(3, 7), lambda g, z: None, None),
}
for seed in (0, 1, 2, 3, 5, 8, 9):
    drawn, add, _ = random_graph(seed, 14, 6, structured=False, scale=2.0, batch=4)
    CASES[f"random {seed}"] = (drawn, add, None)


def results(scores, build, mask):
    """LP-SparseMAP, its gradient, LP-MAP's value, and how the solves ended; or the error that the graph raises."""
    leaf = scores.detach().clone().requires_grad_()
    try:
        g = FactorGraph()
        z = g.variable(leaf, mask=mask)
        build(g, z)
        solution = g.lp_sparsemap(solver="general")
        best = g.lp_map()
    except InfeasibleError as error:
        return str(error)
    weights = normal(*scores.shape, seed=7).to(scores)
    (gradient,) = torch.autograd.grad((solution[z] * weights).sum(), leaf)
    assert solution[z].device == scores.device
    value = (best[z] * scores).flatten(1).sum(1)
    return solution[z].detach(), gradient, value, solution.converged & best.converged


def compare(ours, theirs):
    if isinstance(theirs, str):
        assert ours == theirs
        return
    for mine, wanted, tolerance in zip(ours[:2], theirs[:2], (1e-8, 1e-7), strict=True):
        torch.testing.assert_close(mine.cpu(), wanted, rtol=0, atol=tolerance)
    torch.testing.assert_close(ours[2].cpu(), theirs[2], rtol=1e-9, atol=1e-9)
    assert ours[3].all()
    assert theirs[3].all()


@pytest.mark.parametrize("name", CASES)
def test_same_as_cpu(name):
    scores, build, mask = CASES[name]
    ours = results(scores.cuda(), build, None if mask is None else mask.cuda())
    compare(ours, results(scores, build, mask))


@pytest.mark.parametrize("solver", ["auto", "general"])
def test_op_dispatch_and_float32(solver):
    scores = normal(4, 12, 16).float()
    answers = []
    for device in ("cpu", "cuda"):
        g = FactorGraph()
        z = g.variable(scores.to(device))
        matching(g, z)
        answers.append(g.lp_sparsemap(solver=solver)[z])
        assert answers[-1].device.type == device
    torch.testing.assert_close(answers[1].cpu(), answers[0], rtol=0, atol=1e-6)


def test_structured_factors():
    scores = normal(3, 10)
    answers = []
    for device in ("cpu", "cuda"):
        leaf = scores.to(device).requires_grad_()
        g = FactorGraph()
        z = g.variable(leaf)
        g.add(SequenceBudget(z, 4, 0.5))
        g.add(Budget(z[:, :5], 1))
        solution = g.lp_sparsemap()
        (gradient,) = torch.autograd.grad(solution[z].square().sum(), leaf)
        answers.append((solution[z].detach().cpu(), gradient.cpu()))
    for ours, theirs in zip(*answers, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-7)
