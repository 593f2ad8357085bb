"""The batched engine, which CUDA tensors take, on CPU tensors against the engine that they take otherwise."""

import pytest
import torch
from batched_cases import CASES, compare, matching, normal, results

from rationalizer import graph as rg
from rationalizer import ops
from rationalizer.graph import batched


@pytest.fixture
def forced(monkeypatch):
    """Takes the batched path for every program that it can solve; counts."""
    calls = []

    def applies(program):
        calls.append(not program.structured)
        return calls[-1]

    return lambda: monkeypatch.setattr(batched, "applies", applies) or calls


@pytest.mark.parametrize("name", CASES)
def test_same_as_the_kernels(name, forced):
    expected = results(*CASES[name])
    calls = forced()
    compare(results(*CASES[name]), expected)
    assert any(calls)


def test_agrees_with_the_op(forced):
    forced()
    scores = normal(4, 12, 16).requires_grad_()
    g = rg.FactorGraph()
    z = g.variable(scores)
    matching(g, z)
    solution = g.lp_sparsemap(solver="general")
    expected = ops.matching(scores, budget=4)
    torch.testing.assert_close(solution[z], expected, rtol=0, atol=1e-10)
    for ours, theirs in zip(
        *(torch.autograd.grad(v.square().sum(), scores) for v in (solution[z], expected)), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)


def test_one_infeasible_instance_is_named(forced):
    forced()
    g = rg.FactorGraph()
    z = g.variable(normal(3, 4), mask=torch.tensor([[True] * 4, [True, False, False, False], [True] * 4]))
    g.add(rg.Or(z[:, 1:]))
    g.add(rg.Budget(z, torch.tensor([2, 2, 0])))
    with pytest.raises(rg.InfeasibleError, match="instance 2"):
        g.lp_sparsemap()


def test_polish_corrects_a_wrong_face():
    g = rg.FactorGraph()
    z = g.variable(normal(5, 6, 9))
    matching(g, z)
    program = g._program(1.0, quadratic=True)
    p = batched.Batch.of(program, program.active)
    todo, tolerance = torch.ones(5, dtype=torch.bool), torch.full((5,), 1e-9, dtype=torch.float64)
    x, y, status, residual, *_ = batched.solve(program, todo.numpy(), tolerance.numpy())
    assert residual.max() <= 1e-9
    wrong = status.clone()
    for row in wrong[:, : p.entries]:  # one coordinate freed, one fixed, in each instance
        row[(row == -1).nonzero()[3]] = 0
        row[(row == 0).nonzero()[1]] = -1
    start = torch.nn.functional.pad(x, (0, p.rows))
    again, _, _, residual = batched._polish(p, todo, tolerance, start, y, wrong)
    assert residual.max() <= 1e-9
    torch.testing.assert_close(again[:, : p.entries], x, rtol=0, atol=1e-9)
