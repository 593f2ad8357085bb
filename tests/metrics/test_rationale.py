import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rationalizer.metrics import rationale_statistics


def test_by_hand():
    found = rationale_statistics([[1, 1, 0, 1], [0, 0], [1], []])
    assert found.fraction.values.tolist() == [0.75, 0, 1, 0]
    assert found.tokens.values.tolist() == [3, 0, 1, 0]
    assert found.spans.values.tolist() == [2, 0, 1, 0]
    assert (found.fraction.mean, found.fraction.minimum, found.fraction.maximum) == (0.4375, 0, 1)
    assert found.tokens.mean == 1
    assert found.tokens.histogram.tolist() == [2, 1, 0, 1]
    assert found.tokens.edges.tolist() == [0, 1, 2, 3, 4]
    assert found.spans.histogram.tolist() == [2, 1, 1]
    assert found.fraction.histogram[[0, 15, 19]].tolist() == [2, 1, 1]


@given(st.lists(st.lists(st.booleans(), max_size=15), min_size=1, max_size=10))
def test_every_document_is_in_one_bin(masks):
    found = rationale_statistics(masks)
    for statistic in (found.fraction, found.tokens, found.spans):
        assert statistic.histogram.sum() == len(masks)
        assert len(statistic.edges) == len(statistic.histogram) + 1
        assert statistic.minimum <= statistic.mean <= statistic.maximum
    assert (found.spans.values <= found.tokens.values).all()
    assert ((found.spans.values == 0) == (found.tokens.values == 0)).all()


@pytest.mark.parametrize("fifth", range(1, 5))
def test_a_fraction_on_an_edge_belongs_to_the_bin_above(fifth):
    mask = np.arange(5) < fifth
    assert rationale_statistics([mask]).fraction.histogram[4 * fifth] == 1


def test_errors():
    with pytest.raises(ValueError, match="no documents"):
        rationale_statistics([])
    with pytest.raises(ValueError, match=r"document 1: masks\[2\] is 2"):
        rationale_statistics([[1], [0, 1, 2]])
