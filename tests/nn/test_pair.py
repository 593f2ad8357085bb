"""The pair model: what reaches the prediction, and by which way."""

import pytest
import torch

from rationalizer.nn import ALIGNERS, PairModel, token_budget

M, N = 7, 5


def build(method="at-most-one", **settings):
    torch.manual_seed(0)
    return PairModel(vocabulary=30, embedding=8, hidden=6, method=method, **settings).double()


def batch(seed=0):
    generator = torch.Generator().manual_seed(seed)
    premise = torch.randint(2, 30, (4, M), generator=generator)
    hypothesis = torch.randint(2, 30, (4, N), generator=generator)
    p_mask = torch.arange(M) < torch.tensor([7, 5, 3, 1])[:, None]
    h_mask = torch.arange(N) < torch.tensor([5, 5, 4, 2])[:, None]
    return premise * p_mask, p_mask, hypothesis * h_mask, h_mask


def states_of(model, premise, p_mask, hypothesis, h_mask):
    encode = lambda tokens, mask: model.encoder(model.embedding(tokens), mask)  # noqa: E731
    return encode(premise, p_mask), p_mask, encode(hypothesis, h_mask), h_mask


@pytest.mark.parametrize("faithful", [True, False])
@pytest.mark.parametrize("method", ALIGNERS)
def test_shapes_and_gradients(method, faithful):
    model = build(method, faithful=faithful, classes=3).train()
    inputs = batch()
    output = model(*inputs, token_budget(2, inputs[1], inputs[3]))
    assert output.outputs.shape == (4, 3)
    assert output.extraction.z.shape == (4, M, N)
    model.head.loss(output.outputs, torch.tensor([0, 1, 2, 0])).mean().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("method", ALIGNERS)
def test_padding_and_the_rest_of_the_batch_change_nothing(method):
    model = build(method).eval()
    premise, p_mask, hypothesis, h_mask = batch()
    budget = token_budget(0.5, p_mask, h_mask)
    together = model(premise, p_mask, hypothesis, h_mask, budget).outputs
    for k in range(4):
        m, n = int(p_mask[k].sum()), int(h_mask[k].sum())
        alone = model(
            premise[k : k + 1, :m],
            p_mask[k : k + 1, :m],
            hypothesis[k : k + 1, :n],
            h_mask[k : k + 1, :n],
            budget[k : k + 1],
        )
        torch.testing.assert_close(alone.outputs[0], together[k])


@pytest.mark.parametrize("method", sorted(set(ALIGNERS) - {"softmax"}))
def test_a_faithful_prediction_does_not_see_the_states_of_unaligned_premise_words(method):
    """Not by a bit: what an unaligned premise word is, the prediction cannot tell. Only its context can: the
    states of aligned words were read with their neighbours, which the next test shows."""
    model = build(method, faithful=True).eval()
    inputs = batch()
    alignment = model(*inputs, token_budget(2, inputs[1], inputs[3])).extraction
    states = states_of(model, *inputs)
    expected = model.predict_from(alignment, *states)
    unaligned = (alignment.columns == 0).all(-1)
    assert unaligned.any()
    disturbed = torch.where(unaligned[..., None], torch.full_like(states[0], 1e6), states[0])
    assert torch.equal(model.predict_from(alignment, disturbed, *states[1:]), expected)
    changed = torch.where(unaligned[..., None], states[0], states[0] + 1)
    assert not torch.allclose(model.predict_from(alignment, changed, *states[1:])[0], expected[0])
    free = build(method, faithful=False).eval()
    states = states_of(free, *inputs)
    seen = free.predict_from(alignment, *states)
    disturbed = torch.where(unaligned[..., None], states[0] + 1, states[0])
    assert not torch.allclose(free.predict_from(alignment, disturbed, *states[1:]), seen)


def test_what_an_unaligned_word_changes_comes_through_its_neighbours_states_alone():
    """Replace an unaligned premise word and keep the alignment: the prediction moves exactly as far as the aligned
    words' states do, and not at all where the encoder has no context."""
    model = build("budget", faithful=True).eval()
    premise, p_mask, hypothesis, h_mask = batch()
    alignment = model(premise, p_mask, hypothesis, h_mask, token_budget(1, p_mask, h_mask)).extraction
    unaligned = (alignment.z == 0).all(-1) & p_mask
    other = torch.where(unaligned, (premise + 7) % 28 + 2, premise)
    before, after = (states_of(model, tokens, p_mask, hypothesis, h_mask) for tokens in (premise, other))
    moved = model.predict_from(alignment, *after)
    assert not torch.allclose(moved, model.predict_from(alignment, *before))  # context, honestly
    mixed = torch.where(unaligned[..., None], before[0], after[0])
    torch.testing.assert_close(model.predict_from(alignment, mixed, *after[1:]), moved, rtol=0, atol=0)

    class NoContext(torch.nn.Module):
        size_out = 12

        def forward(self, vectors, mask):
            return torch.cat([vectors, vectors[..., :4]], dim=-1) * mask[..., None]

    model.encoder = NoContext()
    before, after = (states_of(model, tokens, p_mask, hypothesis, h_mask) for tokens in (premise, other))
    assert torch.equal(model.predict_from(alignment, *after), model.predict_from(alignment, *before))


def test_without_any_alignment_a_faithful_prediction_knows_only_the_premises_length():
    model = build("at-most-one", faithful=True).eval()
    premise, p_mask, hypothesis, h_mask = batch()
    states = states_of(model, premise, p_mask, hypothesis, h_mask)
    nothing = torch.zeros(4, M, N, dtype=torch.float64)
    empty = model(premise, p_mask, hypothesis, h_mask, token_budget(1, p_mask, h_mask)).extraction
    empty = empty._replace(rows=nothing, columns=nothing)
    others = states_of(model, premise.flip(0) * p_mask, p_mask, hypothesis, h_mask)
    assert torch.equal(model.predict_from(empty, *states), model.predict_from(empty, *others))


def test_regression_head():
    model = build(classes=0, target={"sigmoid": True}).eval()
    inputs = batch()
    outputs = model(*inputs, token_budget(2, inputs[1], inputs[3])).outputs
    assert outputs.shape == (4,)
    assert ((outputs > 0) & (outputs < 1)).all()


def test_sizes_of_the_paper():
    """1.7 and 1.8 million trained parameters with 300-dimensional vectors; ours has a few more in the faithful
    model, whose hypothesis side also sees difference and product."""
    sizes = {}
    for faithful in (True, False):
        model = PairModel(vocabulary=10, embedding=300, frozen=True, faithful=faithful)
        sizes[faithful] = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert round(sizes[False] / 1e6, 1) == 1.8
    assert sizes[True] - sizes[False] == 400 * 200 + 200


@pytest.mark.parametrize(("budget", "expected"), [(4, [4, 4, 3, 1]), (0.5, [2, 2, 2, 1]), (1.0, [5, 5, 3, 1])])
def test_a_share_is_one_of_the_shorter_text(budget, expected):
    _, p_mask, _, h_mask = batch()
    assert token_budget(budget, p_mask, h_mask).tolist() == expected
