"""The CUDA kernels of the matching layers on CPU tensors, in Triton's interpreter, against the CPU kernels."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
import torch

from rationalizer import ops
from rationalizer.ops import _matrix_inputs as _matrices
from rationalizer.ops.matching import _matching, _matching_backward
from rationalizer.ops.matching_map import _matching_map
from tests.ops.oracles_matching import KINDS, randn, shape_for

pytestmark = pytest.mark.long


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
def test_kernels_in_the_interpreter():
    """In a process of its own: Triton decides at import whether it interprets."""
    calls = "; ".join(
        f"here.check_{name}()" for name in ("answers", "on_cpu", "without_an_answer", "layer", "transport")
    )
    code = f"import tests.ops.interpreted; import {__name__} as here; {calls}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=280)
    assert run.returncode == 0, run.stderr[-3000:]


def padded(kind: str, small: int, large: int) -> _matrices.Matrices:
    """Three pairs of a kind with masked rows and columns: ties, small and large scores."""
    m, n = shape_for(kind, small, large)
    generator = torch.Generator().manual_seed(m)
    scores = randn(3, m + 2, n + 1, seed=m)
    scores[0] = scores[0].round()
    scores[2] *= 3e3
    masks = torch.zeros(3, m + 2, dtype=torch.bool), torch.zeros(3, n + 1, dtype=torch.bool)
    for mask, size in zip(masks, (m, n), strict=True):
        for row in mask:
            row[torch.randperm(len(row), generator=generator)[:size]] = True
    scores[~(masks[0][:, :, None] & masks[1][:, None, :])] = torch.nan
    return _matrices.as_matrices(scores, *masks, 1.0)


def check_answers() -> None:
    from rationalizer.ops.kernels.matching_backward_cuda import matching_backward
    from rationalizer.ops.kernels.matching_cuda import matching
    from rationalizer.ops.kernels.matching_map_cuda import matching_map

    for kind, options in KINDS.items():
        for sizes in ((1, 1), (4, 5)):
            pairs = padded(kind, *sizes)
            exact = (options.get("rows") == "exactly_one", options.get("columns") == "exactly_one")
            sides = (
                pairs.row_mask,
                pairs.column_mask,
                _matrices.as_matrix_budget(options.get("budget"), pairs.shape[:-2], pairs.scores.device),
            )
            given = (pairs.scores, *sides, None, *exact, False)
            z, iterations, gap = matching(*given, 1000)
            expected, steps, _ = _matching(*given, 1000)
            assert gap.max() <= 1e-12
            assert (iterations - steps).abs().max() <= 2, (kind, sizes)
            torch.testing.assert_close(z, expected, rtol=0, atol=1e-12)
            g = randn(*z.shape, seed=9)
            h = matching_backward(g, expected, *sides, *exact)
            torch.testing.assert_close(h, _matching_backward(g, expected, *sides, *exact), rtol=0, atol=1e-12)
            assert torch.equal(matching_map(*given), _matching_map(*given))
            short = torch.minimum(pairs.row_mask.sum(-1), pairs.column_mask.sum(-1))
            exactly = (pairs.scores, *sides[:2], torch.minimum(sides[2], short), None, False, False, True)
            assert torch.equal(matching_map(*exactly), _matching_map(*exactly))


def check_on_cpu() -> None:
    """What the kernels leave to the CPU: fixed pairs and lower bounds. Without a solution it is NaN."""
    from rationalizer.ops.kernels.matching_backward_cuda import matching_backward
    from rationalizer.ops.kernels.matching_cuda import matching

    pairs = padded("budget", 4, 5)
    g, sides = randn(*pairs.scores.shape, seed=9), (pairs.row_mask, pairs.column_mask)
    allowed = torch.rand(pairs.scores.shape, generator=torch.Generator().manual_seed(1)) < 0.8
    for least, exactly in ((None, False), (torch.tensor([2, 1, 3]), False), (None, True)):
        given = (pairs.scores, *sides, torch.tensor([2, 3, 3]), allowed, False, False, exactly, 1000, least)
        z, *_ = matching(*given)
        expected = _matching(*given)[0]
        torch.testing.assert_close(z, expected, rtol=0, atol=1e-12)
        given = (g, expected, *given[1:4], False, False, torch.zeros(3).long() if least is None else least)
        torch.testing.assert_close(matching_backward(*given), _matching_backward(*given), rtol=0, atol=1e-12)
    scores = pairs.scores.clone()
    scores[0, pairs.row_mask[0].nonzero()[0], pairs.column_mask[0].nonzero()[0]] = torch.inf
    budget, least = torch.tensor([2, 1, 2]), torch.tensor([1, 2, 1])  # in the second one it exceeds the budget
    z, _, gap = matching(scores, *sides, budget, None, False, False, False, 1000, least)
    odd = torch.tensor([True, True, False])
    real = sides[0][:, :, None] & sides[1][:, None, :]
    assert torch.equal(z.isnan(), odd[:, None, None] & real)
    assert torch.equal(gap.isnan(), odd)


def check_layer() -> None:
    """What eager mode runs: temperature and dtype inside the kernels."""
    from rationalizer.ops.kernels.matching_backward_cuda import MatchingLayer

    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-6), (torch.bfloat16, 1e-2)):
        scores = randn(2, 1, 5, 4).to(dtype)
        g = randn(2, 1, 5, 4, seed=1).to(dtype)
        sides = _matrices.check_matrices(scores, None, None, 0.37)
        ours, theirs = scores.clone().requires_grad_(), scores.clone().requires_grad_()
        z, _, gap = MatchingLayer.apply(ours, *sides, torch.tensor([3, 9]), False, False, 1000, 0.37)
        expected = ops.matching(theirs, budget=torch.tensor([[3], [9]]), temperature=0.37)
        assert gap.max() <= 1e-12
        torch.testing.assert_close(z, expected, rtol=0, atol=tolerance)
        z.backward(g)
        expected.backward(g)
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=4 * tolerance)


def check_without_an_answer() -> None:
    """What is not finite, negative or infeasible is NaN on its real positions; the other pairs have their answers."""
    from rationalizer.ops.kernels.matching_backward_cuda import matching_backward
    from rationalizer.ops.kernels.matching_cuda import matching
    from rationalizer.ops.kernels.matching_map_cuda import matching_map

    scores = randn(6, 3, 4)
    scores[1, 1, 2] = torch.nan
    scores[2, 0, 0] = -torch.inf
    row_mask, column_mask = torch.ones(6, 3, dtype=torch.bool), torch.ones(6, 4, dtype=torch.bool)
    row_mask[0, 0] = False
    column_mask[3, :2] = False  # three rows, two columns
    budget = torch.tensor([9, 9, 9, 9, -1, 2])  # below the number of rows
    odd = torch.tensor([False, True, True, True, True, True])
    real = row_mask[:, :, None] & column_mask[:, None, :]
    sides = (row_mask, column_mask, budget, True, False)
    given = (scores, row_mask, column_mask, budget, None, True, False, False)
    z, _, gap = matching(*given, 1000)
    for result in (z, matching_map(*given), matching_backward(torch.ones_like(z), z, *sides)):
        assert torch.equal(result.isnan(), odd[:, None, None] & real)
        assert torch.equal(result[~real], torch.zeros_like(result[~real]))
    assert torch.equal(gap.isnan(), odd)
    nothing = matching(
        scores[:1], *(side[:1] for side in sides[:2]), torch.zeros(1).long(), None, False, False, False, 1000
    )[0]
    assert torch.equal(nothing, torch.zeros_like(nothing))


def check_transport() -> None:
    from rationalizer.ops.kernels import sinkhorn_cuda
    from rationalizer.ops.sinkhorn import _iterate, _sinkhorn_backward, _with_dummies

    row_mask, column_mask = torch.ones(2, 5, dtype=torch.bool), torch.ones(2, 7, dtype=torch.bool)
    row_mask[1, 3] = False
    for size in (None, torch.tensor([2, 4])):
        problem = _with_dummies(4 * randn(2, 5, 7), row_mask, column_mask, size)
        plan, iterations, gap = sinkhorn_cuda.iterate(*problem, 500, 1e-9)
        expected, steps, _ = _iterate(*problem, 500, 1e-9)
        assert gap.max() <= 1e-9
        assert (iterations - steps).abs().max() <= 1
        torch.testing.assert_close(plan, expected, rtol=0, atol=1e-8)
        g = randn(*plan.shape, seed=2)
        h = sinkhorn_cuda.backward(expected, g)
        torch.testing.assert_close(h, _sinkhorn_backward(expected, g), rtol=0, atol=1e-7)
