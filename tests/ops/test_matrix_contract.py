"""The contract of the ops on score matrices: masks, batches, shapes, dtypes, compilation, errors."""

from __future__ import annotations

import warnings
from functools import partial

import pytest
import torch

from rationalizer import ops
from tests.ops.oracles_matching import KINDS, randn, shape_for, violation

MATCHINGS = {kind: partial(ops.matching, **options) for kind, options in KINDS.items()}
MATCHINGS["at_least"] = partial(ops.matching, budget=3, at_least=2)
MATCHINGS["exactly"] = partial(ops.matching, budget=3, at_least=3)
TRANSPORTS = {"relaxed": ops.sinkhorn, "exact_k": partial(ops.sinkhorn, kind="exact_k", k=3)}
SOFT = MATCHINGS | TRANSPORTS | {"monotone": partial(ops.monotone_matching, budget=3)}
DISCRETE = {f"{kind}_map": partial(ops.matching_map, **options) for kind, options in KINDS.items()}
DISCRETE["at_least_map"] = partial(ops.matching_map, budget=3, at_least=2)
DISCRETE["exactly_map"] = partial(ops.matching_map, budget=3, at_least=3)
DISCRETE["monotone_map"] = partial(ops.monotone_matching_map, budget=3)
EVERY = SOFT | DISCRETE
every = pytest.mark.parametrize("name", EVERY)
soft = pytest.mark.parametrize("name", SOFT)
with_info = pytest.mark.parametrize("name", MATCHINGS | TRANSPORTS)


def shape(name: str, small: int, large: int) -> tuple[int, int]:
    return shape_for(name.removesuffix("_map"), small, large)


def assert_same(name: str, ours: torch.Tensor, theirs: torch.Tensor, atol: float = 1e-12) -> None:
    """Bit for bit, except for `sinkhorn`, whose sums have another order in another shape."""
    torch.testing.assert_close(ours, theirs, rtol=0, atol=atol if name in TRANSPORTS else 0)


@every
def test_mask_equals_truncation(name):
    m, n = shape(name, 5, 8)
    generator = torch.Generator().manual_seed(5)
    row_mask, column_mask = torch.zeros(4, m + 3, dtype=torch.bool), torch.zeros(4, n + 2, dtype=torch.bool)
    for mask, size in ((row_mask, m), (column_mask, n)):
        for row in mask:
            row[torch.randperm(len(row), generator=generator)[:size]] = True
    unmasked = row_mask[:, :, None] & column_mask[:, None, :]
    scores = randn(4, m + 3, n + 2, scale=2.0)
    scores[~unmasked] = torch.inf
    scores[:2] = scores[:2].masked_fill(~row_mask[:2, :, None], torch.nan)
    wide = scores.clone().requires_grad_()
    short = scores[unmasked].reshape(4, m, n).clone().requires_grad_()
    z, expected = EVERY[name](wide, row_mask=row_mask, column_mask=column_mask), EVERY[name](short)
    assert_same(name, z[unmasked].reshape(4, m, n), expected)
    assert (z[~unmasked] == 0).all()
    if name in SOFT:
        weights = randn(4, m, n, seed=9)
        (z[unmasked].reshape(4, m, n) * weights).sum().backward()
        (expected * weights).sum().backward()
        assert_same(name, wide.grad[unmasked].reshape(4, m, n), short.grad, atol=1e-9)
        assert (wide.grad[~unmasked] == 0).all()


@every
def test_batch_equals_rows(name):
    m, n = shape(name, 12, 16) if "monotone" not in name else (5, 7)
    large = 20.0 if name in TRANSPORTS else 3e3
    scores = torch.cat([randn(10, m, n, seed=1, scale=3.0), randn(10, m, n, seed=2, scale=large)])
    z = EVERY[name](scores)
    for row in range(20):
        assert_same(name, EVERY[name](scores[row]), z[row])


