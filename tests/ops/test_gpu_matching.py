"""The matching layers on CUDA: what CPU tensors give, on their own device, without the host looking on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rationalizer import ops
from tests.ops.conftest import needs_cuda
from tests.ops.oracles_matching import KINDS, randn, shape_for

pytestmark = needs_cuda

kinds = pytest.mark.parametrize("kind", KINDS)


def on_both(function, scores: torch.Tensor, weights: torch.Tensor, **masks: torch.Tensor):
    """(z, gradient) of Σ weights·function(scores, **masks) on CPU and on CUDA."""
    results = []
    for device in ("cpu", "cuda"):
        leaf = scores.to(device).requires_grad_()
        z = function(leaf, **{name: mask.to(device) for name, mask in masks.items()})
        assert z.device.type == device
        assert z.dtype == scores.dtype
        (gradient,) = torch.autograd.grad((z * weights.to(device)).sum(), leaf)
        results.append((z.detach().cpu(), gradient.cpu()))
    return results


def random_masks(pairs: int, m: int, n: int, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Each pair keeps at least one row and column; in some the rows are the short side, in others the columns."""
    masks = {"row_mask": torch.rand(pairs, m, generator=generator) < 0.7}
    masks["column_mask"] = torch.rand(pairs, n, generator=generator) < 0.7
    for mask in masks.values():
        mask[:, 0] = True
    return masks


# --- values and gradients


@kinds
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (7, 7), (10, 16), (16, 16), (24, 32), (48, 64)])
def test_same_as_cpu_at_every_size(kind, shape):
    m, n = shape_for(kind, *shape)
    scores = torch.cat([randn(3, m, n, seed=m, scale=scale) for scale in (0.3, 2.0, 60.0, 3e3)])
    cpu, cuda = on_both(lambda s: ops.matching(s, **KINDS[kind]), scores, randn(12, m, n, seed=1))
    for ours, theirs in zip(cpu, cuda, strict=True):
        torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-9)
    best = ops.matching_map(scores, **KINDS[kind])
    assert torch.equal(ops.matching_map(scores.cuda(), **KINDS[kind]).cpu(), best)


@pytest.mark.parametrize("options", [{}, {"budget": 3}, {"temperature": 0.01}])
def test_masks_and_ragged_batches(options):
    generator = torch.Generator().manual_seed(0)
    masks = random_masks(40, 12, 15, generator)
    scores = randn(40, 12, 15, seed=2, scale=2.0)
    real = masks["row_mask"][:, :, None] & masks["column_mask"][:, None, :]
    scores[~real] = torch.nan
    weights = randn(40, 12, 15, seed=3)
    cpu, cuda = on_both(lambda s, **m: ops.matching(s, **options, **m), scores, weights, **masks)
    for ours, theirs in zip(cpu, cuda, strict=True):
        torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-10)
        assert torch.equal(theirs[~real], torch.zeros_like(theirs[~real]))
    options.pop("temperature", None)
    device = {name: mask.cuda() for name, mask in masks.items()}
    best = ops.matching_map(scores, **options, **masks)
    assert torch.equal(ops.matching_map(scores.cuda(), **options, **device).cpu(), best)


@kinds
def test_ties(kind):
    m, n = shape_for(kind, 11, 14)
    rng = np.random.default_rng(3)
    distance = np.abs(np.arange(m)[:, None] - np.arange(n))
    batch = [
        np.ones((m, n)),
        np.zeros((m, n)),
        rng.integers(-1, 2, (m, n)),
        rng.standard_normal((m, 1)) + rng.standard_normal((1, n)),
        3.0 - distance,
        distance == 0,
    ]
    scores = torch.tensor(np.stack(batch).astype(float))
    cpu, cuda = on_both(lambda s: ops.matching(3.0 * s, **KINDS[kind]), scores, randn(6, m, n, seed=4))
    for ours, theirs in zip(cpu, cuda, strict=True):
        torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-9)
    best = ops.matching_map(scores, **KINDS[kind])
    assert torch.equal(ops.matching_map(scores.cuda(), **KINDS[kind]).cpu(), best)


@pytest.mark.parametrize("shape", [(100, 128), (200, 70), (150, 140)])
def test_large_matrices(shape):
    scores = torch.stack([randn(*shape, seed=seed, scale=scale) for seed, scale in enumerate((0.3, 3.0, 3e3))])
    z, info = ops.matching(scores.cuda().requires_grad_(), budget=50, return_info=True)
    assert info.converged.all()
    torch.testing.assert_close(z.detach().cpu(), ops.matching(scores, budget=50), rtol=0, atol=1e-9)
    z.square().sum().backward()
    best = ops.matching_map(scores, budget=50)
    assert torch.equal(ops.matching_map(scores.cuda(), budget=50).cpu(), best)


