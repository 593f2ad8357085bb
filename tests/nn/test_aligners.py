"""Aligners: the contract of all methods, in training and in decoding."""

import pytest
import torch

from rationalizer import ops
from rationalizer.metrics import violations
from rationalizer.nn import ALIGNERS
from rationalizer.nn.aligners.base import MatchingAligner
from rationalizer.text import Budget

METHODS = list(ALIGNERS)
MATCHINGS = [name for name in METHODS if issubclass(ALIGNERS[name], MatchingAligner)]
SHAPES = [(5, 3), (3, 5), (4, 4), (1, 4), (6, 1)]


@pytest.fixture
def pairs():
    """Scores of pairs with every kind of length, padded to 6 × 5."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(len(SHAPES), 6, 5, generator=generator, dtype=torch.float64)
    rows = torch.stack([torch.arange(6) < m for m, _ in SHAPES])
    columns = torch.stack([torch.arange(5) < n for _, n in SHAPES])
    return scores, rows, columns, Budget.parse(2).word_limit(rows, columns)


def test_built_in_methods_are_registered():
    assert {"xor-at-most-one", "at-most-one", "budget", "ot-relaxed", "ot-exact-k"} <= set(MATCHINGS)
    assert {"gumbel", "softmax"} <= set(METHODS) - set(MATCHINGS)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("use", ["forward", "decode"])
def test_padding_is_not_aligned_and_has_no_effect(method, use, pairs):
    scores, rows, columns, budget = pairs
    aligner = ALIGNERS[method]()
    torch.manual_seed(0)
    found = getattr(aligner, use)(scores, rows, columns, budget)
    real = rows[:, :, None] & columns[:, None, :]
    assert (found.z[~real] == 0).all()
    assert ((found.z >= 0) & (found.z <= 1 + 1e-9)).all()
    if method == "gumbel" and use == "forward":
        return  # the random noise depends on the padded shape
    for k, (m, n) in enumerate(SHAPES):
        alone = getattr(aligner, use)(
            scores[k : k + 1, :m, :n], rows[k : k + 1, :m], columns[k : k + 1, :n], budget[k : k + 1]
        )
        torch.testing.assert_close(alone.rows[0], found.rows[k, :m, :n])
        torch.testing.assert_close(alone.columns[0], found.columns[k, :m, :n])


@pytest.mark.parametrize("method", METHODS)
def test_decoded_alignments_satisfy_their_constraints(method, pairs):
    scores, rows, columns, budget = pairs
    aligner = ALIGNERS[method]()
    found = aligner.decode(scores, rows, columns, budget)
    promised = [aligner.guarantees(m, n, int(b)) for (m, n), b in zip(SHAPES, budget, strict=True)]
    if method not in MATCHINGS:
        assert promised == [None] * len(SHAPES)
        return
    assert set(found.z.unique().tolist()) <= {0.0, 1.0}
    for z, (m, n), kept in zip(found.z, SHAPES, promised, strict=True):
        assert violations(z[:m, :n].numpy(), **kept).worst == 0


def test_complete_matching_aligns_the_shorter_text(pairs):
    scores, rows, columns, budget = pairs
    for use in ("forward", "decode"):
        z = getattr(ALIGNERS["xor-at-most-one"](), use)(scores, rows, columns, budget).z
        for one, (m, n) in zip(z, SHAPES, strict=True):
            short, long = (one.sum(1)[:m], one.sum(0)[:n]) if m <= n else (one.sum(0)[:n], one.sum(1)[:m])
            torch.testing.assert_close(short, torch.ones_like(short))
            assert (long <= 1 + 1e-9).all()


def test_exact_k_aligns_k_pairs_even_where_all_scores_are_negative(pairs):
    scores, rows, columns, budget = pairs
    found = ALIGNERS["ot-exact-k"]().decode(scores - 100, rows, columns, budget)
    assert found.z.sum((1, 2)).tolist() == budget.tolist()
    promised = ALIGNERS["ot-exact-k"]().guarantees(5, 3, 2)
    assert violations(torch.zeros(5, 3).numpy(), **promised).worst == 2  # too few links are a violation as well
    relaxed = ALIGNERS["ot-relaxed"]().decode(scores - 100, rows, columns, budget)
    assert relaxed.z.sum() == 0


def test_transport_decodes_to_its_limit_without_entropy(pairs):
    scores, rows, columns, budget = pairs
    for method in ("ot-relaxed", "ot-exact-k"):
        sharp = ALIGNERS[method](temperature=0.002)
        relaxed = sharp(scores, rows, columns, budget).z
        torch.testing.assert_close(relaxed, sharp.decode(scores, rows, columns, budget).z, atol=1e-3, rtol=0)


def test_budget_limits_the_sum_in_training_too(pairs):
    scores, rows, columns, budget = pairs
    z = ALIGNERS["budget"](temperature=0.5)(scores + 3, rows, columns, budget).z
    torch.testing.assert_close(z.sum((1, 2)), budget.double())


@pytest.mark.parametrize("method", MATCHINGS)
def test_both_directions_share_one_matrix(method, pairs):
    found = ALIGNERS[method]()(*pairs)
    assert found.rows is found.columns


def test_softmax_is_a_distribution_in_each_direction(pairs):
    scores, rows, columns, budget = pairs
    found = ALIGNERS["softmax"]()(scores, rows, columns, budget)
    torch.testing.assert_close(found.rows.sum(-1), rows.double())
    torch.testing.assert_close(found.columns.sum(-2), columns.double())


@pytest.mark.parametrize("method", METHODS)
def test_scores_get_a_gradient(method, pairs):
    scores, rows, columns, budget = pairs
    leaf = scores.clone().requires_grad_()
    found = ALIGNERS[method](temperature=2.0)(leaf, rows, columns, budget)
    weights = torch.randn(found.z.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (found.z * weights).sum().backward()
    assert leaf.grad.abs().sum() > 0
    assert (leaf.grad[~(rows[:, :, None] & columns[:, None, :])] == 0).all()


def test_map_is_the_limit_of_the_relaxation(pairs):
    scores, rows, columns, budget = pairs
    for method in ("at-most-one", "budget", "xor-at-most-one"):
        sharp = ALIGNERS[method](temperature=1e-3)
        torch.testing.assert_close(sharp(*pairs).z, sharp.decode(*pairs).z, atol=1e-6, rtol=0)
    expected = ops.matching_map(scores, row_mask=rows, column_mask=columns)
    assert torch.equal(ALIGNERS["at-most-one"]().decode(scores, rows, columns, budget).z, expected)
