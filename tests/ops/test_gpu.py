"""CUDA tensors give what CPU tensors give, most on their own device and without the host waiting for it."""

import copy

import pytest
import torch
from torch import Tensor

from rationalizer import ops
from tests.ops import layers
from tests.ops.conftest import needs_cuda
from tests.ops.layers import DISCRETE, ON_HOST, Classifier, random_mask

pytestmark = needs_cuda
EVERY = {name: layer for name, layer in layers.EVERY.items() if name not in ON_HOST}
LAYERS = {name: layer for name, layer in layers.LAYERS.items() if name not in ON_HOST}
every = pytest.mark.parametrize("layer", EVERY.values(), ids=EVERY.keys())
projection = pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS.keys())
BUDGETED = {
    "budget": ops.budget,
    "pair_budget": ops.pair_budget,
    "sequence_budget": ops.sequence_budget,
    "sequence_budget_map": ops.sequence_budget_map,
    "top_k": ops.top_k,
    "contiguous": ops.contiguous,
}


def solve(layer, device: str, scores: Tensor, mask: Tensor, *others: Tensor) -> list[Tensor]:
    """Value and gradients (for a fixed direction) with everything on the device, brought back."""
    leaves = [t.to(device).requires_grad_() for t in (scores, *others)]
    z = layer(leaves[0], mask.to(device), *leaves[1:])
    assert z.device.type == device
    direction = torch.linspace(-1, 2, z.numel(), dtype=torch.float64).sin().reshape(z.shape).to(z)
    gradients = torch.autograd.grad((z * direction).sum(), leaves) if z.requires_grad else ()
    return [t.detach().cpu() for t in (z, *gradients)]


def assert_same(layer, scores: Tensor, mask: Tensor, *others: Tensor, atol: float = 1e-8) -> None:
    expected = solve(layer, "cpu", scores, mask, *others)
    ours = solve(layer, "cuda", scores, mask, *others)
    for got, want in zip(ours, expected, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=atol)


@every
@pytest.mark.parametrize("n", [1, 2, 3, 17, 40, 130, 300, 1100])
def test_same_as_cpu(layer, n, generator):
    scores = torch.randn(16, n, dtype=torch.float64, generator=generator)
    assert_same(layer, scores, random_mask(16, n, generator))


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(layer, dtype, generator):
    scores = torch.randn(8, 40, generator=generator).to(dtype)
    z = layer(scores.cuda().requires_grad_())
    assert z.dtype == dtype
    assert_same(layer, scores, random_mask(8, 40, generator), atol=1e-6 if dtype == torch.float32 else 8e-3)


