"""Rows that the CPU solves for a CUDA stream, without a GPU: calls are carried out at once."""

import importlib.util

import pytest
import torch

from rationalizer import ops

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


def test_memory_is_used_again(generator):
    """Calls of different sizes get the same memory, and each solves its open rows only."""
    from rationalizer.ops.kernels.open_rows_cuda import borrow, new_support, none_was_open
    from rationalizer.ops.kernels.sequence_budget_open_rows_cpu import solve_sequence_budget

    seen = set()
    for step in reversed(range(6)):  # the largest first
        rows, n = 5 + step, 20 + step
        scores = 0.5 + 0.05 * torch.randn(rows, n, dtype=torch.float64, generator=generator)
        mask = torch.rand(rows, n, generator=generator) < 0.8
        support = new_support(rows, n)
        with borrow(((3 * n + 1) * rows, 5 * rows, (n + 1) * rows), torch.device("cpu")) as open_rows:
            seen.add(open_rows)
            open_rows.floats[: rows * n] = scores.flatten()
            open_rows.floats[rows * n : 2 * rows * n] = -1
            open_rows.floats[2 * rows * n : 2 * rows * n + rows * (n - 1)] = 0.1
            is_open = torch.arange(rows) % 2 == step % 2
            open_rows.integers[:rows] = torch.where(is_open, -1, 0)
            open_rows.integers[2 * rows : 4 * rows] = torch.tensor([6] * rows + [0] * rows)
            open_rows.booleans[: rows * n] = mask.flatten()
            assert not none_was_open(support)
            open_rows.solve(solve_sequence_budget, rows, support, n, 10_000, 0.0, report=True)
            assert int(support[-1, 0, 0]) == is_open.sum()
            solved = open_rows.integers[:rows] > 0
            assert solved.any()
            assert not solved[~is_open].any()
            z = open_rows.floats[rows * n : 2 * rows * n].reshape(rows, n)
            expected = ops.sequence_budget(scores, 6, transition=0.1, mask=mask)
            torch.testing.assert_close(z[solved], expected[solved], rtol=0, atol=1e-12)
            assert (z[~is_open] == -1).all()
    assert len(seen) == 1


def spans_on_cpu(n: int, budget: int, spans: int, longest: int) -> list[torch.Tensor]:
    from rationalizer.ops.kernels.spans_cuda import spans as launch

    scores, mask = torch.randn(2, n, dtype=torch.float64), torch.ones(2, n, dtype=torch.bool)
    numbers, zeros = torch.arange(n).expand(2, n), torch.zeros(2, n, dtype=torch.int64)
    limits, most = torch.full((2,), budget), torch.full((2,), spans)
    edges = torch.zeros(2, n - 1, dtype=torch.float64)
    return launch(scores, edges, mask, limits, most, numbers, zeros, zeros, 1, longest, n, 100, 0.0)


def test_rows_that_fail_are_nan():
    """An exception of a solver must not leave the results of the call before in the memory."""
    z, *_ = spans_on_cpu(60, 9, 2, 60)
    assert z.isfinite().all()
    z, size, _, converged, _, gap = spans_on_cpu(600, 200, 90, 50)  # its dynamic program is too large
    assert z.isnan().all()
    assert not converged.any()
    assert (size == 0).all()
    assert gap.isnan().all()


def test_memory_of_an_evaluation_serves_a_training():
    with torch.inference_mode():
        spans_on_cpu(70, 9, 2, 70)
    z, *_ = spans_on_cpu(60, 9, 2, 60)
    assert z.isfinite().all()


def test_calls_with_different_needs_share_memory():
    """Layers that take turns must not allocate page-locked memory at every step."""
    from rationalizer.ops.kernels.open_rows_cuda import borrow

    needs, used = ((5000, 10, 10), (0, 90_000, 0)), []
    for sizes in needs * 3:
        with borrow(sizes, torch.device("cpu")) as open_rows:
            used.append(open_rows)
    assert used[1] is used[2] is used[3] is used[5]
