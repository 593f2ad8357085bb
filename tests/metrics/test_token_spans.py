from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rationalizer.metrics import mask_to_spans, spans_to_mask

MASKS = st.lists(st.booleans(), max_size=40)


@pytest.mark.parametrize(
    ("mask", "spans"),
    [
        ([], []),
        ([0, 0], []),
        ([1], [(0, 1)]),
        ([0, 1, 1, 0, 1], [(1, 3), (4, 5)]),
        ([1.0, 1.0, 0.0], [(0, 2)]),
    ],
)
def test_by_hand(mask, spans):
    assert mask_to_spans(mask) == spans
    assert spans_to_mask(spans, len(mask)).tolist() == [bool(token) for token in mask]


@given(MASKS)
def test_round_trip(mask):
    spans = mask_to_spans(mask)
    assert spans_to_mask(spans, len(mask)).tolist() == mask
    # Maximal runs: in order, and never touching.
    assert all(end < start for (_, end), (start, _) in pairwise(spans))


def test_overlapping_spans_are_united():
    assert spans_to_mask([(0, 3), (2, 4), (0, 3)], 6).tolist() == [True] * 4 + [False] * 2


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(0, 6)], r"\[0, 6\).* 5 tokens"),
        ([(2, 2)], r"\[2, 2\)"),
        ([(3, 1)], r"\[3, 1\)"),
        ([(-1, 2)], r"\[-1, 2\)"),
        ([3], "a span is a pair"),
    ],
)
def test_invalid_spans_raise(spans, message):
    with pytest.raises(ValueError, match=message):
        spans_to_mask(spans, 5)
