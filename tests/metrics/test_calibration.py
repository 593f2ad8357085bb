import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rationalizer.metrics import calibration, score_task


def test_by_hand():
    found = calibration([0.95, 0.9, 0.9, 0.55], [True, True, False, False])
    assert [(each.low, each.high, each.count) for each in found.bins] == [(0.5, 0.6, 1), (0.8, 0.9, 2), (0.9, 1.0, 1)]
    assert [each.accuracy for each in found.bins] == [0, 0.5, 1]
    assert found.error == pytest.approx((0.55 + 2 * 0.4 + 0.05) / 4)


def test_calibrated_model_has_error_0():
    assert calibration([0.75] * 4, [True, True, True, False]).error == pytest.approx(0)
    assert calibration([1.0, 1.0], [True, True]).error == 0
    assert calibration([1.0, 1.0], [False, False]).error == 1


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
def test_every_prediction_is_in_one_bin(pairs):
    sure, right = zip(*pairs, strict=True)
    found = calibration(sure, right, bins=7)
    assert sum(each.count for each in found.bins) == len(pairs)
    assert all(each.low - 1e-9 <= each.confidence <= each.high + 1e-9 for each in found.bins)
    gap = abs(np.mean(right) - np.mean(sure))
    assert gap - 1e-9 <= found.error <= 1 + 1e-9  # never less than with one bin


def test_score_task_computes_ece():
    scores = score_task("classification", [0, 1], [0, 0], [0, 1], [[0.7, 0.3], [0.9, 0.1]])
    assert scores["ece"] == pytest.approx((0.3 + 0.9) / 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibration([0.5, 1.5], [True, True]), r"document 1: the confidence is 1\.5"),
        (lambda: calibration([0.5, float("nan")], [True, True]), "document 1: the confidence is nan"),
        (lambda: calibration([0.5], [True, False]), "confidences has 1, correct has 2"),
        (lambda: calibration([], []), "no documents"),
        (lambda: calibration([0.5], [True], bins=0), "bins must be at least 1, got 0"),
    ],
)
def test_errors_name_the_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
