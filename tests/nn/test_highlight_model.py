"""The model as a whole: the predictor sees the selected words and nothing else."""

import pytest
import torch

from rationalizer.nn import EXTRACTORS, Regression
from rationalizer.text import Budget, Example, split_words
from tests.nn.tiny_models import highlight_model, texts

METHODS = sorted(EXTRACTORS)
BUDGET = Budget.share(0.3)


def replaced(examples, keep, others):
    """Return the texts with words of `others` where `keep` is False."""
    found = []
    for example, row, other in zip(examples, keep, others, strict=True):
        tokens = [a if kept else b for a, kept, b in zip(example.tokens, row, other.tokens, strict=False)]
        joined = " ".join(tokens)
        found.append(Example(joined, *split_words(joined, "spaces")))
    return found


def selective(model, method):
    if method == "hardkuma":  # an untrained model selects everything
        model.method.parameters_of.weight.data.mul_(8)
        model.method.parameters_of.bias.data.copy_(torch.tensor([-1.0, 1.0]))
    if method == "fusedmax":  # it fuses states as small as these
        model.method.scorer.weight.data.mul_(20)
    return model.eval()


@pytest.mark.parametrize(("punctuation", "gaps"), [("free", "kept"), ("free", "closed"), ("count", "kept")])
@pytest.mark.parametrize("pretrained", [True, False])
@pytest.mark.parametrize("pooling", ["max", "mean", "last"])
@pytest.mark.parametrize("method", METHODS)
def test_unselected_words_do_not_change_the_prediction(method, pooling, pretrained, punctuation, gaps):
    how = {"pretrained": pretrained, "punctuation": punctuation, "gaps": gaps}
    model = highlight_model(method, pooling=pooling, classes=3, **how)
    selective(model, method)
    examples = texts()
    words = model.encoder.collate(examples)
    z = model(words, budget=BUDGET).z
    before = model.predict_from(z, words)
    unselected = words.mask & (z == 0)
    assert unselected.any() == (method != "full-text")
    for seed in range(1, 4):
        others = model.encoder.collate(
            replaced(examples, (z != 0).tolist(), texts(seed=seed, with_punctuation=seed == 1))
        )
        assert torch.equal(model.predict_from(z, others), before)


@pytest.mark.parametrize("method", [name for name in METHODS if EXTRACTORS[name].uses_generator])
def test_selected_words_do_change_the_prediction(method):
    model = selective(highlight_model(method), method)
    examples = texts(with_punctuation=False)
    words = model.encoder.collate(examples)
    z = model(words, budget=BUDGET).z
    others = model.encoder.collate(replaced(examples, (z == 0).tolist(), texts(seed=3, with_punctuation=False)))
    changed = (model.predict_from(z, others) != model.predict_from(z, words)).any(-1)
    assert changed.equal(z.any(-1))
    assert changed.any()


def test_nan_vectors_of_unselected_words_are_invisible():
    model = highlight_model().eval()
    examples = texts()
    words = model.encoder.collate(examples)
    z = model(words, budget=BUDGET).z
    before = model.predict_from(z, words)
    unread = [[not kept for kept in row] for row in (z != 0).tolist()]
    broken = [Example("x", ("w59",) * 20, ((0, 1),) * 20)] * len(examples)
    with torch.no_grad():
        model.encoder.learned.weight[model.encoder.vocabulary.id("w59")] = torch.nan
    chosen = [[not flag for flag in row] for row in unread]
    assert torch.equal(model.predict_from(z, model.encoder.collate(replaced(examples, chosen, broken))), before)


