import pytest
from hypothesis import given
from hypothesis import strategies as st

from rationalizer.metrics import Summary, rationale_statistics


def test_by_hand():
    found = rationale_statistics([[1, 1, 0, 1], [0, 0], [1], []])
    assert found.fraction == Summary(0.4375, 0, 1, (0.75, 0, 1, 0))
    assert found.tokens == Summary(1, 0, 3, (3, 0, 1, 0))
    assert found.spans == Summary(0.75, 0, 2, (2, 0, 1, 0))


@given(st.lists(st.lists(st.booleans(), max_size=15), min_size=1, max_size=10))
def test_means_lie_within_their_range(masks):
    found = rationale_statistics(masks)
    for spread in (found.fraction, found.tokens, found.spans):
        assert spread.low <= spread.mean <= spread.high
        assert (min(spread.values), max(spread.values), len(spread.values)) == (spread.low, spread.high, len(masks))
    for spans, tokens in zip(found.spans.values, found.tokens.values, strict=True):
        assert spans <= tokens
        assert (spans == 0) == (tokens == 0)


def test_errors():
    with pytest.raises(ValueError, match="no documents"):
        rationale_statistics([])
    with pytest.raises(ValueError, match=r"document 1: masks\[2\] is 2"):
        rationale_statistics([[1], [0, 1, 2]])
