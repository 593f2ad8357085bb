"""What speaks for each class, also of a model with one rationale."""

import numpy as np
import pandas as pd
import pytest

from rationalizer import Rationalizer
from rationalizer.inference import predict_from
from rationalizer.word_support import support

TEXT = "A warm, funny film that never gets dull, though the ending is weak."


@pytest.fixture(scope="module")
def sentiment():
    return Rationalizer.load("sentiment", "cpu")


def test_words_speak_for_a_class_if_its_log_odds_fall_without_them(sentiment):
    explanation = sentiment.explain(TEXT, per_class=True)
    assert [one.name for one in explanation.labels] == ["negative", "positive"]
    (example,) = sentiment.examples([TEXT])
    before = support(predict_from(sentiment.trained, [example], [explanation.mask]))[0]
    for word in explanation.words:
        without = np.array(explanation.mask)
        without[word.index] = 0
        lost = before - support(predict_from(sentiment.trained, [example], [without]))[0]
        for k, one in enumerate(explanation.labels):
            if abs(lost[k] - 0.005) > 1e-3:  # clearly above or below the smallest effect that is shown
                assert one.selected[word.index] == (lost[k] > 0.005)
    assert not any(
        one.selected[k] for one in explanation.labels for k, read in enumerate(explanation.selected) if not read
    )


def test_the_prediction_stays_the_same(sentiment):
    plain, by_class = sentiment.explain(TEXT), sentiment.explain(TEXT, per_class=True)
    assert (plain.label, plain.probabilities, plain.words) == (by_class.label, by_class.probabilities, by_class.words)
    assert not plain.labels
    assert {one.name: one.probability for one in by_class.labels} == plain.probabilities
    assert "warm" in by_class.rationale_of("positive")
    assert not by_class.separate


def test_iterators_and_tables(sentiment):
    (first,) = sentiment.explain(iter([TEXT]), per_class=True)
    assert first.rationale_of("positive") == sentiment.explain(TEXT, per_class=True).rationale_of("positive")
    table = sentiment.explain(pd.DataFrame({"text": [TEXT]}), per_class=True)
    assert table.rationale_positive.tolist() == [first.rationale_of("positive")]


def test_only_classes_have_words_of_their_own():
    with pytest.raises(ValueError, match="pairs"):
        Rationalizer.load("nli", "cpu").explain("a man", "a woman", per_class=True)


def test_labels_that_share_a_rationale():
    texts, labels = (
        ["tasty soup", "rude waiter", "tasty soup and a rude waiter", "on a day"] * 5,
        [["food"], ["staff"], ["food", "staff"], []] * 5,
    )
    model = Rationalizer(rationales="shared", epochs=1, hidden=4, embeddings=None, budget=3).fit(texts, labels)
    explanation = model.explain("tasty soup and a rude waiter", per_class=True)
    for one in explanation.labels:
        assert all(read or not own for own, read in zip(one.selected, explanation.selected, strict=True))
        assert one.threshold is not None