@pytest.mark.parametrize("gaps", ["kept", "closed"])
@pytest.mark.parametrize("pretrained", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_batch_equals_rows(method, pretrained, gaps):
    model = highlight_model(method, classes=3, pretrained=pretrained, gaps=gaps).eval()
    examples = texts()
    together = model(model.encoder.collate(examples), budget=BUDGET)
    for row, example in enumerate(examples):
        alone = model(model.encoder.collate([example]), budget=BUDGET)
        torch.testing.assert_close(alone.outputs[0], together.outputs[row], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(alone.z[0], together.z[row, : len(example.tokens)])


@pytest.mark.parametrize("pretrained", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_every_trained_parameter_gets_a_gradient(method, pretrained):
    model = highlight_model(method, pretrained=pretrained)
    output = model(model.encoder.collate(texts((14, 6, 9, 12))), budget=BUDGET)
    loss = model.head.loss(output.outputs, torch.tensor([0, 1, 0, 1]))
    model.method_loss(output, loss).loss.backward()
    without = [name for name, p in model.named_parameters() if p.grad is None]
    assert without == []


@pytest.mark.parametrize("method", ["spectra", "pair-budget", "sfe", "gumbel"])
def test_free_punctuation_is_selected_between_selected_words(method):
    model = highlight_model(method).eval()
    words = model.encoder.collate(texts((30, 14, 9)))
    output = model(words, budget=Budget.share(0.5))
    chosen = output.z != 0
    assert (chosen & words.counted).sum(1).tolist() == Budget.share(0.5).word_limit(words.counted).tolist()
    punctuation = words.mask & ~words.counted
    assert (chosen & punctuation).any()
    for row, place in zip(*punctuation.nonzero(as_tuple=True), strict=True):
        before, after = chosen[row, place - 1], chosen[row, place + 1] if place + 1 < chosen.shape[1] else False
        assert bool(chosen[row, place]) == bool(before and after)


def test_punctuation_counts_if_set():
    model = highlight_model(punctuation="count").eval()
    words = model.encoder.collate(texts((30, 14)))
    output = model(words, budget=Budget.share(0.5))
    assert (output.z != 0).sum(1).tolist() == [15, 7]
    assert words.counted.equal(words.mask)


def test_text_of_only_punctuation_counts_it():
    model = highlight_model().eval()
    words = model.encoder.collate([Example("! ? !", *split_words("! ? !", "spaces")), *texts((5,))])
    assert words.counted[0].tolist() == [True, True, True, False, False]
    assert (model(words, budget=Budget.count(2)).z[0] != 0).sum() == 2


def test_unknown_words_are_not_selected_by_their_own_score():
    model = highlight_model().eval()
    text = "w1 qqq w2 zzz w3"
    words = model.encoder.collate([Example(text, *split_words(text, "spaces")), Example("qqq", ("qqq",), ((0, 3),))])
    assert words.counted.tolist() == [
        [True, False, True, False, True],
        [True] + [False] * 4,
    ]
    z = model(words, budget=Budget.count(3)).z
    assert z[0].tolist() == [1, 0, 1, 0, 1]
    assert (model(words, budget=Budget.count(1)).z[0] != 0).tolist().count(True) == 1


def test_full_text_includes_punctuation_and_has_no_generator():
    model = highlight_model("full-text").eval()
    words = model.encoder.collate(texts())
    assert model(words, budget=BUDGET).z.equal(words.mask.float())
    assert model.encoder.generator is None
    assert model.full_text_outputs(words) is None


def test_closed_gaps_hide_positions():
    """The same words selected from another text give the same prediction only if gaps are closed."""
    one, other = texts((9,), with_punctuation=False)[0], texts((14,), seed=4, with_punctuation=False)[0]
    here, there = [1, 2, 7], [0, 5, 11]
    tokens = list(other.tokens)
    for a, b in zip(here, there, strict=True):
        tokens[b] = one.tokens[a]
    moved = Example(" ".join(tokens), *split_words(" ".join(tokens), "spaces"))
    found = {}
    for gaps in ("kept", "closed"):
        model = highlight_model(gaps=gaps).eval()
        found[gaps] = []
        for example, chosen in ((one, here), (moved, there)):
            z = torch.zeros(1, len(example.tokens))
            z[0, chosen] = 1
            found[gaps].append(model.predict_from(z, model.encoder.collate([example])))
    torch.testing.assert_close(*found["closed"])
    assert not torch.allclose(*found["kept"])


def test_unit_interval_targets_get_a_sigmoid():
    head = Regression(4, sigmoid=True)
    outputs = head(100 * torch.randn(50, 4))
    assert ((outputs >= 0) & (outputs <= 1)).all()
    assert torch.equal(head.predict(outputs), outputs)
    torch.testing.assert_close(head.loss(outputs, torch.full((50,), 0.25)), (outputs - 0.25) ** 2)


def test_other_targets_are_standardised():
    head = Regression(4, sigmoid=False, mean=50.0, deviation=20.0)
    outputs = head(torch.randn(5, 4))
    predicted = head.predict(outputs)
    torch.testing.assert_close(predicted, 50 + 20 * outputs)
    torch.testing.assert_close(head.loss(outputs, predicted), torch.zeros(5))


def test_unknown_pooling_is_an_error():
    with pytest.raises(ValueError, match="pooling must be one of max, mean, last, max-mean, got 'sum'"):
        highlight_model(pooling="sum")
