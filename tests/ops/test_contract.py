"""The contract of every op on word scores."""

import copy
import inspect
from functools import partial

import pytest
import torch
from torch import Tensor

from rationalizer import ops
from tests.ops.layers import DISCRETE, EVERY, LAYERS, Classifier, random_mask

every = pytest.mark.parametrize("layer", EVERY.values(), ids=EVERY.keys())
projection = pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS.keys())


def jacobian(layer, scores: Tensor) -> Tensor:
    return torch.autograd.functional.jacobian(lambda s: layer(s[None])[0], scores)


@projection
def test_gradcheck(layer, generator):
    scores = torch.randn(6, 9, dtype=torch.float64, generator=generator, requires_grad=True)
    mask = random_mask(6, 9, generator)
    assert torch.autograd.gradcheck(lambda s: layer(s, mask), scores)


@pytest.mark.parametrize("op", [ops.pair_budget, ops.sequence_budget])
@pytest.mark.parametrize("scale", [0.05, 0.5, 3.0])
def test_gradcheck_of_transitions(op, scale, generator):
    scores = torch.randn(8, 9, dtype=torch.float64, generator=generator, requires_grad=True)
    edges = (0.1 + torch.rand(8, 8, dtype=torch.float64, generator=generator)) * scale
    mask = random_mask(8, 9, generator)
    edges.requires_grad_()
    assert torch.autograd.gradcheck(lambda s, r: op(s, 3, transition=r, mask=mask, temperature=0.7), (scores, edges))


def test_gradcheck_of_shared_transitions(generator):
    scores = torch.randn(3, 7, dtype=torch.float64, generator=generator, requires_grad=True)
    edges = torch.rand(6, dtype=torch.float64, generator=generator, requires_grad=True)
    one = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s, r: ops.sequence_budget(s, 2, transition=r), (scores, edges))
    assert torch.autograd.gradcheck(lambda s, r: ops.pair_budget(s, 2, transition=r), (scores, one))


@projection
@pytest.mark.parametrize("scale", [0.3, 2.0, 50.0])
def test_jacobian_is_a_projector(layer, scale, generator):
    """J T = (J T)ᵀ = (J T)², T the layer's temperature: the projector onto the solution's face."""
    temperature = 0.5
    for _ in range(10):
        scores = scale * torch.randn(12, dtype=torch.float64, generator=generator)
        j = jacobian(layer, scores) * temperature
        torch.testing.assert_close(j, j.T, rtol=0, atol=1e-9)
        torch.testing.assert_close(j @ j, j, rtol=0, atol=1e-9)


@every
def test_mask_equals_truncation(layer, generator):
    """Bit for bit, wherever the masked positions are and whatever their scores are."""
    scores = 2 * torch.randn(12, 11, dtype=torch.float64, generator=generator)
    mask = random_mask(12, 11, generator)
    garbage = scores.masked_fill(~mask, float("nan")).requires_grad_()
    z = layer(garbage, mask)
    weight = torch.randn(12, 11, dtype=torch.float64, generator=generator)
    gradient = torch.autograd.grad((z * weight).sum(), garbage)[0] if z.requires_grad else torch.zeros_like(z)
    assert (z[~mask] == 0).all()
    assert (gradient[~mask] == 0).all()
    for i in range(12):
        short = scores[i, mask[i]][None].requires_grad_()
        alone = layer(short)
        assert torch.equal(z[i, mask[i]], alone[0])
        if alone.requires_grad and mask[i].any():
            expected = torch.autograd.grad((alone[0] * weight[i, mask[i]]).sum(), short)[0]
            assert torch.equal(gradient[i, mask[i]], expected[0])


@pytest.mark.parametrize("name", ["sparsemax", "fusedmax", "budget", "pair_budget", "sequence_budget"])
def test_mask_equals_truncation_for_huge_scores(name):
    scores = torch.tensor([[1e17, 1e17, 5.0, 1e17]], dtype=torch.float64)
    mask = torch.tensor([[True, False, True, False]])
    assert torch.equal(LAYERS[name](scores, mask)[mask], LAYERS[name](scores[:, [0, 2]])[0])
    assert LAYERS[name](scores, mask)[0, 0] == 1


