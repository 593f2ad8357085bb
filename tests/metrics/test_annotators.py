"""Comparison of a model with the annotators of the same texts."""

import numpy as np
import pytest

from rationalizer.metrics import compare_with_annotators, highlight_coverage

FOUR = [[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]


def test_by_hand():
    # The model selects the first words, as many as the person left out marked.
    chosen = [[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]
    found = compare_with_annotators([FOUR, None, [[1, 0]]], [chosen, None, None], [[4, 3, 2, 1], [1], [1, 0]])
    assert (found.texts, found.skipped, found.people) == (1, 2, 3)
    assert found.marked == pytest.approx(4 / 12)
    # F1 of each pair of people: 2/3, 0 and 0, whoever of the two is left out.
    assert found.person.token_f1 == pytest.approx((2 / 3 + 0 + 0) / 3)
    # In the place of 0: 2/3 with 1, 0 with 2; of 1: 2/3 with 0, 0 with 2; of 2: 2/3 with 0, 1 with 1.
    assert found.model.token_f1 == pytest.approx((2 / 3 + 0 + 2 / 3 + 0 + 2 / 3 + 1) / 6)
    # By chance k words hit k · marked / 4 of the marked ones.
    assert found.chance.token_f1 == pytest.approx((2 * (2 / 4) / 3 + 2 * (2 / 4) / 3 + 2 * (1 / 4) / 2) / 3)
    # The only word of the third person is ranked third: from precision 0 to 1/3, where recall goes from 0 to 1.
    assert found.model.auprc == pytest.approx((1 + 1 + 1 / 6) / 3)


def test_agreeing_people_score_1_and_ties_score_low():
    marks = np.zeros(40, dtype=int)
    marks[:8] = 1
    same = compare_with_annotators([[marks, marks, marks]] * 5, [[marks] * 3] * 5, [marks] * 5)
    assert same.person.token_f1 == same.model.token_f1 == 1
    assert same.person.auprc == 1
    assert same.chance.token_f1 == pytest.approx(8 / 40)
    other = np.roll(marks, 20)
    apart = compare_with_annotators([[marks, other]] * 50, [[marks, other]] * 50, [marks] * 50)
    assert apart.person.token_f1 == 0
    assert apart.person.auprc < 0.25  # equal scores for all unmarked words would get about .6


def test_errors():
    with pytest.raises(ValueError, match="at least two annotators"):
        compare_with_annotators([[[1, 0]]], [None], [[1, 2]])
    with pytest.raises(ValueError, match=r"document 0: .*3 people"):
        compare_with_annotators([FOUR], [FOUR[:2]], [[1, 2, 3, 4]])
    with pytest.raises(ValueError, match="every argument needs one entry per token"):
        compare_with_annotators([FOUR], [[[1, 0]] * 3], [[1, 2, 3, 4]])


def test_highlight_coverage():
    aligned = [[1, 1, 0, 0], [0, 1], [1]]
    marks = [[1, 0, 1, 0], [0, 1], None]
    found = highlight_coverage(aligned, marks, [[1, 1, 1, 0], [1, 1], [1]])
    assert (found.marked, found.words) == pytest.approx((2 / 3, 3 / 5))
    assert (found.documents, found.skipped) == (2, 1)
    assert highlight_coverage(aligned, [None, [0, 0], None]) is None
