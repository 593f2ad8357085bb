"""The matching op as a citizen of PyTorch: shapes, dtypes, compilation, errors."""

from __future__ import annotations

import warnings

import pytest
import torch

from rationalizer import ops
from tests.ops.oracles_matching import randn, violation


def test_shapes_that_hold_nothing():
    assert ops.matching(torch.zeros(0, 3, 4)).shape == (0, 3, 4)
    assert ops.matching(torch.zeros(2, 0, 4), rows="exactly_one").shape == (2, 0, 4)
    assert ops.matching(torch.zeros(2, 3, 0)).shape == (2, 3, 0)
    masked = ops.matching(torch.ones(2, 3, 4), row_mask=torch.zeros(2, 3, dtype=torch.bool))
    assert torch.equal(masked, torch.zeros(2, 3, 4))
    empty = torch.zeros(0, 3, 4, requires_grad=True)
    ops.matching(empty).sum().backward()
    assert empty.grad.shape == (0, 3, 4)


def test_leading_dimensions():
    scores = randn(2, 3, 4, 5)
    z, info = ops.matching(scores, return_info=True)
    assert torch.equal(z.reshape(6, 4, 5), ops.matching(scores.reshape(6, 4, 5)))
    assert info.converged.shape == info.iterations.shape == info.gap.shape == (2, 3)


# --- in a model


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_in_and_out(dtype):
    scores = randn(2, 4, 6).to(dtype).requires_grad_()
    z = ops.matching(scores, budget=3)
    z.sum().backward()
    assert z.dtype == scores.grad.dtype == dtype
    assert torch.equal(z, ops.matching(scores.detach().double(), budget=3).to(dtype))


def test_autocast():
    left, right = randn(2, 4, 8).float(), randn(2, 6, 8).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = left @ right.mT
        z = ops.matching(scores)
    assert scores.dtype == z.dtype == torch.bfloat16
    assert violation(z) <= 2e-2


def test_non_contiguous_and_without_gradient():
    scores = randn(6, 4, 3).permute(2, 1, 0)
    assert torch.equal(ops.matching(scores), ops.matching(scores.contiguous()))
    assert not ops.matching(scores).requires_grad


def test_used_twice_in_one_graph():
    scores = randn(2, 4, 6).requires_grad_()
    (ops.matching(scores).sum() + ops.matching(scores).sum()).backward()
    twice = scores.grad.clone()
    scores.grad = None
    ops.matching(scores).sum().backward()
    assert torch.allclose(twice, 2 * scores.grad)


class Aligner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(8, 8)

    def forward(self, left, right, left_mask, right_mask):
        scores = self.project(left) @ right.mT
        z = ops.matching(scores, budget=3, row_mask=left_mask, column_mask=right_mask, temperature=0.5)
        return (z @ right).sum()


def test_compiles_without_graph_breaks():
    torch.manual_seed(0)
    model = Aligner()
    left_mask, right_mask = torch.ones(2, 4, dtype=torch.bool), torch.ones(2, 6, dtype=torch.bool)
    left_mask[1, 2:] = False
    inputs = (torch.randn(2, 4, 8), torch.randn(2, 6, 8), left_mask, right_mask)
    model(*inputs).backward()
    expected = model.project.weight.grad.clone()
    model.zero_grad()
    torch.compile(model, fullgraph=True, backend="aot_eager")(*inputs).backward()
    assert torch.allclose(model.project.weight.grad, expected, atol=1e-6)


def test_infeasible_requests_raise_under_compile():
    compiled = torch.compile(lambda s: ops.matching(s, rows="exactly_one"), fullgraph=True, backend="aot_eager")
    with pytest.raises(ValueError, match="needs at least as many columns as rows"):
        compiled(torch.zeros(2, 5, 3))


# --- what it says


def test_a_solve_that_stops_short_says_so():
    scores = randn(3, 12, 16, scale=3.0)
    _, info = ops.matching(scores, max_iterations=1, return_info=True)
    assert not info.converged.any()
    assert info.gap.min() > 1e-6
    with pytest.warns(ops.ConvergenceWarning, match=r"matching: 3 of 3 .*raise max_iterations \(now 1\)"):
        ops.matching(scores, max_iterations=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ops.matching(scores)


def test_infeasible_requests_name_the_row_and_its_sizes():
    scores = torch.zeros(5, 14, 20)
    columns = torch.ones(5, 20, dtype=torch.bool)
    columns[3, 8:] = False
    need = "rows='exactly_one' needs at least as many columns as rows"
    message = need + "; row 3 of the batch has 14 rows, 8 columns"
    with pytest.raises(ValueError, match=message):
        ops.matching(scores, rows="exactly_one", column_mask=columns)
    with pytest.raises(ValueError, match=r"columns='exactly_one' .* row 0 .* 14 rows, 20"):
        ops.matching(scores, columns="exactly_one")
    with pytest.raises(ValueError, match=r"as many columns as rows; row 0 .* 14 rows, 20 columns"):
        ops.matching(scores, rows="exactly_one", columns="exactly_one")
    with pytest.raises(ValueError, match=r"number of rows; row 0 .* 14 rows, .* budget 13"):
        ops.matching(scores, rows="exactly_one", budget=13)
    budget = torch.tensor([20, 14, 13, 20, 20])
    with pytest.raises(ValueError, match=r"number of columns; row 2 .* 14 columns, budget 13"):
        ops.matching(scores.mT, columns="exactly_one", budget=budget)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"scores": [[1.0]]}, TypeError, "scores must be a torch.Tensor, got list"),
        ({"scores": torch.ones(2, 3, 4, dtype=torch.long)}, TypeError, "scores must be floating point"),
        ({"scores": torch.ones(3)}, ValueError, r"scores must have shape \(batch, m, n\), got \(3,\)"),
        ({"scores": torch.full((2, 3, 4), torch.nan)}, ValueError, r"scores\[0, 0, 0\] is nan"),
        ({"scores": torch.full((2, 3, 4), -torch.inf)}, ValueError, r"scores\[0, 0, 0\] is -inf.*row_mask"),
        ({"rows": "one"}, ValueError, "rows must be 'exactly_one' or 'at_most_one', got 'one'"),
        ({"columns": None}, ValueError, "columns must be 'exactly_one' or 'at_most_one', got None"),
        ({"budget": -1}, ValueError, "budget must be at least 0, got -1"),
        (
            {"budget": torch.tensor([1, -2])},
            ValueError,
            "budget must be at least 0, got -2 in row 1 of the batch",
        ),
        ({"budget": 1.5}, TypeError, "budget .* got 1.5"),
        (
            {"budget": torch.tensor([1, 2, 3])},
            ValueError,
            r"budget must be a number or have shape \(2,\), got \(3,\)",
        ),
        ({"temperature": 0.0}, ValueError, "temperature must be a positive number, got 0.0"),
        ({"row_mask": torch.ones(2, 4, dtype=torch.bool)}, ValueError, r"row_mask must have shape \(2, 3\)"),
        ({"column_mask": torch.ones(2, 4)}, TypeError, "column_mask must be a bool tensor"),
        ({"max_iterations": 0}, ValueError, "max_iterations must be an int of at least 1, got 0"),
    ],
)
def test_errors_name_the_value(change, error, message):
    arguments = {"scores": torch.ones(2, 3, 4)} | change
    with pytest.raises(error, match=message):
        ops.matching(arguments.pop("scores"), **arguments)
