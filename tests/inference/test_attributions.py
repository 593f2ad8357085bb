"""Attributions of the predictor with Captum, and their comparison with rationales."""

import sys

import numpy as np
import pytest
import torch

from rationalizer.data import generated_reviews
from rationalizer.inference import attribute, compare_with_attributions, evaluate, predict
from rationalizer.inference.attribution_comparison import PASSES
from rationalizer.inference.predict import predict_from
from rationalizer.models import TrainedModel, configure
from rationalizer.models.batches import collate
from rationalizer.training import train
from tests.nn.tiny_transformers import write_encoder

EXAMPLES = generated_reviews(train=1, dev=1, test=8).test


@pytest.fixture(scope="module")
def bilstm(spectra_run):
    return TrainedModel.load(spectra_run)


@pytest.fixture(scope="module")
def transformer(tmp_path_factory):
    encoder = write_encoder(tmp_path_factory.mktemp("attribution") / "encoder")
    settings = {"encoder": encoder, "epochs": 1, "min_epochs": 1, "full_text_epochs": 0, "generator_rate": 1e-3}
    return train(generated_reviews(train=32, dev=8, test=0), configure(None, settings))


def whole(trained):
    return predict_from(trained, EXAMPLES, [np.ones(len(one.tokens)) for one in EXAMPLES])


@pytest.mark.parametrize("model", ["bilstm", "transformer"])
def test_integral_of_the_gradient(model, request):
    """Against a midpoint rule of our own, step by step."""
    trained = request.getfixturevalue(model)
    found = attribute(trained, EXAMPLES)
    texts = collate(list(enumerate(EXAMPLES)), trained.encoder).texts
    mask = texts[0].mask.float()
    target = torch.from_numpy(whole(trained).argmax(1))
    total, steps = torch.zeros_like(mask), 50
    for k in range(steps):
        z = (mask * (k + 0.5) / steps).requires_grad_()
        outputs = trained.model.head.predict(trained.model.predict_from(z, *texts))
        total += torch.autograd.grad(outputs.gather(1, target[:, None]).sum(), z)[0] / steps
    scale = float(total.abs().max())
    assert scale > 1e-3
    for row, values in enumerate(found):
        assert len(values) == len(EXAMPLES[row].tokens)
        np.testing.assert_allclose(values, total[row, : len(values)], atol=0.05 * scale)


def test_attributions_sum_to_the_change_in_probability(bilstm):
    full, rows = whole(bilstm), np.arange(len(EXAMPLES))
    nothing = predict_from(bilstm, EXAMPLES, [np.zeros(len(one.tokens)) for one in EXAMPLES])
    gained = full.max(1) - nothing[rows, full.argmax(1)]
    np.testing.assert_allclose([values.sum() for values in attribute(bilstm, EXAMPLES)], gained, atol=0.005)
    assert np.abs(gained).max() > 0.05


@pytest.mark.parametrize("model", ["bilstm", "transformer"])
def test_selections_of_equal_size(model, request):
    trained, told = request.getfixturevalue(model), []
    found = compare_with_attributions(trained, EXAMPLES, on_batch=told.append)
    assert sum(told) == (1 + PASSES) * len(EXAMPLES)
    counted = [trained.encoder.counted(one.tokens) for one in EXAMPLES]
    for k, words in enumerate(counted):
        sizes = {int((way.masks[k] & words).sum()) for way in (found.own, found.attributed, found.chance)}
        assert len(sizes) == 1
        chosen, left = found.attributed.masks[k] & words, ~found.attributed.masks[k] & words
        lowest = found.attributions[k][chosen].min(initial=np.inf)
        assert lowest >= found.attributions[k][left].max(initial=-np.inf)
    scores = evaluate(trained, EXAMPLES, faithfulness=True)
    assert found.own.comprehensiveness == pytest.approx(scores.comprehensiveness)
    assert found.own.sufficiency == pytest.approx(scores.sufficiency)
    assert found.own.overlap == 1


def test_attributed_words_are_drawn_like_selected_ones(bilstm):
    found = compare_with_attributions(bilstm, EXAMPLES, predictions=predict(bilstm, EXAMPLES))
    shown = found.as_predictions()
    assert all((one == other).all() for one, other in zip(shown.selected, found.attributed.masks, strict=True))
    assert all(weights.max() <= 1 for weights in shown.weights)
    np.testing.assert_array_equal(shown.outputs, whole(bilstm))


def test_random_words_depend_on_the_seed(bilstm):
    one, same, other = (compare_with_attributions(bilstm, EXAMPLES, seed=seed).chance for seed in (1, 1, 2))
    assert one.comprehensiveness == same.comprehensiveness != other.comprehensiveness


def test_unsupported_models_raise(bilstm, pair_run, monkeypatch):
    with pytest.raises(ValueError, match=r"'integrated'.*integrated-gradients"):
        attribute(bilstm, EXAMPLES, "integrated")
    with pytest.raises(ValueError, match="pairs of texts"):
        attribute(TrainedModel.load(pair_run), [])
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[captum\]"'):
        attribute(bilstm, EXAMPLES)
