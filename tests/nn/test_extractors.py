"""Extractors: the contract of all methods, and of groups of them."""

import itertools

import pytest
import torch

from rationalizer.nn import EXTRACTORS, Extraction
from rationalizer.nn.extractors.base import neighbours
from rationalizer.nn.extractors.structured_selection import StructuredExtractor
from rationalizer.text import Budget
from tests.nn.extractor_inputs import SIZE, batch, build

METHODS = sorted(EXTRACTORS)
STRUCTURED = [name for name in METHODS if issubclass(EXTRACTORS[name], StructuredExtractor)]
STOCHASTIC = [name for name in METHODS if "decoding" in EXTRACTORS[name].options()]
FOLLOWING = [name for name in METHODS if build(name).follows_budget]


def test_built_in_methods_are_registered():
    assert {"spectra", "pair-budget"} <= set(STRUCTURED)
    assert {"sfe", "sfe-baseline", "gumbel", "hardkuma"} <= set(STOCHASTIC)
    assert {"sparsemax", "fusedmax", "full-text"} <= set(METHODS) - set(STRUCTURED) - set(STOCHASTIC)
    assert {"spectra", "pair-budget", "sfe", "sfe-baseline", "gumbel"} <= set(FOLLOWING)
    assert not {"hardkuma", "sparsemax", "fusedmax", "full-text"} & set(FOLLOWING)
    assert build("hardkuma", decoding="top-k").follows_budget


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("training", [True, False])
def test_selection_is_a_weight_per_token_and_zero_on_padding(method, training):
    states, mask = batch()
    extractor = build(method)
    select = extractor if training else extractor.decode
    z, scores, *_ = select(states, mask, Budget.parse(0.3).word_limit(mask))
    assert z.shape == scores.shape == mask.shape
    assert z.dtype == torch.float32
    assert z.min() >= 0
    assert z.max() <= 1
    assert not z[~mask].any()
    assert z[mask].any()


@pytest.mark.parametrize("method", METHODS)
def test_decoding_is_the_same_alone_and_in_a_batch(method):
    states, mask = batch()
    extractor = build(method)
    together = extractor.decode(states, mask, Budget.parse(0.3).word_limit(mask)).z
    for row, length in enumerate(mask.sum(1).tolist()):
        one, real = states[row : row + 1, :length], mask[row : row + 1, :length]
        alone = extractor.decode(one, real, Budget.parse(0.3).word_limit(real)).z
        torch.testing.assert_close(together[row, :length], alone[0])


@pytest.mark.parametrize("method", FOLLOWING)
def test_methods_that_follow_a_budget_use_all_of_it(method):
    states, mask = batch((20, 11, 5, 1))
    extractor = build(method)
    for budget in (0.1, 0.5, 1.0, 3):
        tokens = Budget.parse(budget).word_limit(mask)
        z = extractor.decode(states, mask, tokens).z
        assert set(z.unique().tolist()) <= {0.0, 1.0}
        assert z.sum(1).tolist() == tokens.tolist()


@pytest.mark.parametrize("method", STRUCTURED)
def test_tokens_with_negative_scores_are_not_selected_to_fill_the_budget(method):
    states, mask = batch((20, 11, 5, 1), spread=2.0)
    z, scores, *_ = build(method, transition=0.0).decode(states, mask, Budget.parse(1.0).word_limit(mask))
    assert torch.equal(z != 0, (scores > 0) & mask)
    assert (scores[mask] < 0).any()


@pytest.mark.parametrize("method", STOCHASTIC)
def test_top_k_and_contiguous_decoding(method):
    states, mask = batch((15, 8))
    tokens = Budget.parse(0.3).word_limit(mask)
    best = build(method, decoding="top-k").decode(states, mask, tokens)
    span = build(method, decoding="contiguous").decode(states, mask, tokens)
    for row, k in enumerate(tokens.tolist()):
        scores = best.scores[row][mask[row]]
        assert set(scores.topk(k).indices.tolist()) == set(best.z[row].nonzero().flatten().tolist())
        chosen = span.z[row].nonzero().flatten().tolist()
        assert chosen == list(range(chosen[0], chosen[0] + k))
        windows = scores.double().unfold(0, k, 1).sum(1)
        assert chosen[0] == int(windows.argmax())


@pytest.mark.parametrize("method", STOCHASTIC)
def test_unknown_decoding_is_an_error(method):
    with pytest.raises(ValueError, match="decoding must be one of"):
        build(method, decoding="greedy")