@every
def test_batch_equals_rows(layer, generator):
    scores = 2 * torch.randn(70, 15, dtype=torch.float64, generator=generator)
    z = layer(scores)
    assert torch.equal(z, torch.cat([layer(row[None]) for row in scores]))
    assert torch.equal(z.reshape(7, 10, 15), layer(scores.reshape(7, 10, 15)))
    assert torch.equal(z[0], layer(scores[0]))


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(layer, dtype, generator):
    scores = torch.randn(8, 20, generator=generator).to(dtype).requires_grad_()
    z = layer(scores)
    assert z.dtype == dtype
    expected = layer(scores.detach().double())
    torch.testing.assert_close(z.double(), expected, rtol=0, atol=1e-6 if dtype == torch.float32 else 4e-3)
    if z.requires_grad:
        z.sum().backward()
        assert scores.grad is not None
        assert scores.grad.dtype == dtype


@every
def test_empty_inputs(layer):
    assert layer(torch.zeros(0, 5)).shape == (0, 5)
    assert layer(torch.zeros(3, 0)).shape == (3, 0)
    assert (layer(torch.randn(2, 4), torch.zeros(2, 4, dtype=torch.bool)) == 0).all()


@every
def test_constant_scores(layer):
    z = layer(torch.zeros(2, 9, dtype=torch.float64))
    assert torch.isfinite(z).all()
    assert torch.equal(z[0], z[1])


@projection
def test_non_contiguous_no_grad_and_double_use(layer, generator):
    wide = torch.randn(20, 6, dtype=torch.float64, generator=generator)
    scores = wide.t()[:, ::2]
    assert not scores.is_contiguous()
    assert torch.equal(layer(scores), layer(scores.contiguous()))
    assert not layer(scores).requires_grad
    leaf = scores.clone().requires_grad_()
    both = (layer(leaf) * layer(2 * leaf)).sum()
    gradient = torch.autograd.grad(both, leaf)[0]
    assert torch.autograd.gradcheck(lambda s: layer(s) * layer(2 * s), leaf)
    assert gradient.shape == leaf.shape


@every
def test_full_graph_compilation(layer, generator):
    torch._dynamo.reset()
    torch.manual_seed(3)
    model = Classifier(layer)
    twin = copy.deepcopy(model)
    x = torch.randn(4, 13, 8, generator=generator)
    mask = random_mask(4, 13, generator)
    compiled = torch.compile(twin, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, mask), model(x, mask))
    model(x, mask).square().sum().backward()
    compiled(x, mask).square().sum().backward()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        if ours.grad is None:
            assert theirs.grad is None
        else:
            torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.fixture
def keeps_denormals():
    """PyTorch 2.5 loads code compiled with -ffast-math, which makes the processor flush denormal numbers."""
    yield
    torch.set_flush_denormal(False)


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() == "DEFAULT",
    reason="the code that PyTorch generates for processors without vector instructions does not compile",
)
def test_default_compile_backend(generator, keeps_denormals):
    """Once through the code generator too; it needs a C++ compiler, which the other backends do not."""
    torch._dynamo.reset()
    model = Classifier(LAYERS["sequence_budget"])
    x = torch.randn(4, 13, 8, generator=generator)
    mask = random_mask(4, 13, generator)
    compiled = torch.compile(model, fullgraph=True)
    out = compiled(x, mask)
    torch.testing.assert_close(out, model(x, mask))
    out.sum().backward()


@projection
def test_autocast(layer, generator):
    model = Classifier(layer)
    x = torch.randn(4, 13, 8, generator=generator)
    mask = random_mask(4, 13, generator)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(x, mask)
        loss = out.float().square().sum()
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
    torch.testing.assert_close(out.float(), model(x, mask), rtol=0.2, atol=0.2)


@every
def test_budget_is_never_exceeded(layer, generator):
    for scale in (0.1, 1.0, 30.0, 1e4):
        z = layer(scale * torch.randn(64, 30, dtype=torch.float64, generator=generator))
        assert z.sum(-1).max() <= 3 + 1e-9
        assert z.min() >= 0
        assert z.max() <= 1


