import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rationalizer.metrics import aopc, faithfulness, top_tokens


def additive_model(*token_logits):
    """Two classes; the logit of class 1 is the sum over the kept tokens, so scores can be computed by hand."""

    def probabilities(masks):
        logits = [np.dot(w, m) for w, m in zip(token_logits, masks, strict=True)]
        p = 1 / (1 + np.exp(-np.array(logits)))
        return np.stack([1 - p, p], axis=1)

    return probabilities


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_by_hand():
    # Document 0 is of class 1 (logit 3), document 1 of class 0 (logit −2).
    model = additive_model([2.0, 1.0, 0.0], [1.0, -3.0])
    found = faithfulness(model, [[1, 0, 0], [0, 1]])
    assert found.comprehensiveness_by_document == pytest.approx([sigmoid(3) - sigmoid(1), sigmoid(2) - sigmoid(-1)])
    assert found.sufficiency_by_document == pytest.approx([sigmoid(3) - sigmoid(2), sigmoid(2) - sigmoid(3)])
    assert found.comprehensiveness == pytest.approx(found.comprehensiveness_by_document.mean())
    assert found.sufficiency == pytest.approx(found.sufficiency_by_document.mean())


def test_extremes():
    model = additive_model([2.0, 1.0], [1.0, -3.0])
    everything = faithfulness(model, [[1, 1], [1, 1]])
    assert everything.sufficiency == 0
    assert everything.comprehensiveness == pytest.approx(np.mean([sigmoid(3) - 0.5, sigmoid(2) - 0.5]))
    nothing = faithfulness(model, [[0, 0], [0, 0]])
    assert (nothing.comprehensiveness, nothing.sufficiency) == (0, everything.comprehensiveness)


def test_full_text_model_gives_the_class_and_its_probability():
    model = additive_model([2.0, 1.0])
    found = faithfulness(model, [[1, 0]], full=[[0.7, 0.3]])  # the full-text model says class 0
    assert found.comprehensiveness == pytest.approx(0.7 - sigmoid(-1))
    assert found.sufficiency == pytest.approx(0.7 - sigmoid(-2))


def test_aopc_is_the_mean_over_the_fractions():
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=n) for n in (40, 7, 1)]
    model = additive_model(*weights)
    curve = aopc(model, weights)
    assert curve.fractions == (0.01, 0.05, 0.1, 0.2, 0.5)
    for i, counts in enumerate([(1, 1, 1), (2, 1, 1), (4, 1, 1), (8, 2, 1), (20, 4, 1)]):
        masks = [np.isin(np.arange(len(w)), np.argsort(-w)[:k]) for w, k in zip(weights, counts, strict=True)]
        single = faithfulness(model, masks)
        assert curve.comprehensiveness_by_fraction[i] == pytest.approx(single.comprehensiveness)
        assert curve.sufficiency_by_fraction[i] == pytest.approx(single.sufficiency)
    assert curve.comprehensiveness == pytest.approx(curve.comprehensiveness_by_fraction.mean())
    assert curve.sufficiency == pytest.approx(curve.sufficiency_by_fraction.mean())


def test_good_scores_are_more_comprehensive_than_bad_ones():
    weights = [np.linspace(0.01, 0.2, 20), np.linspace(0.2, 0.01, 20)]
    model = additive_model(*weights)
    good, bad = aopc(model, weights), aopc(model, [-w for w in weights])
    assert good.comprehensiveness > bad.comprehensiveness + 0.01
    assert good.sufficiency < bad.sufficiency - 0.01


@pytest.mark.parametrize(
    ("length", "fraction", "count"),
    [(100, 0.07, 7), (100, 0.01, 1), (101, 0.01, 2), (3, 0.5, 2), (1, 0.01, 1), (0, 0.5, 0)],
)
def test_number_of_top_tokens_rounds_up(length, fraction, count):
    assert top_tokens(np.arange(length, dtype=float), fraction).sum() == count


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.sampled_from([0.01, 0.1, 0.2, 0.5, 1.0]))
def test_top_tokens_break_ties_by_position(scores, fraction):
    mask = top_tokens(np.array(scores, float), fraction)
    chosen = {i for i, token in enumerate(mask) if token}
    assert all((scores[i], -i) > (scores[j], -j) for i in chosen for j in set(range(len(scores))) - chosen)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: faithfulness(lambda masks: [[2.0, -1.0]] * 2, [[1], [1]]), r"document 0: .*lie in \[0, 1\]"),
        (
            lambda: faithfulness(lambda masks: [[0.5, 0.5], [0.5, 0.4]], [[1], [1]]),
            "document 1: .*sums to 0.9",
        ),
        (lambda: faithfulness(lambda masks: [[0.5, 0.5], [np.nan, 1]], [[1], [1]]), "document 1: .*nan"),
        (lambda: faithfulness(lambda masks: [0.5, 0.5], [[1], [1]]), r"shape \(documents, classes\)"),
        (lambda: faithfulness(lambda masks: [[0.5, 0.5]], [[1], [1]]), r"= \(2, at least 2\), got \(1, 2\)"),
        (
            lambda: faithfulness(additive_model([1.0]), [[1]], full=[[0.2, 0.3, 0.5]]),
            "3 classes.* of 2 and 2",
        ),
        (lambda: faithfulness(additive_model([1.0]), [[0.5]]), r"document 0: masks\[0\] is 0.5"),
        (lambda: aopc(additive_model([1.0]), [[np.inf]]), r"document 0: scores\[0\] is inf"),
        (lambda: aopc(additive_model([1.0]), [[1.0]], fractions=[10]), "fractions must lie"),
        (lambda: aopc(additive_model([1.0]), [[1.0]], fractions=[]), "fractions must lie"),
    ],
)
def test_errors_name_the_document(call, message):
    with pytest.raises(ValueError, match=message):
        call()
