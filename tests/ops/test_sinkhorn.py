"""The transport baselines against their optimality conditions and a generic convex solver."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from rationalizer import ops
from tests.ops.oracles_matching import randn

kinds = pytest.mark.parametrize(
    "options", [{"kind": "relaxed"}, {"kind": "exact_k", "k": 3}], ids=["relaxed", "exact_k"]
)


def dual_plan(scores: np.ndarray, epsilon: float, k: int | None) -> np.ndarray:
    """The plan from BFGS on the transport dual: no alternation, no log-domain tricks."""
    m, n = scores.shape
    kernel = np.zeros((m + 1, n + 1))
    kernel[:m, :n] = scores / epsilon
    if k is not None:
        kernel[m, n] = -np.inf
    aligned = 0 if k is None else k
    rows, columns = np.append(np.ones(m), n - aligned), np.append(np.ones(n), m - aligned)

    def objective(x):
        plan = np.exp(kernel + x[: m + 1, None] + x[m + 1 :])
        gradient = np.concatenate([plan.sum(1) - rows, plan.sum(0) - columns])
        return plan.sum() - x[: m + 1] @ rows - x[m + 1 :] @ columns, gradient

    x = minimize(objective, np.zeros(m + n + 2), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 5000}).x
    return np.exp(kernel + x[: m + 1, None] + x[m + 1 :])[:m, :n]


@kinds
@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (4, 4)])
def test_agrees_with_a_generic_solver(options, shape):
    scores = randn(*shape)
    plan = ops.sinkhorn(scores, **options, epsilon=0.5, tolerance=1e-10)
    assert np.abs(plan.numpy() - dual_plan(scores.numpy(), 0.5, options.get("k"))).max() <= 1e-7


@kinds
def test_sums(options):
    plan, info = ops.sinkhorn(3 * randn(5, 6, 9), **options, epsilon=0.3, return_info=True)
    assert info.converged.all()
    assert plan.min() > 0
    assert plan.sum(-1).max() <= 1 + 1e-6
    assert plan.sum(-2).max() <= 1 + 1e-6
    if "k" in options:
        assert (plan.sum((-1, -2)) - 3).abs().max() <= 1e-5


def test_exact_k_from_zero_to_all():
    scores = randn(6, 5, 5)
    plan = ops.sinkhorn(scores, kind="exact_k", k=torch.arange(6), epsilon=0.5)
    assert torch.equal(plan[0], torch.zeros(5, 5, dtype=torch.float64))
    assert (plan.sum((-1, -2)) - torch.arange(6)).abs().max() <= 1e-5
    assert (plan[5].sum(-1) - 1).abs().max() <= 1e-6


@kinds
def test_small_epsilon_approaches_the_best_matching(options):
    scores = torch.tensor([[3.0, 0.0, -1.0, -1.0], [1.0, 2.5, -1.0, 0.0], [0.0, 0.0, 2.0, -2.0]])
    plan = ops.sinkhorn(scores, **options, epsilon=0.05)
    assert torch.allclose(plan, ops.matching_map(scores), atol=1e-3)


@kinds
def test_gradcheck(options):
    scores = randn(2, 4, 5).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s: ops.sinkhorn(s, **options, epsilon=0.7, tolerance=1e-13, max_iterations=10_000), (scores,)
    )


def test_gradcheck_where_dummies_have_no_mass():
    scores = randn(2, 3, 3).requires_grad_()
    call = lambda s: ops.sinkhorn(s, kind="exact_k", k=3, epsilon=0.7, tolerance=1e-13)  # noqa: E731
    assert torch.autograd.gradcheck(call, (scores,))
    zero = ops.sinkhorn(scores, kind="exact_k", k=0)
    zero.sum().backward()
    assert torch.equal(scores.grad, torch.zeros_like(scores))


@kinds
def test_extreme_scores_neither_overflow_nor_vanish(options):
    scores = 1e4 * randn(2, 4, 6)
    plan, info = ops.sinkhorn(scores, **options, max_iterations=50, return_info=True)
    assert plan.isfinite().all()
    assert info.iterations.max() <= 50


def test_convergence_warning():
    scores = 10 * randn(2, 4, 6)
    with pytest.warns(ops.ConvergenceWarning, match="epsilon"):
        ops.sinkhorn(scores, epsilon=0.01, max_iterations=2)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"kind": "exact"}, ValueError, "got 'exact'"),
        ({"kind": "exact_k"}, ValueError, "needs k"),
        ({"k": 2}, ValueError, "k=2"),
        ({"kind": "exact_k", "k": 4}, ValueError, "got 4; row 0"),
        ({"kind": "exact_k", "k": torch.tensor([1, 9])}, ValueError, "got 9; row 1"),
        ({"kind": "exact_k", "k": -1}, ValueError, "got -1"),
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"tolerance": -1.0}, ValueError, "tolerance"),
    ],
)
def test_errors(change, error, message):
    arguments = {"scores": torch.ones(2, 3, 4)} | change
    with pytest.raises(error, match=message):
        ops.sinkhorn(arguments.pop("scores"), **arguments)