@pytest.mark.parametrize("name", ["sparsemax", "budget", "top_k"])
def test_permutation(name, generator):
    scores = torch.randn(5, 12, dtype=torch.float64, generator=generator)
    order = torch.randperm(12, generator=generator)
    torch.testing.assert_close(EVERY[name](scores)[:, order], EVERY[name](scores[:, order]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["fusedmax", "pair_budget", "sequence_budget", "anti_contiguous", "spans"])
def test_reversal(name, generator):
    """The structure along the text is symmetric."""
    scores = torch.randn(30, 12, dtype=torch.float64, generator=generator)
    torch.testing.assert_close(LAYERS[name](scores).flip(-1), LAYERS[name](scores.flip(-1)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["sparsemax", "fusedmax", "top_k", "contiguous"])
def test_shift(name, generator):
    """Σz is fixed, so a constant on all scores changes nothing."""
    scores = torch.randn(5, 12, dtype=torch.float64, generator=generator)
    torch.testing.assert_close(EVERY[name](scores), EVERY[name](scores + 3.7), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["budget", "pair_budget", "sequence_budget"])
def test_shift_with_binding_budget(name, generator):
    scores = 5 + torch.randn(5, 12, dtype=torch.float64, generator=generator)
    torch.testing.assert_close(LAYERS[name](scores), LAYERS[name](scores + 3.7), rtol=0, atol=1e-9)


@every
def test_common_errors(layer):
    with pytest.raises(TypeError, match="got list"):
        layer([1.0, 2.0])
    with pytest.raises(TypeError, match="int64"):
        layer(torch.ones(2, 3, dtype=torch.long))
    with pytest.raises(ValueError, match=r"\(batch, n\)"):
        layer(torch.tensor(1.0))
    with pytest.raises(ValueError, match=r"scores\[1, 2\] is nan"):
        layer(torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, float("nan")]]))
    with pytest.raises(ValueError, match=r"scores\[0, 1\] is -inf"):
        layer(torch.tensor([[1.0, -float("inf"), 3.0]]))
    with pytest.raises(TypeError, match="mask"):
        layer(torch.randn(2, 3), torch.ones(2, 3, dtype=torch.long))
    with pytest.raises(ValueError, match=r"\(2, 4\)"):
        layer(torch.randn(2, 3), torch.ones(2, 4, dtype=torch.bool))


BUDGETED = {
    "budget": ops.budget,
    "pair_budget": ops.pair_budget,
    "sequence_budget": ops.sequence_budget,
    "sequence_budget_map": ops.sequence_budget_map,
    "spans": partial(ops.spans, spans=2),
    "spans_map": partial(ops.spans_map, spans=2),
}


@pytest.mark.parametrize("op", BUDGETED.values(), ids=BUDGETED.keys())
def test_budget_argument(op, generator):
    scores = 1 + torch.rand(4, 6, dtype=torch.float64, generator=generator)
    assert (op(scores, 0) == 0).all()
    off = op(scores, 6)
    assert torch.equal(op(scores, 99), off)
    each = op(scores, torch.tensor([0, 1, 3, 9]))
    for i, limit in enumerate((0, 1, 3, 9)):
        assert torch.equal(each[i], op(scores[i], limit))
    with pytest.raises(ValueError, match="got -1"):
        op(scores, -1)
    with pytest.raises(ValueError, match="got -2 in row 2"):
        op(scores, torch.tensor([1, 1, -2, 1]))
    with pytest.raises(TypeError, match=r"got 0\.2"):
        op(scores, 0.2)
    with pytest.raises(TypeError, match="got True"):
        op(scores, True)
    with pytest.raises(TypeError, match="float32"):
        op(scores, torch.ones(4))
    with pytest.raises(ValueError, match=r"got \(3,\)"):
        op(scores, torch.ones(3, dtype=torch.long))


@pytest.mark.parametrize("op", [ops.top_k, ops.contiguous])
def test_k_argument(op):
    scores = torch.randn(3, 5)
    assert torch.equal(op(scores, torch.tensor([0, 2, 9])).sum(-1), torch.tensor([0.0, 2.0, 5.0]))
    with pytest.raises(ValueError, match="got -1"):
        op(scores, -1)
    with pytest.raises(ValueError, match="got -3 in row 1"):
        op(scores, torch.tensor([1, -3, 1]))
    with pytest.raises(TypeError, match=r"got 0\.5"):
        op(scores, 0.5)


@pytest.mark.parametrize("op", [ops.pair_budget, ops.sequence_budget, ops.sequence_budget_map])
def test_transition_argument(op, generator):
    scores = torch.randn(4, 6, dtype=torch.float64, generator=generator)
    number = op(scores, 2, transition=0.3)
    assert torch.equal(number, op(scores, 2, transition=torch.tensor(0.3, dtype=torch.float64)))
    assert torch.equal(number, op(scores, 2, transition=torch.full((5,), 0.3, dtype=torch.float64)))
    assert torch.equal(number, op(scores, 2, transition=torch.full((4, 5), 0.3, dtype=torch.float64)))
    with pytest.raises(ValueError, match=r"got \(6,\)"):
        op(scores, 2, transition=torch.zeros(6))
    with pytest.raises(TypeError, match="int64"):
        op(scores, 2, transition=torch.zeros(5, dtype=torch.long))
    with pytest.raises(TypeError, match="str"):
        op(scores, 2, transition="high")
    with pytest.raises(ValueError, match=r"transition\[0, 0\] is inf"):
        op(scores, 2, transition=float("inf"))