def test_constraints_are_solved_without_waiting():
    generator = torch.Generator().manual_seed(0)
    scores, weights = randn(12, 9, 14, seed=2, scale=2.0), randn(12, 9, 14, seed=3)
    fixed = torch.randint(-1, 1, scores.shape, generator=generator)
    fixed[:, 2, 3] = 1
    masks = random_masks(12, 9, 14, generator)
    masks["row_mask"][:, 2] = masks["column_mask"][:, 3] = True
    at_least = torch.arange(12) % 3 + 1
    for options in ({"fixed": fixed, "budget": 4}, {"at_least": at_least, "budget": 6}):

        def layer(s, options=options, **masks):
            moved = {name: v.to(s.device) if isinstance(v, torch.Tensor) else v for name, v in options.items()}
            return ops.matching(s, **moved, **masks)

        cpu, cuda = on_both(layer, scores, weights, **masks)
        for ours, theirs in zip(cpu, cuda, strict=True):
            torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-9)
    leaf, moved = scores.cuda().requires_grad_(), fixed.cuda()
    torch.cuda.set_sync_debug_mode("error")
    try:
        ops.matching(leaf, fixed=moved, budget=4).square().sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_dtypes(dtype):
    scores = randn(4, 10, 16, scale=2.0).to(dtype)
    cpu, cuda = on_both(lambda s: ops.matching(s, budget=4), scores, randn(4, 10, 16, seed=1).to(dtype))
    for ours, theirs in zip(cpu, cuda, strict=True):
        torch.testing.assert_close(theirs, ours, rtol=0, atol=2 * torch.finfo(dtype).eps)


def test_budget_per_pair_and_empty_shapes():
    scores = randn(7, 5, 6, scale=3.0) + 3.0
    budget = torch.arange(7)
    z = ops.matching(scores.cuda(), budget=budget.cuda())
    torch.testing.assert_close(z.cpu(), ops.matching(scores, budget=budget), rtol=0, atol=1e-11)
    assert torch.equal(z[0], torch.zeros_like(z[0]))
    for shape in ((0, 3, 4), (2, 0, 4), (2, 3, 0)):
        empty = torch.zeros(shape, device="cuda", requires_grad=True)
        ops.matching(empty).sum().backward()
        assert empty.grad.shape == ops.matching_map(empty).shape == shape
    masked = ops.matching(torch.ones(2, 3, 4, device="cuda"), row_mask=torch.zeros(2, 3, dtype=torch.bool).cuda())
    assert torch.equal(masked, torch.zeros_like(masked))


def test_info_at_max_iterations():
    scores = randn(3, 20, 30, scale=2.0).cuda()
    _, info = ops.matching(scores, max_iterations=1, return_info=True)
    assert not info.converged.any()
    assert torch.equal(info.iterations.cpu(), torch.ones(3, dtype=torch.int64))


# --- what has no answer


def test_invalid_pairs_give_nan():
    scores = randn(5, 4, 6)
    scores[1, 2, 3] = torch.nan
    scores[2, 0, 0] = torch.inf
    row_mask = torch.ones(5, 4, dtype=torch.bool)
    row_mask[:, 3] = False
    column_mask = torch.ones(5, 6, dtype=torch.bool)
    column_mask[3, 2:] = False  # 3 rows, 2 columns
    masks = {"row_mask": row_mask.cuda(), "column_mask": column_mask.cuda()}
    real = (row_mask[:, :, None] & column_mask[:, None, :]).cuda()
    expected = torch.tensor([False, True, True, True, False]).cuda()[:, None, None] & real
    leaf = scores.cuda().requires_grad_()
    z, info = ops.matching(leaf, rows="exactly_one", **masks, return_info=True)
    (gradient,) = torch.autograd.grad(z.sum(), leaf)
    for result in (z, gradient, ops.matching_map(leaf, rows="exactly_one", **masks)):
        assert torch.equal(result.isnan(), expected)
        assert torch.equal(result[~real], torch.zeros_like(result[~real]))
    assert torch.equal(info.converged.cpu(), torch.tensor([True, False, False, False, True]))
    budget = torch.tensor([2, -1, 0]).cuda()
    for op in (ops.matching, ops.matching_map):
        assert torch.equal(op(randn(3, 4, 6).cuda(), budget=budget).isnan().any(-1).any(-1), budget < 0)
        with pytest.raises(ValueError, match="at least 0"):
            op(scores.cuda(), budget=-1)


