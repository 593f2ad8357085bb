"""The model as a whole: the predictor sees the selected words and nothing else."""

import pytest
import torch

from rationalizer.nn import EXTRACTORS, HighlightModel, Regression, token_budget

WORDS = 60
METHODS = sorted(EXTRACTORS)


def build(method="spectra", **settings):
    torch.manual_seed(0)
    return HighlightModel(vocabulary=WORDS, embedding=10, method=method, hidden=7, **settings)


def texts(lengths=(14, 6, 1, 9), seed=0):
    torch.manual_seed(seed)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return torch.randint(2, WORDS, mask.shape) * mask, mask


@pytest.mark.parametrize("pooling", ["max", "mean", "last"])
@pytest.mark.parametrize("method", METHODS)
def test_unselected_words_do_not_change_the_prediction_by_a_bit(method, pooling):
    model = build(method, pooling=pooling, classes=3).eval()
    tokens, mask = texts()
    if method == "hardkuma":  # untrained it selects everything; make it select some
        model.extractor.parameters_of.weight.data.mul_(8)
        model.extractor.parameters_of.bias.data.copy_(torch.tensor([-1.0, 1.0]))
    z = model.extract(tokens, mask, token_budget(0.3, mask)).z
    before = model.predict_from(z, tokens, mask)
    unselected = mask & (z == 0)
    assert unselected.any() == (method != "full-text")
    for seed in range(1, 4):
        others = torch.where(unselected, texts(seed=seed)[0], tokens)
        assert torch.equal(model.predict_from(z, others, mask), before)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "full-text"])
def test_selected_words_do_change_the_prediction(method):
    model = build(method).eval()
    tokens, mask = texts()
    z = model.extract(tokens, mask, token_budget(0.3, mask)).z
    others = torch.where(z != 0, (tokens + 7) % (WORDS - 2) + 2, tokens)
    changed = model.predict_from(z, others, mask) != model.predict_from(z, tokens, mask)
    assert changed.all()


def test_not_even_broken_vectors_come_through():
    model = build().eval()
    tokens, mask = texts()
    z = model.extract(tokens, mask, token_budget(0.3, mask)).z
    before = model.predict_from(z, tokens, mask)
    with torch.no_grad():
        model.embedding.weight[WORDS - 1] = torch.nan
    broken = torch.where(z == 0, WORDS - 1, tokens)
    assert torch.equal(model.predict_from(z, torch.where(mask, broken, 0), mask), before)


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_gives_what_its_rows_give(method):
    model = build(method, classes=3).eval()
    tokens, mask = texts()
    together = model(tokens, mask, token_budget(0.3, mask))
    for row, length in enumerate(mask.sum(1).tolist()):
        one, real = tokens[row : row + 1, :length], mask[row : row + 1, :length]
        alone = model(one, real, token_budget(0.3, real))
        torch.testing.assert_close(alone.outputs[0], together.outputs[row], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(alone.extraction.z[0], together.extraction.z[row, :length])


@pytest.mark.parametrize("method", METHODS)
def test_every_trained_parameter_gets_a_gradient(method):
    model = build(method)
    tokens, mask = texts((14, 6, 9, 12))
    budget = token_budget(0.3, mask)
    output = model(tokens, mask, budget)
    loss = model.predictor.head.loss(output.outputs, torch.tensor([0, 1, 0, 1]))
    model.extractor.objective(output.extraction, loss, mask, budget).loss.backward()
    without = [name for name, p in model.named_parameters() if p.grad is None]
    assert without == []


def test_frozen_vectors_stay():
    model = build(frozen=True)
    vectors = torch.randn(WORDS, 10)
    model.set_vectors(vectors)
    assert "embedding.weight" not in [name for name, p in model.named_parameters() if p.requires_grad]
    assert torch.equal(model.embedding.weight, vectors)
    with pytest.raises(ValueError, match=r"shape \(60, 10\), got \(3, 10\)"):
        model.set_vectors(torch.zeros(3, 10))


def test_full_text_has_no_generator():
    assert build("full-text").generator is None


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
        build(pooling="sum")