@with_info
def test_batch_info_equals_row_info(name):
    m, n = shape(name, 4, 6)
    scores = torch.cat([randn(3, m, n, seed=1), 5 * randn(3, m, n, seed=2)])
    _, info = SOFT[name](scores.reshape(2, 3, m, n), return_info=True)
    assert info.converged.shape == info.iterations.shape == info.gap.shape == (2, 3)
    for row in range(6):
        _, one = SOFT[name](scores[row], return_info=True)
        assert one.iterations == info.iterations.flatten()[row]
        torch.testing.assert_close(one.gap, info.gap.flatten()[row], rtol=0, atol=1e-9 if name in TRANSPORTS else 0)


@every
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_dtypes_leading_dimensions_and_strides(name, dtype, device):
    m, n = shape(name, 4, 6)
    scores = randn(n, m, 3, 2).permute(3, 2, 1, 0).to(dtype).to(device).requires_grad_()
    assert not scores.is_contiguous()
    z = EVERY[name](scores)
    assert z.dtype == dtype
    expected = EVERY[name](scores.detach().cpu().double().reshape(6, m, n)).reshape(2, 3, m, n)
    atol = max(2 * torch.finfo(dtype).eps, 2e-6 if name in TRANSPORTS else 0)  # the tolerance of `sinkhorn`
    torch.testing.assert_close(z.detach().cpu(), expected.to(dtype), rtol=0, atol=atol)
    assert z.requires_grad == (name in SOFT)
    if name in SOFT:
        (z.sum() + EVERY[name](scores).sum()).backward()  # used twice
        assert scores.grad.dtype == dtype
        assert not EVERY[name](scores.detach()).requires_grad


def is_feasible(name: str, m: int, n: int) -> bool:
    conditions = {"xor_at_most_one": m <= n, "columns_exact": n <= m, "permutation": m == n, "exact_k": min(m, n) >= 3}
    return conditions.get(name.removesuffix("_map"), True)


@every
def test_empty_inputs(name):
    for batch, m, n in ((0, 3, 3), (2, 0, 0), (2, 0, 4), (2, 3, 0)):
        if batch == 0 or is_feasible(name, m, n):
            scores = torch.zeros(batch, m, n, requires_grad=True)
            z = EVERY[name](scores)
            assert z.shape == (batch, m, n)
            if name in SOFT:
                z.sum().backward()
                assert scores.grad.shape == (batch, m, n)
    if is_feasible(name, 0, 4):
        assert (EVERY[name](torch.ones(2, 3, 4), row_mask=torch.zeros(2, 3, dtype=torch.bool)) == 0).all()


@every
def test_full_graph_compilation(name):
    torch._dynamo.reset()
    m, n = shape(name, 4, 6)
    scores = randn(2, m, n).float().requires_grad_()
    row_mask = torch.ones(2, m, dtype=torch.bool)
    row_mask[1, 3:] = name.startswith(("columns_exact", "permutation"))  # which need the rows
    layer = partial(EVERY[name], row_mask=row_mask)
    z = torch.compile(lambda s: layer(2 * s), fullgraph=True, backend="aot_eager")(scores)
    expected = layer(2 * scores)
    torch.testing.assert_close(z, expected)
    if name in SOFT:
        gradients = [torch.autograd.grad(value.square().sum(), scores)[0] for value in (z, expected)]
        torch.testing.assert_close(*gradients)


@soft
def test_autocast(name):
    m, n = shape(name, 4, 6)
    left, right = randn(2, m, 8).float(), randn(2, n, 8).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = left @ right.mT
        z = SOFT[name](scores)
    assert scores.dtype == z.dtype == torch.bfloat16
    assert violation(z) <= 2e-2