@pytest.mark.parametrize("method", [name for name in METHODS if EXTRACTORS[name].uses_generator])
def test_generator_gets_a_gradient(method):
    states, mask = batch()
    states.requires_grad_()
    extractor = build(method)
    budget = Budget.parse(0.3).word_limit(mask)
    extraction = extractor(states, mask, budget)
    # The task loss depends on which tokens are selected.
    task_loss = (extraction.z * torch.linspace(1, 2, mask.shape[1])).sum(1)
    extractor.loss(extraction, task_loss, mask, budget).loss.backward()
    assert all(p.grad is not None for p in extractor.parameters())
    assert states.grad[mask].any()
    assert not states.grad[~mask].any()


@pytest.mark.parametrize("method", METHODS)
def test_forward_loss_and_decode_do_not_change_the_extractor(method):
    states, mask = batch()
    extractor = build(method)
    before = {name: value.clone() for name, value in extractor.state_dict().items()}
    budget = Budget.parse(0.3).word_limit(mask)
    extraction = extractor(states, mask, budget)
    extractor.loss(extraction, extraction.z.sum(1), mask, budget)
    extractor.decode(states, mask, budget)
    for name, value in extractor.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_attention_is_a_distribution():
    states, mask = batch()
    for method in ("sparsemax", "fusedmax"):
        z = build(method)(states, mask, Budget.parse(0.3).word_limit(mask)).z
        torch.testing.assert_close(z.sum(1), torch.ones(3))


def test_structured_training_respects_the_budget():
    states, mask = batch((20, 11, 5, 1))
    for method in STRUCTURED:
        for budget in (0.1, 0.3, 2):
            tokens = Budget.parse(budget).word_limit(mask)
            assert (build(method)(states, mask, tokens).z.sum(1) <= tokens + 1e-5).all()


def test_strong_transition_makes_one_run():
    states, mask = batch((20, 11))
    tokens = Budget.parse(4).word_limit(mask)
    z = build("spectra", transition=100.0).decode(states, mask, tokens).z
    assert (z.diff(dim=1, prepend=torch.zeros(2, 1)) > 0).sum(1).tolist() == [1, 1]


def test_score_function_gradient_is_unbiased():
    """Against the exact gradient of E[cost], by enumeration of all selections of a text of 3 tokens."""
    extractor = build("sfe", sparsity=0.1, fused=0.3)
    states, mask = batch((3,))
    value = torch.tensor([0.5, -1.0, 2.0])

    def cost_of(z):
        return ((z * value).sum(-1) - 0.3) ** 2

    scores = extractor.scorer(states).squeeze(-1)[0]
    expected = torch.zeros(())
    for bits in itertools.product([0.0, 1.0], repeat=3):
        z = torch.tensor(bits)
        probability = torch.where(z == 1, scores.sigmoid(), (-scores).sigmoid()).prod()
        expected = expected + probability * (cost_of(z) + extractor.penalty(z[None], mask)[0])
    exact = torch.autograd.grad(expected, extractor.scorer.weight)[0]

    copies = 200_000
    many, real = states.expand(copies, -1, -1), mask.expand(copies, -1)
    torch.manual_seed(0)
    extraction = extractor(many, real, Budget.parse(1).word_limit(real))
    loss = extractor.loss(extraction, cost_of(extraction.z), real, Budget.parse(1).word_limit(real)).loss
    estimate = torch.autograd.grad(loss, extractor.scorer.weight)[0]
    assert torch.linalg.norm(estimate - exact) < 0.02 * torch.linalg.norm(exact)


def test_baseline_is_the_average_of_past_costs_and_reduces_variance():
    extractor = build("sfe-baseline", sparsity=0.0, fused=0.0, momentum=0.9)
    states, mask = batch()
    budget = Budget.parse(0.3).word_limit(mask)
    extraction = extractor(states, mask, budget)
    costs = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 4.0, 4.0])]
    for cost in costs:
        state = extractor.loss(extraction, cost, mask, budget).state
        for name, value in state.items():
            setattr(extractor, name, value)
    assert extractor.average.item() == pytest.approx(3.0)  # (2 + 4)/2: both batches count the same
    for _ in range(200):
        state = extractor.loss(extraction, torch.full((3,), 7.0), mask, budget).state
        for name, value in state.items():
            setattr(extractor, name, value)
    assert extractor.average.item() == pytest.approx(7.0, abs=1e-4)
    # Where every cost equals the baseline there is nothing to learn from.
    loss = extractor.loss(extraction, torch.full((3,), 7.0), mask, budget).loss
    gradient = torch.autograd.grad(loss, extractor.scorer.weight)[0]
    assert gradient.abs().max() < 1e-3


