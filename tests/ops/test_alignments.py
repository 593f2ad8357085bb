"""Alignments under constraints: pairs that must or never may be aligned, a fixed number of them, no crossings."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rationalizer import ops
from tests.ops import oracles
from tests.ops.oracles_matching import randn

RELAXED = {False: ops.matching, True: ops.monotone_matching}
DECIDED = {False: ops.matching_map, True: ops.monotone_matching_map}
either = pytest.mark.parametrize("monotone", [False, True], ids=["any", "monotone"])


def some_fixed(m: int, n: int, seed: int = 0, musts: int = 1) -> torch.Tensor:
    """A few pairs that never may be aligned, and some on the diagonal that must be."""
    generator = torch.Generator().manual_seed(seed)
    fixed = -(torch.rand(m, n, generator=generator) < 0.25).long()
    for i in range(musts):
        fixed[i + 1, i + 1] = 1
    return fixed


# What the contract is tried with; each has an answer for 5 × 6.
CASES = {
    "exactly": {"budget": 3, "exactly": True},
    "all": {"budget": 5, "exactly": True},
    "fixed": {"fixed": some_fixed(5, 6)},
    "fixed, budget": {"fixed": some_fixed(5, 6, musts=2), "budget": 3},
    "fixed, exactly": {"fixed": some_fixed(5, 6, seed=1), "budget": 2, "exactly": True},
    "none": {},
    "budget": {"budget": 2},
}
cases = pytest.mark.parametrize("options", CASES.values(), ids=CASES)


def call(op, scores: torch.Tensor, **options):
    """`fixed` of one pair, for all of the batch."""
    if "fixed" in options:
        options["fixed"] = options["fixed"].expand(scores.shape)
    return op(scores, **options)


@settings(max_examples=50)
@given(data=st.data())
def test_agrees_with_enumeration(data):
    m, n = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    monotone = data.draw(st.booleans())
    values = data.draw(st.lists(st.one_of(st.integers(-2, 2).map(float), st.floats(-3, 3)), min_size=16, max_size=16))
    scores = np.array(values)[: m * n].reshape(m, n)
    kinds = data.draw(st.lists(st.sampled_from([0, 0, 0, 0, -1, 1]), min_size=16, max_size=16))
    fixed = np.array(kinds)[: m * n].reshape(m, n)
    budget = data.draw(st.integers(0, min(m, n)))
    rules = {"exactly": data.draw(st.booleans()), "fixed": fixed}
    given = {"budget": budget, "exactly": rules["exactly"], "fixed": torch.tensor(fixed)}
    if not len(oracles.alignments(m, n, budget, monotone=monotone, **rules)):
        for op in (RELAXED[monotone], DECIDED[monotone]):
            with pytest.raises(ops.InfeasibleError, match="row 0"):
                op(torch.tensor(scores), **given)
        return
    z, info = RELAXED[monotone](torch.tensor(scores), **given, return_info=True)
    expected, proven = oracles.alignment(scores, budget, monotone=monotone, **rules)
    assert info.converged.all()
    assert np.abs(z.numpy() - expected).max() <= (1e-8 if proven else 1e-3)
    y = DECIDED[monotone](torch.tensor(scores), **given).numpy()
    assert (y.ravel() == oracles.alignments(m, n, budget, monotone=monotone, **rules)).all(1).any()
    best = oracles.alignment_map(scores, budget, monotone=monotone, **rules)
    assert (scores * y).sum() == pytest.approx(best, abs=1e-12)


@either
@cases
@pytest.mark.parametrize("scale", [0.05, 3.0, 1e4])
def test_optimality_at_every_scale(monotone, options, scale):
    """Z maximises <S − Z, ·>, as the MAP op says on inputs too large to enumerate."""
    options = options | ({"fixed": some_fixed(13, 11, musts=2)} if "fixed" in options else {})
    scores = randn(3, 13, 11, scale=scale)
    z, info = call(RELAXED[monotone], scores, **options, return_info=True)
    assert info.converged.all()
    best = call(DECIDED[monotone], scores - z, **options)
    assert ((scores - z) * (best - z)).sum((1, 2)).abs().max() <= 1e-11 * max(scale, 1) * 13
    if "fixed" in options:
        assert (z[:, options["fixed"] == 1] == 1).all()
        assert (z[:, options["fixed"] == -1] == 0).all()
    if options.get("exactly"):
        torch.testing.assert_close(z.sum((1, 2)), torch.full((3,), float(options["budget"]), dtype=torch.float64))


@either
@cases
def test_gradcheck_and_projector(monotone, options):
    scores = randn(2, 5, 6, seed=3, scale=0.7).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: call(RELAXED[monotone], s, **options, temperature=0.7), (scores,))
    for one in (scores[0].detach(), scores[0].detach().round(), torch.ones(5, 6, dtype=torch.float64)):
        j = torch.autograd.functional.jacobian(lambda s: call(RELAXED[monotone], s, **options), one).reshape(30, 30)
        torch.testing.assert_close(j, j.T, rtol=0, atol=1e-9)
        torch.testing.assert_close(j @ j, j, rtol=0, atol=1e-9)


@either
@cases
def test_mask_equals_truncation_and_batch_equals_rows(monotone, options):
    rows, columns = torch.tensor([1, 1, 0, 1, 1, 0, 1]).bool(), torch.tensor([0, 1, 1, 1, 0, 1, 1, 1]).bool()
    real = rows[:, None] & columns
    short = randn(2, 5, 6, scale=2.0).requires_grad_()
    wide = torch.full((2, 7, 8), torch.nan, dtype=torch.float64)
    wide[:, real] = short.detach().flatten(1)
    wide.requires_grad_()
    given = dict(options)
    if "fixed" in options:
        given["fixed"] = torch.ones(7, 8, dtype=torch.int64)  # absent words ask for nothing
        given["fixed"][real] = options["fixed"].flatten()
    masks = {"row_mask": rows.expand(2, 7), "column_mask": columns.expand(2, 8)}
    z = call(RELAXED[monotone], wide, **given, **masks)
    alone = torch.stack([call(RELAXED[monotone], s, **options) for s in short])
    assert torch.equal(z[:, real].reshape(2, 5, 6), alone)
    assert (z[:, ~real] == 0).all()
    weight = randn(2, 5, 6, seed=5)
    (z[:, real].reshape(2, 5, 6) * weight).sum().backward()
    (alone * weight).sum().backward()
    assert torch.equal(wide.grad[:, real].reshape(2, 5, 6), short.grad)
    assert (wide.grad[:, ~real] == 0).all()
    best = call(DECIDED[monotone], wide, **given, **masks)
    assert torch.equal(best[:, real].reshape(2, 5, 6), call(DECIDED[monotone], short, **options))


@either
def test_full_graph_compilation_dtypes_and_autocast(monotone):
    torch._dynamo.reset()
    fixed = some_fixed(5, 6)

    def layer(s):
        relaxed = call(RELAXED[monotone], s, budget=3, exactly=True, fixed=fixed)
        return relaxed, call(DECIDED[monotone], s, budget=3, exactly=True, fixed=fixed)

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        ours, theirs = (randn(2, 5, 6).to(dtype).requires_grad_() for _ in range(2))
        for a, b in zip(compiled(ours), layer(theirs), strict=True):
            assert a.dtype == dtype
            torch.testing.assert_close(a, b)
        compiled(ours)[0].square().sum().backward()
        layer(theirs)[0].square().sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.isfinite(layer(torch.randn(2, 5, 6))[0]).all()


def test_no_crossing_pairs():
    scores = torch.tensor([[0.0, 2.0], [2.0, 0.0]]) + 1.5 * torch.eye(2)
    assert torch.equal(ops.matching_map(scores), torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    assert torch.equal(ops.monotone_matching_map(scores), torch.eye(2))
    assert ops.monotone_matching_map(-scores.abs()).sum() == 0


def test_fixed_pairs_with_exact_sides():
    fixed = torch.zeros(3, 4, dtype=torch.int8)
    fixed[0, 3], fixed[1, :2] = 1, -1
    z = ops.matching(randn(3, 4), rows="exactly_one", fixed=fixed)
    torch.testing.assert_close(z.sum(1), torch.ones(3, dtype=torch.float64))
    assert z[0, 3] == 1
    fixed[1, 2] = -1
    with pytest.raises(ops.InfeasibleError, match="row 0"):
        ops.matching(randn(3, 4), rows="exactly_one", fixed=fixed)


@pytest.mark.parametrize("op", [ops.matching, ops.matching_map, ops.monotone_matching, ops.monotone_matching_map])
def test_huge_budget_is_no_budget(op):
    scores = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(op(scores, budget=2**70), op(scores))


def test_infeasible_fixed_pairs_raise():
    scores, both = torch.randn(2, 3, 3), torch.zeros(2, 3, 3, dtype=torch.int8)
    both[1, 0, 1] = both[1, 0, 2] = 1
    with pytest.raises(ops.InfeasibleError, match=r"\(0, 1\) and \(0, 2\)") as error:
        ops.matching(scores, fixed=both)
    assert error.value.instance == 1
    cross = torch.zeros(3, 3, dtype=torch.int8)
    cross[0, 1] = cross[1, 0] = 1
    assert ops.matching(scores[0], fixed=cross)[0, 1] == 1
    with pytest.raises(ops.InfeasibleError, match="cross"):
        ops.monotone_matching_map(scores[0], fixed=cross)
    with pytest.raises(ops.InfeasibleError, match="2 pairs"):
        ops.matching(scores[0], fixed=cross, budget=1)
    with pytest.raises(ValueError, match=r"fixed\[0, 1, 0\] is 3"):
        ops.matching(scores, fixed=3 * both.flip(0).mT)
    with pytest.raises(ValueError, match=r"fixed\[0, 1, 0\] is 256"):
        ops.matching(scores, fixed=256 * both.long().flip(0).mT)
    with pytest.raises(ValueError, match=r"fixed .*\(3, 3\)"):
        ops.monotone_matching(scores, fixed=cross)
    with pytest.raises(TypeError, match="bool"):
        ops.matching(scores, fixed=cross.bool().expand(2, 3, 3))
    with pytest.raises(ValueError, match="needs a budget"):
        ops.matching_map(scores, exactly=True)
    with pytest.raises(ValueError, match="shorter"):
        ops.monotone_matching(scores, exactly=True, budget=4)
    with pytest.raises(ValueError, match="exactly_one"):
        ops.matching(scores, exactly=True, budget=2, rows="exactly_one")


def test_convergence_warning():
    scores = randn(1, 9, 9, scale=0.05)
    with pytest.warns(ops.ConvergenceWarning, match="1 of 1"):
        z = ops.monotone_matching(scores, max_iterations=3)
    assert z.sum((1, 2)) <= 9
    near, info = ops.monotone_matching(scores, tolerance=1e-2, return_info=True)
    assert info.converged.all()
    assert (near - ops.monotone_matching(scores)).abs().max() <= 1e-2
