"""The implementations for other devices (mps, xpu, CUDA without Triton), run on CPU tensors."""

import sys

import pytest
import torch

from rationalizer import ops
from rationalizer.ops import _declare, _inputs
from tests.ops.layers import random_mask


def implementations(module: str, name: str):
    """The custom op, and its implementation for devices without a registered kernel."""
    op = getattr(sys.modules[f"rationalizer.ops.{module}"], name)
    return op, op._init_fn


@pytest.mark.parametrize("n", [0, 1, 2, 9, 200])
@pytest.mark.parametrize("scale", [0.1, 2.0, 50.0, 1e5])
def test_budget_in_torch(n, scale, generator):
    op, function = implementations("budget", "_budget")
    scores = scale * torch.randn(40, n, dtype=torch.float64, generator=generator)
    scores[20:] = (2 * scores[20:]).round() / 2  # ties
    mask = random_mask(40, n, generator)
    limits = torch.randint(0, n + 2, (40,), generator=generator)
    lower = torch.minimum(torch.randint(0, n + 2, (40,), generator=generator), limits)
    lower[:4] = limits[:4]
    for inputs in ((scores, mask, limits), (scores, mask, limits, lower), (scores - 2 * scale, mask, limits, lower)):
        z, tau = function(*inputs)
        expected, threshold = op(*inputs)
        torch.testing.assert_close(z, expected, rtol=0, atol=1e-9)
        assert torch.equal(tau.sign(), threshold.sign())


@pytest.mark.parametrize("size", [1e8, 1e17, 1e200])
def test_budget_in_torch_splits_ties_at_every_size(size):
    _, function = implementations("budget", "_budget")
    scores = torch.tensor([[1.0, 1.0, 2.0, 1.0, 1.0, 0.5, 1.0]], dtype=torch.float64) * size
    z, _ = function(scores, torch.ones(1, 7, dtype=torch.bool), torch.tensor([3]))
    torch.testing.assert_close(z[0], torch.tensor([0.4, 0.4, 1, 0.4, 0.4, 0, 0.4]).double(), rtol=0, atol=1e-7)


def test_budget_in_torch_rejects_bad_input():
    _, function = implementations("budget", "_budget")
    with pytest.raises(ValueError, match=r"scores\[0, 1\] is nan"):
        function(torch.tensor([[0.0, torch.nan]]), torch.ones(1, 2, dtype=torch.bool), torch.tensor([1]))
    with pytest.raises(ValueError, match="got -2 in row 0"):
        function(torch.zeros(1, 2), torch.ones(1, 2, dtype=torch.bool), torch.tensor([-2]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_computation_on_host(dtype, generator):
    """The same numbers, in the dtype of the input (float32 on devices without float64)."""
    scores, edges, g = (torch.rand(6, n, generator=generator).to(dtype) for n in (8, 7, 8))
    mask, limits = random_mask(6, 8, generator), torch.tensor([0, 1, 2, 3, 4, 9])
    numbers = torch.arange(8).expand(6, 8) // 2
    rules = (torch.full((6,), 2), numbers, torch.zeros(6, 8, dtype=torch.int8), numbers, 1, 3, 2)
    calls = [
        ("fusedmax", "_total_variation", (scores, mask, 0.3)),
        ("pair_budget", "_pair_budget", (scores, edges, mask, limits)),
        ("sequence_budget", "_sequence_budget", (scores, edges, mask, limits, 100, 0.0)),
        ("sequence_budget_map", "_sequence_budget_map", (scores, edges, mask, limits)),
        ("sequence_budget_maps", "_sequence_budget_maps", (scores, edges, mask, 5)),
        ("spans", "_spans", (scores, edges, mask, limits, *rules, 100, 0.0)),
        ("spans_map", "_spans_map", (scores, edges, mask, limits, *rules)),
    ]
    for module, name, inputs in calls:
        op, function = implementations(module, name)
        ours = function(*inputs)
        exact = op(*(t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in inputs))
        z, expected = (ours, exact) if isinstance(ours, torch.Tensor) else (ours[0], exact[0])
        assert z.dtype == dtype
        torch.testing.assert_close(z, expected.to(dtype), rtol=0, atol=0)
        if isinstance(ours, tuple):
            assert [t.dtype for t in ours] == [dtype if t.is_floating_point() else t.dtype for t in exact]
    z, tight, kept, support, *_ = implementations("sequence_budget", "_sequence_budget")[1](
        scores, edges, mask, limits, 100, 0.0
    )
    op, function = implementations("sequence_budget", "sequence_budget_backward")
    gradients = function(g, z, edges, mask, tight, kept, support)
    expected = op(g.double(), z.double(), edges.double(), mask, tight, kept, support)
    for ours, exact in zip(gradients, expected, strict=True):
        torch.testing.assert_close(ours, exact.to(dtype), rtol=0, atol=0)


def test_more_fixed_words_than_budget():
    """Nothing is raised, as it would make the host wait; a negative budget stays negative."""
    _, function = implementations("_span_constraints", "_remaining_budget")
    limits, musts = torch.tensor([3, 1, -1]), torch.tensor([1, 2, 0])
    room = function(limits, musts, torch.zeros(3, 4, dtype=torch.int8), torch.ones(3, 4, dtype=torch.bool))
    assert room.tolist() == [2, 0, -1]


def test_cuda_without_triton_uses_the_general_implementation(monkeypatch):
    def function() -> None: ...

    monkeypatch.setattr(_declare, "has_triton", lambda: False)
    assert _declare.find_launcher.__wrapped__("budget_cuda", "budget", function) is function


def test_rows_without_a_solution(generator):
    """The convention on CUDA, tested on CPU tensors."""
    scores = torch.randn(4, 5, generator=generator)
    scores[1, 2], scores[2, 4] = torch.inf, torch.nan
    mask = torch.ones(4, 5, dtype=torch.bool)
    mask[2, 4] = False  # masked positions do not matter
    z = _inputs.nan_if_unsolvable(ops.sparsemax(torch.zeros(4, 5)), scores, mask, torch.tensor([1, 1, 1, -1]))
    assert torch.equal(z.isnan(), torch.tensor([[False], [True], [False], [True]]) & mask)