# --- the baselines


@pytest.mark.parametrize("options", [{"kind": "relaxed"}, {"kind": "exact_k", "k": 3}], ids=["relaxed", "exact_k"])
@pytest.mark.parametrize("shape", [(6, 9), (24, 32), (150, 120)])
def test_transport(options, shape):
    masks = {"row_mask": torch.ones(3, shape[0], dtype=torch.bool), "column_mask": torch.ones(3, shape[1]).bool()}
    masks["row_mask"][1, 4:] = False
    function = lambda s, **m: ops.sinkhorn(s, **options, **m, tolerance=1e-9)  # noqa: E731
    cpu, cuda = on_both(function, randn(3, *shape), randn(3, *shape, seed=1), **masks)
    for ours, theirs in zip(cpu, cuda, strict=True):
        torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-7)


def test_invalid_transport_gives_nan():
    scores = randn(3, 4, 6)
    scores[1, 2, 3] = torch.nan
    plan, info = ops.sinkhorn(scores.cuda(), kind="exact_k", k=torch.tensor([2, 2, 5]).cuda(), return_info=True)
    odd = torch.tensor([False, True, True])
    assert torch.equal(plan.isnan().cpu(), odd[:, None, None].expand(3, 4, 6))
    assert torch.equal(info.converged.cpu(), ~odd)


def test_gumbel():
    scores = randn(3, 4, 6)
    decided = ops.gumbel_matching(scores.cuda(), temperature=1.0, training=False)
    for ours, theirs in zip(decided, ops.gumbel_matching(scores, temperature=1.0, training=False), strict=True):
        assert torch.equal(ours.cpu(), theirs)
    scores[1, 2, 3] = torch.inf
    row_mask = torch.ones(3, 4, dtype=torch.bool)
    row_mask[:, 3] = False
    odd = torch.tensor([False, True, False])[:, None, None] & row_mask[:, :, None].expand(3, 4, 6)
    for training in (True, False):
        made = ops.gumbel_matching(scores.cuda(), temperature=1.0, training=training, row_mask=row_mask.cuda())
        for part in made:
            assert torch.equal(part.isnan().cpu(), odd)
            assert torch.equal(part[:, 3], torch.zeros_like(part[:, 3]))


# --- in a model


def step(scores, row_mask, budget):
    z = ops.matching(scores, budget=budget, row_mask=row_mask, temperature=0.5)
    return (z.square().sum(), ops.matching_map(scores, budget=budget, row_mask=row_mask))


def inputs_on_device():
    row_mask = torch.ones(4, 12, dtype=torch.bool)
    row_mask[1, 5:] = False
    return randn(4, 12, 16).float().cuda().requires_grad_(), row_mask.cuda(), torch.tensor([1, 2, 3, 4]).cuda()


def test_no_synchronization():
    arguments = inputs_on_device()
    step(*arguments)[0].backward()  # compiles
    ops.sinkhorn(arguments[0]).sum().backward()
    arguments[0].grad = None
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for options in KINDS.values():
            ops.matching(arguments[0][:, :, :12], **options).sum().backward()
        step(*arguments)[0].backward()
        ops.sinkhorn(arguments[0]).sum().backward()
        ops.sinkhorn(arguments[0], kind="exact_k", k=3).sum().backward()
        for training in (True, False):
            ops.gumbel_matching(arguments[0], temperature=0.5, training=training)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_cuda_graph():
    arguments = inputs_on_device()
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            step(*arguments)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = step(*arguments)
        arguments[0].copy_(3 * randn(4, 12, 16, seed=8))
        graph.replay()
        for ours, theirs in zip(captured, step(*arguments), strict=True):
            assert torch.equal(ours, theirs)


def test_compile():
    arguments = inputs_on_device()
    loss, best = step(*arguments)
    (gradient,) = torch.autograd.grad(loss, arguments[0])
    compiled_loss, compiled_best = torch.compile(step, fullgraph=True)(*arguments)
    (compiled_gradient,) = torch.autograd.grad(compiled_loss, arguments[0])
    assert torch.equal(best, compiled_best)
    torch.testing.assert_close(compiled_gradient, gradient, rtol=0, atol=1e-6)
