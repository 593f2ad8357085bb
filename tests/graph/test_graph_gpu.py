"""The engine on CUDA tensors gives what it gives on CPU tensors, on their own device."""

import pytest
import torch
from batched_cases import CASES, compare, matching, normal, results

from rationalizer.graph import Budget, FactorGraph, SequenceBudget

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.mark.parametrize("name", CASES)
def test_same_as_cpu(name):
    scores, build, mask = CASES[name]
    ours = results(scores.cuda(), build, None if mask is None else mask.cuda())
    compare(ours, results(scores, build, mask))


@pytest.mark.parametrize("solver", ["auto", "general"])
def test_routes_and_float32(solver):
    scores = normal(4, 12, 16).float()
    answers = []
    for device in ("cpu", "cuda"):
        g = FactorGraph()
        z = g.variable(scores.to(device))
        matching(g, z)
        answers.append(g.lp_sparsemap(solver=solver)[z])
        assert answers[-1].device.type == device
    torch.testing.assert_close(answers[1].cpu(), answers[0], rtol=0, atol=1e-6)


def test_structured_factors_through_the_host():
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
