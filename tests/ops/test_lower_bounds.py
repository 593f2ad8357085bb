"""At least, as well as at most: lower bounds on the number of selected words and pairs."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rationalizer import ops
from tests.ops import oracles
from tests.ops.layers import chains, row
from tests.ops.test_oracle import assert_close, assert_jacobian, tied

CASES = settings(max_examples=300, deadline=None)
share = st.floats(0, 1)


def lower(limit: int, part: float) -> int:
    return round(part * limit)


@CASES
@given(chains(), share)
def test_budget(case, part):
    s, _, limit = case
    least = lower(limit, part)
    z = ops.budget(row(s), limit, at_least=least)
    assert_close(z, oracles.budget(s, limit, least))
    assert z.sum() >= min(least, len(s)) - 1e-9


@CASES
@given(chains(), share)
def test_pair_budget(case, part):
    s, r, limit = case
    least = lower(limit, part)
    z = ops.pair_budget(row(s), limit, at_least=least, transition=row(r))
    assert_close(z, oracles.pair_budget(s, r, limit, least))


@CASES
@given(st.one_of(chains(longest=7), chains(longest=7, sign="±"), tied(), tied(sign="±")), share)
def test_sequence_budget(case, part):
    s, r, limit = case
    least = lower(limit, part)
    z, info = ops.sequence_budget(row(s), limit, at_least=least, transition=row(r), return_info=True)
    assert info.converged.all()
    assert_close(z, oracles.sequence_budget(s, r, limit, least))


@CASES
@given(chains(longest=9, sign="±"), share)
def test_sequence_budget_map(case, part):
    s, r, limit = case
    least = lower(limit, part)
    y = ops.sequence_budget_map(row(s), limit, at_least=least, transition=row(r))[0].numpy()
    assert min(least, len(s)) <= y.sum() <= limit
    best = oracles.sequence_scores(s, r, oracles.sequence_budget_map(s, r, limit, least)[None])[0]
    assert oracles.sequence_scores(s, r, y[None])[0] == pytest.approx(best, rel=1e-12, abs=1e-12)


@CASES
@given(
    chains(longest=7, sign="±"),
    share,
    st.integers(1, 3),
    st.lists(st.sampled_from([0, 0, 1, -1]), min_size=7, max_size=7),
)
def test_spans(case, part, most, fixed):
    s, r, limit = case
    least = lower(limit, part)
    words = np.array(fixed[: len(s)])
    for constraints in ({"spans": most}, {"fixed": words}, {"spans": most, "fixed": words}, {"longest": most}):
        arguments = {name: row(v) if name == "fixed" else v for name, v in constraints.items()}
        arguments |= {"at_least": least, "transition": row(r)}
        allowed = oracles.allowed(len(s), limit, least=least, **constraints)
        if not len(allowed):
            for op in (ops.spans, ops.spans_map):
                with pytest.raises(ops.InfeasibleError):
                    op(row(s), limit, **arguments)
            continue
        z, info = ops.spans(row(s), limit, **arguments, return_info=True)
        assert info.converged.all()
        assert_close(z, oracles.spans(s, r, limit, least=least, **constraints))
        y = ops.spans_map(row(s), limit, **arguments)[0].numpy()
        assert (allowed == y).all(1).any()
        best = oracles.sequence_scores(s, r, allowed).max()
        assert oracles.sequence_scores(s, r, y[None])[0] == pytest.approx(best, rel=1e-12, abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 4), st.integers(0, 4), share)
def test_matching(seed, m, n, limit, part):
    rng = np.random.default_rng(seed)
    s = rng.choice([0.3, 3.0, 30.0]) * rng.normal(size=(m, n)) - rng.choice([0.0, 3.0])
    if seed % 2:
        s = np.round(s)
    least = lower(limit, part)
    z, info = ops.matching(row(s), limit, at_least=least, return_info=True)
    assert info.converged.all()
    assert_close(z, oracles.alignment(s, limit, least=least))
    y = ops.matching_map(row(s), limit, at_least=least)[0].numpy()
    assert min(least, m, n) <= y.sum() <= limit
    assert (y * s).sum() == pytest.approx(oracles.alignment_map(s, limit, least=least), abs=1e-9)


def test_matching_with_fixed_pairs():
    scores = -torch.rand(1, 3, 3, dtype=torch.float64)
    fixed = torch.tensor([[[1, 0, 0], [0, 0, -1], [0, -1, -1]]])
    expected = oracles.alignment(scores[0].numpy(), 3, least=2, fixed=fixed[0].numpy())
    assert_close(ops.matching(scores, 3, at_least=2, fixed=fixed), expected)
    assert ops.matching_map(scores, 3, at_least=2, fixed=fixed).sum() == 2
    for op in (ops.matching, ops.matching_map):
        with pytest.raises(ops.InfeasibleError) as error:  # 1 must be aligned, and only 1 more pair is possible
            op(scores, 3, at_least=3, fixed=fixed)
        assert error.value.instance == 0


def test_matching_gradient():
    scores = torch.randn(6, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 1
    bounds = torch.tensor([0, 1, 2, 3, 4, 9])
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda s: ops.matching(s, 9, at_least=bounds, temperature=0.5), scores)
    assert torch.autograd.gradcheck(lambda s: ops.matching(s, 3, at_least=3, temperature=0.5), scores)


@CASES
@given(st.one_of(tied(), tied(sign="±")), share)
def test_gradients_at_ties(case, part):
    s, r, limit = case
    least, edges = lower(limit, part), torch.from_numpy(r)
    assert_jacobian(lambda x: ops.budget(x, limit, at_least=least), s)
    if (r >= 0).all():
        assert_jacobian(lambda x: ops.pair_budget(x, limit, at_least=least, transition=edges), s)
    assert_jacobian(lambda x: ops.sequence_budget(x, limit, at_least=least, transition=edges), s)


def test_gradient_between_the_bounds():
    """Two plateaus of four words, and 3 to 5 words: exactly one plateau is selected, so their heights add up to 1.

    The closed form is the same z with a larger face.
    """
    scores = torch.tensor([0.5] * 4 + [-9.0] + [0.5] * 4, dtype=torch.float64)
    edges = torch.full((8,), 40.0, dtype=torch.float64)
    edges[3:5] = 0.0
    scores = scores - torch.tensor([30.0] * 4 + [0.0] + [30.0] * 4)
    z = ops.sequence_budget(scores[None], 5, at_least=3, transition=edges)[0]
    assert torch.allclose(z, torch.tensor([0.5] * 4 + [0.0] + [0.5] * 4, dtype=torch.float64))
    jacobian = torch.autograd.functional.jacobian(
        lambda s: ops.sequence_budget(s[None], 5, at_least=3, transition=edges)[0], scores
    )
    signs = torch.tensor([1.0] * 4 + [0.0] + [-1.0] * 4, dtype=torch.float64)
    torch.testing.assert_close(jacobian, torch.outer(signs, signs) / 8, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n", [64, 640])
@pytest.mark.parametrize("transition", [0.01, 0.3, 3.0])
@pytest.mark.parametrize("shift", [-1.0, 0.0, 1.0])
def test_long_rows(n, transition, shift):
    """Optimal by duality: no sequence within the bounds has a better score at s − z than those in the mixture."""
    scores = 0.3 * torch.randn(6, n, dtype=torch.float64, generator=torch.Generator().manual_seed(n)) + 0.3 * shift
    least, most = n // 10, n // 4
    z, info = ops.sequence_budget(scores, most, at_least=least, transition=transition, return_info=True)
    assert info.converged.all()
    assert (z.sum(-1) >= least - 1e-9).all()
    assert (z.sum(-1) <= most + 1e-9).all()
    relaxed = ops.pair_budget(scores, most, at_least=least, transition=transition)
    closed = info.iterations == 0
    assert torch.equal(z[closed], relaxed[closed])
    best = ops.sequence_budget_map(scores - z, most, at_least=least, transition=transition)
    value = (scores - z).mul(best).sum(-1) + transition * (best[:, 1:] * best[:, :-1]).sum(-1)
    pairs = torch.minimum(z[:, 1:], z[:, :-1]).sum(-1)  # at most: equal in the closed form
    bound = ((scores - z) * z).sum(-1) + transition * pairs
    assert (value <= bound + 1e-7).all()


def test_long_spans():
    """Beyond the budget at which the search with a multiplier is tried."""
    scores = torch.randn(3, 500, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) - 0.5
    least = torch.tensor([110, 140, 150])
    arguments = {"spans": 12, "transition": 0.2, "at_least": least}
    z, info = ops.spans(scores, 150, **arguments, return_info=True)
    assert info.converged.all()
    assert (z.sum(-1) >= least.double() - 1e-9).all()
    assert (z.sum(-1) <= 150 + 1e-9).all()
    best = ops.spans_map(scores - z, 150, **arguments)
    assert (best.sum(-1) >= least).all()


OPS = {
    "budget": ops.budget,
    "pair_budget": ops.pair_budget,
    "sequence_budget": ops.sequence_budget,
    "sequence_budget_map": ops.sequence_budget_map,
    "spans": ops.spans,
    "spans_map": ops.spans_map,
    "2 spans": lambda s, b, **arguments: ops.spans(s, b, spans=2, **arguments),
    "matching": lambda s, b, **arguments: ops.matching(torch.diag_embed(s), b, **arguments).sum(-1),
    "matching_map": lambda s, b, **arguments: ops.matching_map(torch.diag_embed(s), b, **arguments).sum(-1),
}


@pytest.mark.parametrize("op", OPS.values(), ids=OPS.keys())
def test_argument(op):
    scores = -1 - torch.rand(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(op(scores, 3, at_least=0), op(scores, 3))
    assert torch.equal(op(scores, 3, at_least=torch.zeros(4, dtype=torch.long)), op(scores, 3))
    each = op(scores, 9, at_least=torch.tensor([0, 1, 4, 9]))
    torch.testing.assert_close(each.sum(-1), torch.tensor([0.0, 1.0, 4.0, 6.0]).double(), rtol=0, atol=1e-9)
    for i, least in enumerate((0, 1, 4, 9)):
        assert torch.equal(each[i], op(scores[i], 9, at_least=least))
    with pytest.raises(ops.InfeasibleError, match="row 2") as error:
        op(scores, 3, at_least=torch.tensor([1, 3, 4, 0]))
    assert error.value.instance == 2
    with pytest.raises(ValueError, match="at_least"):
        op(scores, 3, at_least=-1)
    with pytest.raises(TypeError, match="at_least"):
        op(scores, 3, at_least=0.5)
    with pytest.raises(ValueError, match="at_least"):
        op(scores, 3, at_least=torch.ones(3, dtype=torch.long))
