import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rationalizer.metrics import alignment_scores, violations


def test_by_hand():
    predicted = [[[1, 0], [0, 1]], np.zeros((2, 3)), [[1, 0, 1]], [[1]]]
    gold = [{(0, 0), (1, 0), (0, 1)}, {(1, 2)}, None, []]
    found = alignment_scores(predicted, gold)
    # Document 0: 1 hit of 2 predicted and of 3 wanted. Document 1: nothing predicted. The others: no gold.
    assert (found.precision, found.recall, found.f1) == pytest.approx((1 / 4, 1 / 6, 0.4 / 2))
    assert found.exact == 0
    assert alignment_scores([np.eye(2), np.eye(2)], [{(0, 0), (1, 1)}, {(0, 0)}]).exact == 0.5
    assert found.alignments == (2 + 0 + 2 + 1) / 4
    assert (found.documents, found.skipped) == (2, 2)
    assert found.by_document[0].f1 == pytest.approx(0.4)
    assert found.by_document[1].f1 == 0
    assert found.by_document[2:] == (None, None)


@given(arrays(bool, st.tuples(st.integers(1, 5), st.integers(1, 5))).filter(np.any))
def test_matrix_agrees_with_its_own_links(matrix):
    found = alignment_scores([matrix], [[tuple(pair) for pair in np.argwhere(matrix)]])
    assert (found.precision, found.recall, found.f1) == (1, 1, 1)
    assert found.alignments == matrix.sum()


def test_violations_by_hand():
    z = [[0.5, 0.75, 0.0], [0.0, 0.5, 0.25]]  # rows 1.25 and 0.75; columns 0.5, 1.25 and 0.25; in all 2
    found = violations(z, rows="exactly_one", columns="at_most_one", budget=1.5)
    assert (found.rows, found.columns, found.budget, found.bounds) == (0.25, 0.25, 0.5, 0)
    assert found.worst == 0.5
    assert violations(z, columns="exactly_one").columns == 0.75
    assert violations(np.eye(2, 3), rows="exactly_one", budget=2).worst == 0
    assert [violations(np.eye(3), budget=k).budget for k in (2, 3, 5)] == [1, 0, 0]
    assert [violations(np.eye(3), budget=k, exact=True).budget for k in (2, 3, 5)] == [1, 0, 2]
    assert violations(np.eye(2, 3), columns="exactly_one").worst == 1
    assert violations([[1.5, -0.25]]).bounds == 0.5
    assert violations([[0.0, -0.25]]).bounds == 0.25
    assert violations(np.zeros((0, 3))).worst == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: alignment_scores([[[1]], [[0.5]]], [None, None]), r"document 1: predicted\[0, 0\] is 0.5"),
        (lambda: alignment_scores([[1, 0]], [None]), "document 0: .*matrix, got shape"),
        (
            lambda: alignment_scores([[[1]]], [{(0, 1)}]),
            r"pair \(0, 1\)",
        ),
        (lambda: alignment_scores([[[1]]], [{(-1, 0)}]), "document 0: the annotated pair"),
        (lambda: alignment_scores([[[1]]], [None]), "none of the 1 documents"),
        (lambda: alignment_scores([[[1]]], []), "predicted has 1, annotations has 0"),
        (lambda: violations([[1]], rows="one"), "rows must be"),
        (lambda: violations([[1]], budget=-1), "got -1"),
        (lambda: violations([[1]], exact=True), "exact=True needs a budget"),
        (lambda: violations([1]), "two dimensions"),
        (lambda: violations([[0, np.nan]]), r"matrix\[0, 1\] is nan"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