def test_gumbel_is_a_relaxed_bernoulli():
    extractor = build("gumbel", temperature=1e-3)
    states, mask = batch((6,))
    copies = 20_000
    many, real = states.expand(copies, -1, -1), mask.expand(copies, -1)
    torch.manual_seed(0)
    z, scores, *_ = extractor(many, real, Budget.parse(1).word_limit(real))
    torch.testing.assert_close(z.mean(0), scores[0].sigmoid(), atol=0.02, rtol=0)
    assert ((z < 0.01) | (z > 0.99)).float().mean() > 0.99


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("training", [True, False])
def test_words_that_cannot_be_selected_count_as_absent(method, training):
    """Masked words between other words: the other words get the same result as without them."""
    states, mask = batch((9, 6))
    gaps = mask.clone()
    gaps[0, [1, 2, 5, 8]] = False
    gaps[1, 0] = False
    extractor = build(method)
    select = extractor if training else extractor.decode
    torch.manual_seed(2)
    z, *_ = select(states, gaps, Budget.share(0.4).word_limit(gaps))
    assert not z[~gaps].any()
    if training and method in ("sfe", "sfe-baseline", "gumbel", "hardkuma"):
        return  # drawn
    for row in range(2):
        closed = states[row : row + 1, gaps[row]]
        real = torch.ones(closed.shape[:2], dtype=torch.bool)
        alone, *_ = select(closed, real, Budget.share(0.4).word_limit(real))
        torch.testing.assert_close(z[row, gaps[row]], alone[0])


def test_neighbours_skip_masked_words():
    values = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    left, right, real = neighbours(values, torch.tensor([[True, False, True, True]]))
    assert [(a, b) for a, b, ok in zip(left[0].tolist(), right[0].tolist(), real[0].tolist(), strict=True) if ok] == [
        (1.0, 3.0),
        (3.0, 4.0),
    ]


@pytest.mark.parametrize("method", STRUCTURED)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_initialize_sets_the_spread_of_scores(method, scale):
    states, mask = batch((9, 40, 1, 25), spread=scale)
    states = states + 3 * scale  # a constant added to all states does not change the spread
    extractor = build(method, start_spread=1.5, temperature=0.2)
    extractor.initialize(states, mask)
    z, scores, *_ = extractor(states, mask, Budget.parse(0.3).word_limit(mask))
    within = torch.cat([row[real] - row[real].mean() for row, real in zip(scores, mask, strict=True)])
    assert within.square().mean().sqrt().item() == pytest.approx(1.5 * 0.2, rel=1e-4)
    assert (scores[mask] > 0).float().mean() > 0.95
    torch.testing.assert_close(z.sum(-1), Budget.parse(0.3).word_limit(mask).float())  # so the budget binds


@pytest.mark.parametrize("name", ["hardkuma", "sfe-baseline"])
def test_batch_parts_give_state_and_gradient_of_the_whole(name):
    """Parts of 5 and 2 texts, weighted by their shares, give the result of the batch of 7."""
    torch.manual_seed(0)
    states, losses = torch.randn(7, 9, SIZE), torch.rand(7)
    mask, budget = torch.arange(9) < torch.randint(2, 10, (7, 1)), torch.full((7,), 2)
    method = build(name)
    z = method(states, mask, budget).z.detach()

    def objective(rows, over_parts=None):
        scores = method(states[rows], mask[rows], budget[rows]).scores
        given = (Extraction(z[rows], scores), losses[rows], mask[rows], budget[rows])
        if over_parts is None:
            return method.loss(*given)
        with method.synchronized(over_parts):
            return method.loss(*given)

    def gradients(loss):
        return torch.cat([each.flatten() for each in torch.autograd.grad(loss, list(method.parameters()))])

    whole = objective(slice(0, 7))
    parts, means = (slice(0, 5), slice(5, 7)), []
    for rows in parts:
        objective(rows, lambda mean: (means.append(mean), mean)[1])
    over_all = 5 / 7 * means[0] + 2 / 7 * means[1]
    found = [objective(rows, lambda _: over_all) for rows in parts]
    for each in found:
        for key, value in whole.state.items():
            torch.testing.assert_close(each.state[key], value)
    torch.testing.assert_close(
        5 / 7 * gradients(found[0].loss) + 2 / 7 * gradients(found[1].loss), gradients(whole.loss)
    )
