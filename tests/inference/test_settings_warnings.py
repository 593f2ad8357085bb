"""Explanations say if other settings change the label, and which budget would select anything."""

import pytest

from rationalizer import Rationalizer
from rationalizer.inference import predict
from rationalizer.models.trained_model import TrainedModel
from rationalizer.prediction_warnings import smallest_budget
from rationalizer.text import Budget

TEXT = "The room was spotless but the staff was rude."
LONG = (
    "Good food. But not so good as to come again, and the music was loud! Never again, said everybody who was with us."
)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def sentiment():
    return Rationalizer.load("sentiment", "cpu")


def selects(trained: TrainedModel, example, budget):
    return bool(predict(trained, [example], budget=budget).weights[0].any())


@pytest.mark.parametrize("budget", [1, "4%"])
@pytest.mark.parametrize("constraint", ["whole-sentences", "span-length=7-30", "must=words:music"])
def test_smallest_budget(sentiment, budget, constraint):
    (example,) = sentiment.examples([LONG])
    trained = sentiment.trained.with_budget(budget).with_constraints([constraint])
    n = int(sentiment.trained.encoder.counted(example.tokens).sum())
    working = [words for words in range(1, n + 1) if selects(trained, example, words)]
    if working[0] == 1:
        return
    found, words = smallest_budget(
        trained.config.budget, n, lambda other: predict(trained, [example], budget=other).weights[0]
    )
    assert words == working[0]
    assert found.kind == Budget.parse(budget).kind
    assert selects(trained, example, found)


def test_suggestion(sentiment):
    sentiment.budget = 1
    explanation = sentiment.explain(LONG, constraints=["whole-sentences"])
    assert explanation.rationale == ""
    assert explanation.warnings[0].endswith("Raise the budget to at least 2 words.")
    sentiment.budget = "4%"
    (warning,) = sentiment.explain(LONG, constraints=["whole-sentences"]).warnings[:1]
    assert "(2 words)" in warning
    impossible = sentiment.explain("Good.", constraints=["never=words:good"])
    assert "No budget helps" in impossible.warnings[0]
    assert (
        "Raise the budget." in sentiment.explain([LONG], constraints=["whole-sentences"], reasons=False)[0].warnings[0]
    )


def test_changed_label(sentiment):
    assert sentiment.explain(TEXT).warnings == ()
    assert sentiment.explain(TEXT, constraints=["spans=2"]).warnings == ()
    changed = sentiment.explain(TEXT, constraints=["never=words:rude"])
    (warning,) = changed.warnings
    assert changed.label == "positive"
    assert warning == (
        "The label depends on the settings: positive under never=words:rude and a budget of 20%, negative with the "
        "model's own settings (a budget of 20%)."
    )
    for drawn in (str(changed), changed.to_html(), "".join(changed.to_svg(width=2000).split("\n"))):
        assert "The label depends on the settings" in drawn
    assert sentiment.explain([TEXT], constraints=["never=words:rude"], reasons=False)[0].warnings == ()
    sentiment.constraints = ["never=words:rude"]
    assert sentiment.explain(TEXT).warnings == (warning,)