@pytest.mark.parametrize("op", [ops.pair_budget, ops.sequence_budget])
@pytest.mark.parametrize("ratio", [0.003, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("n", [20, 150])
def test_every_scale(op, ratio, scale, n, generator):
    scores = scale * torch.randn(24, n, dtype=torch.float64, generator=generator)
    edges = scale * ratio * torch.rand(24, n - 1, dtype=torch.float64, generator=generator)

    def layer(s, mask, r):
        return op(s, n // 5, mask=mask, transition=r)

    assert_same(layer, scores, random_mask(24, n, generator), edges, atol=1e-7)
    if op is ops.sequence_budget:
        _, info = op(scores.cuda(), n // 5, transition=edges.cuda(), return_info=True)
        assert info.converged.all()


@pytest.mark.parametrize("scale", [0.3, 3.0, 1e3])
def test_transitions_of_both_signs(scale, generator):
    scores = scale * torch.randn(24, 40, dtype=torch.float64, generator=generator)
    edges = scale * torch.randn(24, 39, dtype=torch.float64, generator=generator)
    mask = random_mask(24, 40, generator)
    assert_same(lambda s, m, r: ops.sequence_budget(s, 8, mask=m, transition=r), scores, mask, edges, atol=1e-7)
    assert_same(lambda s, m: ops.sequence_budget_map(s, 8, mask=m, transition=edges.to(s)), scores, mask)


@pytest.mark.parametrize("op", BUDGETED.values(), ids=BUDGETED.keys())
def test_budgets(op, generator):
    scores = 2 * torch.randn(7, 30, dtype=torch.float64, generator=generator)
    mask = random_mask(7, 30, generator)
    limits = torch.tensor([0, 1, 6, 29, 30, 31, 10_000])
    assert_same(lambda s, m: op(s, limits.to(s.device), mask=m), scores, mask)
    assert_same(
        lambda s, m: op(s, limits[:, None].expand(7, 3), mask=m), *(t[:, None].expand(7, 3, 30) for t in (scores, mask))
    )


@pytest.mark.parametrize("name", ["budget", "pair_budget", "sequence_budget", "sequence_budget_map"])
def test_ties(name, generator):
    scores = (2 * torch.randn(40, 24, dtype=torch.float64, generator=generator)).round() / 2
    for extra in ({}, {"transition": 0.5}) if name != "budget" else ({},):
        z = BUDGETED[name](scores.cuda(), 6, **extra).cpu()
        torch.testing.assert_close(z, BUDGETED[name](scores, 6, **extra), rtol=0, atol=1e-9)


@every
def test_mask_equals_truncation_and_batch_equals_rows(layer, generator):
    """Bit for bit, wherever the masked tokens stand and whatever their scores are."""
    scores = 2 * torch.randn(12, 150, dtype=torch.float64, generator=generator).cuda()
    mask = random_mask(12, 150, generator).cuda()
    z = layer(scores.masked_fill(~mask, float("nan")), mask)
    assert (z[~mask] == 0).all()
    for i in range(12):
        assert torch.equal(z[i, mask[i]], layer(scores[i, mask[i]]))


@every
def test_empty_inputs(layer):
    assert layer(torch.zeros(0, 5, device="cuda")).shape == (0, 5)
    assert layer(torch.zeros(3, 0, device="cuda")).shape == (3, 0)
    z = layer(torch.randn(2, 4, device="cuda"), torch.zeros(2, 4, dtype=torch.bool, device="cuda"))
    assert (z == 0).all()


@every
def test_invalid_scores_give_nan_rows(layer, generator):
    scores = torch.randn(5, 9, generator=generator)
    mask = random_mask(5, 9, generator)
    mask[3] = True
    good = layer(scores.cuda(), mask.cuda())
    scores[1, 0], scores[3, 4] = float("nan"), float("inf")
    z = layer(scores.cuda(), mask.cuda())
    expected = good.masked_fill(torch.tensor([0, 1, 0, 1, 0]).bool()[:, None].cuda() & mask.cuda(), float("nan"))
    torch.testing.assert_close(z, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("op", BUDGETED.values(), ids=BUDGETED.keys())
def test_invalid_arguments_give_nan_rows(op, generator):
    scores = torch.randn(3, 6, generator=generator, device="cpu").cuda().requires_grad_()
    z = op(scores, torch.tensor([2, -1, 2], device="cuda"))
    assert z[1].isnan().all()
    assert torch.isfinite(z[[0, 2]]).all()
    if op in (ops.pair_budget, ops.sequence_budget):
        z.sum().backward()
        assert scores.grad[1].isnan().all()
        edges = torch.zeros(3, 5, device="cuda")
        edges[0, 2] = float("inf")
        edges[2, 1] = -1.0
        z = op(scores, 2, transition=edges)
        assert z[0].isnan().all()
        assert torch.isfinite(z[1]).all()
        assert z[2].isnan().all() == (op is ops.pair_budget)
    with pytest.raises(ValueError, match="got -1"):
        op(scores, -1)


@every
def test_no_synchronization(layer, generator):
    scores = torch.randn(8, 60, generator=generator).cuda().requires_grad_()
    mask = random_mask(8, 60, generator).cuda()
    layer(scores, mask).sum().backward() if layer not in DISCRETE.values() else layer(scores, mask)  # compiles
    torch.cuda.set_sync_debug_mode("error")
    try:
        z = layer(scores, mask)
        if z.requires_grad:
            (z * z).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@every
def test_training_step_in_a_cuda_graph(layer, generator):
    model = Classifier(layer).cuda()
    x = torch.randn(8, 50, 8, generator=generator).cuda()
    mask = random_mask(8, 50, generator).cuda()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # warm up, as graphs ask for
        for _ in range(2):
            model(x, mask).square().sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    model.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(x, mask)
        out.square().sum().backward()
    x.copy_(3 * torch.randn(8, 50, 8, generator=generator))  # other data
    graph.replay()
    captured = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad(set_to_none=True)
    expected = model(x, mask)
    torch.testing.assert_close(out, expected)
    expected.square().sum().backward()
    for got, want in zip(captured, (p.grad for p in model.parameters() if p.grad is not None), strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("name", ["sequence_budget", "fusedmax"])
def test_compiled_training_step(name, generator):
    torch._dynamo.reset()
    model = Classifier(LAYERS[name]).cuda()
    twin = copy.deepcopy(model)
    x = torch.randn(8, 50, 8, generator=generator).cuda()
    mask = random_mask(8, 50, generator).cuda()
    compiled = torch.compile(twin, fullgraph=True)
    for module, runs in ((model, model), (twin, compiled)):
        optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)  # Adam would blow up gradients that are rounding
        for _ in range(3):
            optimizer.zero_grad()
            runs(x, mask).square().sum().backward()
            optimizer.step()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@projection
def test_autocast(layer, generator):
    model = Classifier(layer).cuda()
    x = torch.randn(4, 13, 8, generator=generator).cuda()
    mask = random_mask(4, 13, generator).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x, mask).float().square().sum()
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("tolerance", [0.0, 1e-3])
def test_scores_at_start_of_training(tolerance, generator):
    """Hundreds of sequences share these answers: as many as they need, and none is left too early."""
    scores = 0.5 + 0.05 * torch.randn(4, 600, dtype=torch.float64, generator=generator)
    for transition in (1e-3, 0.1):
        exact = ops.sequence_budget(scores, 120, transition=transition)
        z, info = ops.sequence_budget(scores.cuda(), 120, transition=transition, tolerance=tolerance, return_info=True)
        assert info.converged.all()
        assert (z.cpu() - exact).norm(dim=-1).max() <= tolerance + 1e-8


def test_info_at_max_iterations(generator):
    scores = torch.randn(16, 40, dtype=torch.float64, generator=generator).cuda()
    optimum = ops.sequence_budget(scores, 8, transition=1.0)
    z, info = ops.sequence_budget(scores, 8, transition=1.0, max_iterations=2, return_info=True)
    assert not info.converged.all()
    assert (info.iterations <= 2).all()
    assert z.min() >= 0
    assert z.max() <= 1
    assert z.sum(-1).max() <= 8 + 1e-9
    assert (0.5 * (z - optimum).square().sum(-1) <= info.gap + 1e-12).all()


QUOTES = {"spans": 2, "shortest": 2, "longest": 4}


def some_fixed(rows: int, n: int) -> Tensor:
    fixed = torch.zeros(rows, n, dtype=torch.int8)
    fixed[:, 1::4], fixed[:, 6] = -1, 1
    return fixed


@pytest.mark.parametrize("rules", [QUOTES, {"shortest": 3}, {}], ids=["quotes", "shortest", "fixed alone"])
def test_constraints(rules, generator):
    scores = torch.randn(12, 40, dtype=torch.float64, generator=generator)
    edges = torch.rand(12, 39, dtype=torch.float64, generator=generator)
    mask = random_mask(12, 40, generator)
    if rules:
        assert_same(lambda s, m, r: ops.spans(s, 8, transition=r, mask=m, **rules), scores, mask, edges)
        y = ops.spans_map(scores, 8, transition=edges, mask=mask, **rules)
        assert torch.equal(ops.spans_map(scores.cuda(), 8, transition=edges.cuda(), mask=mask.cuda(), **rules).cpu(), y)
    fixed = some_fixed(12, 40)
    fixed[:, 6] = 0
    assert_same(
        lambda s, m, r: ops.spans(s, 8, transition=r, mask=m, fixed=fixed.to(s.device), **rules), scores, mask, edges
    )


def test_more_fixed_words_than_budget(generator):
    scores = torch.randn(2, 10, generator=generator).cuda()
    fixed = torch.zeros(2, 10, dtype=torch.int8)
    fixed[1, :3] = 1
    assert ops.spans_map(scores, 2, transition=0.1, fixed=fixed.cuda()).isnan().all(-1).tolist() == [False, True]
    for rules in ({}, {"spans": 1}):
        z, info = ops.spans(scores, 2, transition=0.1, fixed=fixed.cuda(), return_info=True, **rules)
        assert info.converged.tolist() == [True, False]
        assert (z[1] == 0).all()
        assert torch.isinf(info.gap[1])
