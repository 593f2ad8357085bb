"""Weights of selected words: leave-one-out with the model's own predictor."""

import numpy as np
import pytest

from rationalizer import Rationalizer
from rationalizer.inference import predict, predict_from, word_weights
from rationalizer.nn import HighlightModel

TEXTS = [
    "The room was spotless but the staff was rude.",
    "Lovely!",
    "We stayed for three nights, the breakfast was delicious and nobody complained about the noise of the street.",
    "The bed was hard, the soup cold, and the waiter slow; still, a charming place.",
]
PAIRS = [("A man plays a guitar on the street.", "A musician performs outside."), ("Two dogs sleep.", "A cat runs.")]


@pytest.fixture(scope="module")
def sentiment():
    return Rationalizer.load("sentiment", "cpu")


@pytest.fixture(scope="module")
def nli():
    return Rationalizer.load("nli", "cpu")


@pytest.fixture(scope="module")
def ratings():
    texts = [f"{a} {b} stay" for a in ("good", "bad", "fine", "poor") for b in ("room", "bed", "soup", "view")]
    settings = {"hidden": 4, "vector_size": 4, "embeddings": None, "epochs": 2, "min_epochs": 1, "budget": 2}
    return Rationalizer(**settings).fit(texts, [10.5 * len(text) for text in texts], progress=False)


def log_odds(p):
    p = np.asarray(p, dtype=np.float64)
    return np.log(p) - np.log1p(-p)


@pytest.mark.parametrize(("name", "texts"), [("sentiment", TEXTS), ("nli", PAIRS), ("ratings", TEXTS)])
def test_weights_are_what_the_prediction_loses(name, texts, request):
    model = request.getfixturevalue(name)
    examples = model.examples(texts)
    masks = predict(model.trained, examples).weights
    for example, mask, explanation in zip(examples, masks, model.explain(texts), strict=True):
        strengths = [abs(word.weight) for word in explanation.words]
        assert strengths == sorted(strengths, reverse=True)
        assert explanation.words
        for word in explanation.words:
            dropped = mask.copy()
            dropped[(word.premise_index, word.hypothesis_index) if model.pairs else word.index] = 0
            before, after = predict_from(model.trained, [example, example], [mask, dropped])
            if name == "ratings":
                assert word.weight == pytest.approx(before - after, rel=1e-3, abs=1e-3)
                continue
            lost = dict(zip(model.classes_, log_odds(before) - log_odds(after), strict=True))
            assert word.by_class == pytest.approx(lost, abs=2e-3)
            assert word.weight == word.by_class[explanation.label]


def test_batches_and_single_texts_agree(sentiment, nli):
    for model, texts in ((sentiment, TEXTS), (nli, PAIRS)):
        examples = model.examples(texts)
        found = predict(model.trained, examples)
        together = word_weights(model.trained, examples, found)
        for size in (1, 2, 5):
            for one, other in zip(word_weights(model.trained, examples, found, batch_size=size), together, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-4)


def test_directions(sentiment, nli, ratings):
    explanation = sentiment.explain(TEXTS[0])
    assert [(word.text, word.direction) for word in explanation.words] == [
        ("rude", "for negative"),
        ("spotless", "for positive"),
    ]
    assert [word.weight > 0 for word in explanation.words] == [explanation.label == "negative", False]
    assert TEXTS[0][explanation.words[0].start : explanation.words[0].end] == "rude"
    assert {word.direction for word in nli.explain(*PAIRS[0]).words} <= {
        *("for entailment", "against entailment", "no effect")
    }
    values = {word.direction for word in ratings.explain("good soup stay").words}
    assert values <= {"raises the value", "lowers the value", "no effect"}


def test_long_texts_and_models_without_labels_have_no_weights(sentiment):
    long = " ".join(TEXTS) * 20
    assert {word.weight for word in sentiment.explain(long).words} == {None}
    assert None not in {word.weight for word in sentiment.explain(long[:600], reasons=True).words}
    assert {word.weight for word in sentiment.explain(TEXTS[0], reasons=False).words} == {None}
    assert next(sentiment.explain(iter(TEXTS))).words[0].weight is None
    assert next(sentiment.explain(iter(TEXTS), reasons=True)).words[0].weight is not None
    examples = sentiment.examples([long])
    found = predict(sentiment.trained, examples)
    assert word_weights(sentiment.trained, examples, found, max_tokens=1000) == [None]


def test_sharing_work_between_the_rows_of_a_text_changes_nothing(sentiment, ratings, monkeypatch):
    found = {}
    for shares in (True, False):
        if not shares:
            monkeypatch.setattr(HighlightModel, "can_leave_out", False)
        for model in (sentiment, ratings):
            examples = model.examples([*TEXTS, " ".join(TEXTS)])
            found[model, shares] = word_weights(model.trained, examples, predict(model.trained, examples))
    for model in (sentiment, ratings):
        for one, other in zip(found[model, True], found[model, False], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4, rtol=1e-5)
    assert not np.array_equal(found[sentiment, True][4], found[sentiment, False][4])  # otherwise nothing was compared


@pytest.mark.parametrize("settings", [{"pooling": "max-mean"}, {"pooling": "last"}, {"gaps": "closed"}])
def test_predictors_that_share_no_work(settings):
    texts = [f"{a} {b} stay" for a in ("good", "bad", "fine", "poor") for b in ("room", "bed", "soup", "view")]
    small = {"hidden": 4, "vector_size": 4, "embeddings": None, "epochs": 1, "min_epochs": 1, "budget": 2}
    model = Rationalizer(**small, **settings).fit(texts, [text.split()[0] for text in texts], progress=False)
    model.trained.model.encoder.learned.weight.data *= 10  # so that words matter
    example, explanation = model.examples(texts[:1])[0], model.explain(texts[0])
    for word in explanation.words:
        dropped = np.array(explanation.mask)
        dropped[word.index] = 0
        before, after = predict_from(model.trained, [example] * 2, [explanation.mask, dropped])
        lost = dict(zip(model.classes_, log_odds(before) - log_odds(after), strict=True))
        assert word.by_class == pytest.approx(lost, abs=1e-4)