@pytest.mark.parametrize("op", [ops.sparsemax, ops.fusedmax])
@pytest.mark.parametrize("temperature", [0, -1.0, float("nan"), "warm"])
def test_temperature_argument(op, temperature):
    with pytest.raises(ValueError, match="temperature"):
        op(torch.randn(2, 3), temperature=temperature)


@pytest.mark.parametrize("tv", [-0.1, float("nan"), "much"])
def test_tv_argument(tv):
    with pytest.raises(ValueError, match="tv"):
        ops.fusedmax(torch.randn(2, 3), tv=tv)


def test_discrete_layers_have_no_gradient():
    scores = torch.randn(2, 8, requires_grad=True)
    for layer in DISCRETE.values():
        assert not layer(scores).requires_grad


def test_discrete_layers_break_ties_towards_fewer_and_earlier_words():
    mask = torch.tensor([[True, False, True, True, True, True]])
    first = torch.tensor([[1.0, 0.0, 1.0, 1.0, 0.0, 0.0]])
    for layer in DISCRETE.values():
        assert torch.equal(layer(torch.ones(1, 6), mask), first)
    assert (ops.sequence_budget_map(torch.zeros(1, 6), 3) == 0).all()
    assert torch.equal(ops.top_k(torch.tensor([[1.0, 2.0, 2.0, 2.0]]), 2), torch.tensor([[0.0, 1.0, 1.0, 0.0]]))


@projection
def test_forward_mode_raises(layer, generator):
    scores = torch.randn(2, 9, generator=generator)
    with pytest.raises(NotImplementedError, match="forward-mode"):
        torch.func.jvp(layer, (scores,), (torch.ones_like(scores),))


def test_forward_mode_of_other_arguments_and_ops_raises(generator):
    scores, pairs = torch.randn(2, 5, generator=generator), torch.randn(1, 3, 4, generator=generator)
    cases = {
        "transition": (lambda r: ops.sequence_budget(scores, 2, transition=r), torch.tensor(0.1)),
        "matching": (ops.matching, pairs),
        "sinkhorn": (lambda s: ops.sinkhorn(s, kind="relaxed"), pairs),
        "gumbel": (lambda s: ops.gumbel_matching(s, temperature=1.0, training=True).rows, pairs),
    }
    for layer, given in cases.values():
        with pytest.raises(NotImplementedError, match="forward-mode"):
            torch.func.jvp(layer, (given,), (torch.ones_like(given),))


@pytest.mark.parametrize("op", [ops.budget, ops.sequence_budget, ops.sequence_budget_map, ops.pair_budget, ops.top_k])
def test_huge_budget_is_no_budget(op, generator):
    scores = torch.randn(2, 5, generator=generator)
    assert torch.equal(op(scores, 2**70), op(scores, 5))


@pytest.mark.parametrize("op", [ops.sparsemax, ops.fusedmax, ops.matching, ops.sinkhorn])
def test_huge_whole_numbers_are_floats(op, generator):
    scores = torch.randn(2, 5, 5, generator=generator)
    name = "epsilon" if op is ops.sinkhorn else "temperature"
    assert torch.equal(op(scores, **{name: 2**70}), op(scores, **{name: 2.0**70}))
    with pytest.raises(ValueError, match=name):
        op(scores, **{name: 10**400})
    if op in (ops.matching, ops.sinkhorn):
        with pytest.raises(ValueError, match="max_iterations"):
            op(scores, max_iterations=2**70)


def test_only_scores_and_budget_are_positional():
    """One rule for all ops, also those on matrices."""
    functions = [getattr(ops, name) for name in ops.__all__ if inspect.isfunction(getattr(ops, name))]
    assert len(functions) >= 16
    for function in functions:
        parameters = inspect.signature(function).parameters.values()
        positional = [one.name for one in parameters if one.kind is not one.KEYWORD_ONLY]
        assert positional in (["scores"], ["scores", "budget"], ["scores", "k"]), function
