"""The pair model: which words affect the prediction."""

from dataclasses import replace

import pytest
import torch

from rationalizer.nn import ALIGNERS, PairModel, VectorEncoder
from rationalizer.nn.encoders.vector_bilstm import VectorOptions
from rationalizer.text import Budget, Vocabulary, WordVectors
from tests.nn.tiny_models import pair_model, text

M, N = 7, 5
PREMISES, HYPOTHESES = (7, 5, 3, 1), (5, 5, 4, 2)


def build(method="at-most-one", **settings):
    return pair_model(method, **settings)


def examples(lengths, seed, with_punctuation=False):
    return [text(length, 1000 * seed + k, with_punctuation) for k, length in enumerate(lengths)]


def batch(model, seed=0, with_punctuation=False):
    """Return premises and hypotheses of random words."""
    return tuple(
        model.encoder.collate(examples(lengths, seed + 50 * side, with_punctuation))
        for side, lengths in enumerate((PREMISES, HYPOTHESES))
    )


def states_of(model, premise, hypothesis):
    return model.encoder.states(premise), premise.mask, model.encoder.states(hypothesis), hypothesis.mask


def with_others(words, other, where):
    """Return the words with other words where the mask is set."""
    return replace(words, seen=torch.where(where, other.seen, words.seen))


@pytest.mark.parametrize("settings", [{}, {"faithful": False}, {"premise_context": "whole"}])
@pytest.mark.parametrize("method", ALIGNERS)
def test_shapes_and_gradients(method, settings):
    model = build(method, **settings, classes=3).train()
    output = model(*batch(model), budget=Budget.count(2))
    assert output.outputs.shape == (4, 3)
    assert output.z.shape == (4, M, N)
    model.head.loss(output.outputs, torch.tensor([0, 1, 2, 0])).mean().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("with_punctuation", [True, False])
@pytest.mark.parametrize("method", ALIGNERS)
def test_padding_and_other_pairs_have_no_effect(method, with_punctuation):
    model = build(method).eval()
    together = model(*batch(model, with_punctuation=with_punctuation), budget=Budget.share(0.5)).outputs
    premises, hypotheses = examples(PREMISES, 0, with_punctuation), examples(HYPOTHESES, 50, with_punctuation)
    for k in range(4):
        sides = (model.encoder.collate([premises[k]]), model.encoder.collate([hypotheses[k]]))
        torch.testing.assert_close(model(*sides, budget=Budget.share(0.5)).outputs[0], together[k])


@pytest.mark.parametrize("method", ALIGNERS)
def test_punctuation_is_never_aligned(method):
    model = build(method).eval()
    premise, hypothesis = batch(model, with_punctuation=True)
    z = model(premise, hypothesis, budget=Budget.count(3)).z
    assert (premise.mask & ~premise.counted).any()
    assert not z[~premise.counted].any()
    assert not z.mT[~hypothesis.counted].any()
    counting = build(method, punctuation="count").eval()
    both = batch(counting, with_punctuation=True)
    assert both[0].counted.equal(both[0].mask)


@pytest.mark.parametrize("method", sorted(set(ALIGNERS) - {"softmax"}))
def test_faithful_prediction_ignores_unaligned_premise_words(method):
    """The prediction is equal bit for bit if states of unaligned premise words change.

    An unaligned word still affects the states of its aligned neighbours; see the next test.
    """
    model = build(method, faithful=True).eval()
    inputs = batch(model)
    alignment = model(*inputs, budget=Budget.count(2)).selection
    states = states_of(model, *inputs)
    expected = model.predict_from_states(alignment, *states)
    unaligned = (alignment.columns == 0).all(-1)
    assert unaligned.any()
    disturbed = torch.where(unaligned[..., None], torch.full_like(states[0], 1e6), states[0])
    assert torch.equal(model.predict_from_states(alignment, disturbed, *states[1:]), expected)
    changed = torch.where(unaligned[..., None], states[0], states[0] + 1)
    assert not torch.allclose(model.predict_from_states(alignment, changed, *states[1:])[0], expected[0])
    free = build(method, faithful=False).eval()
    states = states_of(free, *inputs)
    seen = free.predict_from_states(alignment, *states)
    disturbed = torch.where(unaligned[..., None], states[0] + 1, states[0])
    assert not torch.allclose(free.predict_from_states(alignment, disturbed, *states[1:]), seen)


