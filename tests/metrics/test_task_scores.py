import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_recall_fscore_support

from rationalizer.metrics import accuracy, class_scores, confusions, macro_f1, mse, score_task

LABEL_PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


def test_macro_f1_by_hand():
    truth, guess = ["a", "a", "b", "b", "b"], ["a", "b", "b", "b", "a"]
    # a: 1 hit, 2 true, 2 predicted: 1/2. b: 2 hits, 3 true, 3 predicted: 2/3.
    assert macro_f1(truth, guess) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert accuracy(truth, guess) == pytest.approx(3 / 5)


def test_class_that_never_occurs_counts_as_zero():
    truth = ["a", "b"]
    assert macro_f1(truth, truth) == 1.0
    assert macro_f1(truth, truth, classes=["a", "b", "c"]) == pytest.approx(2 / 3)


@given(LABEL_PAIRS)
def test_agrees_with_scikit_learn(pairs):
    truth, guess = map(list, zip(*pairs, strict=True))
    expected = f1_score(truth, guess, labels=[0, 1, 2, 3], average="macro", zero_division=0)
    assert macro_f1(truth, guess, classes=[0, 1, 2, 3]) == pytest.approx(expected)
    assert macro_f1(truth, guess) == pytest.approx(f1_score(truth, guess, average="macro", zero_division=0))
    assert accuracy(truth, guess) == pytest.approx(accuracy_score(truth, guess))


@settings(max_examples=20)
@given(LABEL_PAIRS)
def test_class_scores_agree_with_scikit_learn(pairs):
    truth, guess = map(list, zip(*pairs, strict=True))
    assert confusions(truth, guess, range(4)).tolist() == confusion_matrix(truth, guess, labels=range(4)).tolist()
    expected = precision_recall_fscore_support(truth, guess, labels=range(4), zero_division=0)
    found = [(c.precision, c.recall, c.f1, c.documents) for c in class_scores(truth, guess, range(4))]
    np.testing.assert_allclose(found, np.array(expected).T)


def test_mse_by_hand():
    assert mse([0.0, 1.0, 0.5], [0.5, 1.0, 0.0]) == pytest.approx(0.5 / 3)


def test_score_task_names_the_scores():
    assert score_task("classification", ["a", "b"], ["a", "a"], ["a", "b"]) == {
        "accuracy": 0.5,
        "macro_f1": pytest.approx(1 / 3),
    }
    assert score_task("regression", [1.0, 2.0], [1.0, 4.0]) == {"mse": 2.0, "mae": 1.0, "r2": -7.0}
    assert "r2" not in score_task("regression", [1.0, 1.0], [1.0, 4.0])  # there is nothing to explain


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: accuracy(["a"], ["a", "b"]), ValueError, "truth has 1, predictions has 2"),
        (lambda: accuracy([], []), ValueError, "no documents"),
        (lambda: accuracy([0, 1], ["0", "1"]), TypeError, "class names in both"),
        (lambda: accuracy([[0, 1]], [[0, 1]]), ValueError, r"shape \(1, 2\)"),
        (lambda: macro_f1(["a", "b"], ["a", "c"], ["a", "b"]), ValueError, "document 1: predictions is c"),
        (lambda: macro_f1(["a", "x"], ["a", "b"], ["a", "b"]), ValueError, "document 1: truth is x"),
        (lambda: mse([0.0, np.nan], [0.0, 0.0]), ValueError, "document 1: truth is nan"),
        (lambda: mse([0.0, 0.0], [0.0, np.inf]), ValueError, "document 1: predictions is inf"),
        (lambda: score_task("ranking", [1], [1]), ValueError, "got 'ranking'"),
    ],
)
def test_errors_name_the_value(call, error, message):
    with pytest.raises(error, match=message):
        call()
