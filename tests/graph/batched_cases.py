"""Graphs without structured factors, for comparing the batched engine with the one on the CPU."""

from __future__ import annotations

import torch
from random_graphs import random_graph

from rationalizer.graph import AtMostOne, Budget, FactorGraph, InfeasibleError, Pair, Xor


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