def test_unaligned_word_acts_only_through_neighbours_states():
    """Replace an unaligned premise word and keep the alignment.

    The prediction changes only through the states of aligned words, and not at all if the encoder has no context.
    """
    model = build("budget", faithful=True).eval()
    premise, hypothesis = batch(model)
    alignment = model(premise, hypothesis, budget=Budget.count(1)).selection
    unaligned = (alignment.z == 0).all(-1) & premise.mask
    other = with_others(premise, batch(model, seed=7)[0], unaligned)
    before, after = (states_of(model, words, hypothesis) for words in (premise, other))
    moved = model.predict_from_states(alignment, *after)
    assert not torch.allclose(moved, model.predict_from_states(alignment, *before))  # an effect of the context
    mixed = torch.where(unaligned[..., None], before[0], after[0])
    torch.testing.assert_close(model.predict_from_states(alignment, mixed, *after[1:]), moved, rtol=0, atol=0)

    class NoContext(torch.nn.Module):
        size_out = 12

        def forward(self, vectors, mask):
            return torch.cat([vectors, vectors[..., :2]], dim=-1) * mask[..., None]

    model.encoder.generator = NoContext()
    before, after = (states_of(model, words, hypothesis) for words in (premise, other))
    assert torch.equal(model.predict_from_states(alignment, *after), model.predict_from_states(alignment, *before))


@pytest.mark.parametrize("method", sorted(set(ALIGNERS) - {"softmax", "gumbel"}))  # which align every word
def test_aligned_context_hides_all_other_premise_words(method):
    """Other words in place of the unaligned ones change no bit; without them the prediction is the same."""
    model = build(method).eval()
    assert model.ignores_gaps
    assert not build(method, premise_context="whole").ignores_gaps
    premise, hypothesis = batch(model)
    output = model(premise, hypothesis, budget=Budget.count(2))
    aligned = (output.z != 0).any(-1)
    assert (premise.mask & ~aligned).any()
    other = with_others(premise, batch(model, seed=7)[0], ~aligned)
    expected = model.predict_from(output.z, premise, hypothesis)
    torch.testing.assert_close(output.outputs, expected)
    assert torch.equal(model.predict_from(output.z, other, hypothesis), expected)
    for k in range(4):
        shorter = premise.take(torch.tensor([k])).only(aligned[k : k + 1])
        z = output.z[k : k + 1, aligned[k]] if aligned[k].any() else output.z[k : k + 1, :1]
        alone = model.predict_from(z, shorter, hypothesis.take(torch.tensor([k])))
        torch.testing.assert_close(alone[0], expected[k])


def test_faithful_prediction_without_alignment_depends_only_on_length():
    model = build("at-most-one", faithful=True).eval()
    premise, hypothesis = batch(model)
    states = states_of(model, premise, hypothesis)
    nothing = torch.zeros(4, M, N, dtype=torch.float64)
    empty = model(premise, hypothesis, budget=Budget.count(1)).selection._replace(rows=nothing, columns=nothing)
    others = states_of(model, with_others(premise, batch(model, seed=7)[0], premise.mask), hypothesis)
    assert torch.equal(model.predict_from_states(empty, *states), model.predict_from_states(empty, *others))


def test_regression_head():
    model = build(classes=0, target={"sigmoid": True}).eval()
    outputs = model(*batch(model), budget=Budget.count(2)).outputs
    assert outputs.shape == (4,)
    assert ((outputs > 0) & (outputs < 1)).all()


def test_sizes_of_the_paper():
    """1.7 and 1.8 million trained parameters with 300-dimensional vectors; ours has a few more in the faithful
    model, whose hypothesis side also sees difference and product."""
    sizes = {}
    for faithful in (True, False):
        vectors = WordVectors.from_floats(["a"], torch.randn(1, 300).numpy())
        options = VectorOptions(hidden=200, tuned=False, word_scores=False)
        encoder = VectorEncoder(Vocabulary(["a"]), vectors, options, predicts=False)
        model = PairModel(encoder, faithful=faithful)
        sizes[faithful] = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert round(sizes[False] / 1e6, 1) == 1.8
    assert sizes[True] - sizes[False] == 400 * 200 + 200