COMMON_ERRORS = [
    ({"scores": [[1.0]]}, TypeError, "got list"),
    ({"scores": torch.ones(2, 3, 4, dtype=torch.long)}, TypeError, r"got torch\.int64"),
    ({"scores": torch.ones(3)}, ValueError, r"got \(3,\)"),
    ({"scores": torch.full((2, 3, 4), torch.nan)}, ValueError, r"scores\[0, 0, 0\] is nan"),
    ({"scores": torch.full((2, 3, 4), -torch.inf)}, ValueError, r"scores\[0, 0, 0\] is -inf"),
    ({"row_mask": torch.ones(2, 4, dtype=torch.bool)}, ValueError, r"row_mask .*\(2, 4\)"),
    ({"row_mask": torch.ones(3, dtype=torch.bool)}, ValueError, r"row_mask .* got \(3,\)"),
    ({"column_mask": torch.ones(2, 4)}, TypeError, "column_mask"),
]
BUDGET_ERRORS = [
    ({"budget": -1}, ValueError, "got -1"),
    ({"budget": torch.tensor([1, -2])}, ValueError, "got -2 in row 1"),
    ({"budget": 1.5}, TypeError, "got 1.5"),
    ({"budget": torch.tensor([1, 2, 3])}, ValueError, r"got \(3,\)"),
]
SIDE_ERRORS = [
    ({"rows": "one"}, ValueError, "rows .* got 'one'"),
    ({"columns": None}, ValueError, "columns .* got None"),
    ({"columns": "exactly_one"}, ops.InfeasibleError, "3 rows, 4 columns"),
    ({"rows": "exactly_one", "budget": 2}, ops.InfeasibleError, "budget 2"),
]
TEMPERATURE_ERROR = [({"temperature": 0.0}, ValueError, "temperature")]
ITERATIONS_ERROR = [({"max_iterations": 0}, ValueError, "max_iterations")]
ERRORS = {
    "matching": (ops.matching, BUDGET_ERRORS + SIDE_ERRORS + TEMPERATURE_ERROR + ITERATIONS_ERROR),
    "matching_map": (ops.matching_map, BUDGET_ERRORS + SIDE_ERRORS),
    "monotone": (ops.monotone_matching, BUDGET_ERRORS + TEMPERATURE_ERROR + ITERATIONS_ERROR),
    "monotone_map": (ops.monotone_matching_map, BUDGET_ERRORS),
    "sinkhorn": (ops.sinkhorn, ITERATIONS_ERROR),
    "gumbel": (partial(ops.gumbel_matching, training=True), TEMPERATURE_ERROR),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    op, own = ERRORS[name]
    defaults = {"scores": torch.ones(2, 3, 4)} | ({"temperature": 1.0} if name == "gumbel" else {})
    for change, error, message in COMMON_ERRORS + own:
        arguments = defaults | change
        with pytest.raises(error, match=message):
            op(arguments.pop("scores"), **arguments)


def test_infeasible_problems_raise_under_compile():
    compiled = torch.compile(lambda s: ops.matching(s, rows="exactly_one"), fullgraph=True, backend="aot_eager")
    with pytest.raises(ops.InfeasibleError, match="columns"):
        compiled(torch.zeros(2, 5, 3))


def test_convergence_warning():
    scores = randn(3, 12, 16, scale=3.0)
    _, info = ops.matching(scores, max_iterations=1, return_info=True)
    assert not info.converged.any()
    assert info.gap.min() > 1e-6
    with pytest.warns(ops.ConvergenceWarning, match=r"now 1"):
        ops.matching(scores, max_iterations=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ops.matching(scores)


def test_infeasible_problems_raise():
    scores = torch.zeros(5, 14, 20)
    columns = torch.ones(5, 20, dtype=torch.bool)
    columns[3, 8:] = False
    with pytest.raises(ops.InfeasibleError, match="14 rows, 8 columns") as error:
        ops.matching(scores, rows="exactly_one", column_mask=columns)
    assert error.value.instance == 3
    with pytest.raises(ops.InfeasibleError, match="14 rows, 20 columns"):
        ops.matching(scores, columns="exactly_one")
    with pytest.raises(ops.InfeasibleError, match="14 rows, 20 columns"):
        ops.matching(scores, rows="exactly_one", columns="exactly_one")
    with pytest.raises(ops.InfeasibleError, match="budget 13"):
        ops.matching(scores, rows="exactly_one", budget=13)
    budget = torch.tensor([20, 14, 13, 20, 20])
    with pytest.raises(ops.InfeasibleError, match="row 2"):
        ops.matching(scores.mT, columns="exactly_one", budget=budget)
