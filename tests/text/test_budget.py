import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rationalizer.text import Budget


def lengths(*values):
    return torch.arange(max(values))[None] < torch.tensor(values)[:, None]


@pytest.mark.parametrize("share", [0.02, 0.1, 0.15, 0.2, 0.5, 1.0])
def test_share_rounds_half_to_even_with_minimum_one(share):
    sizes = list(range(1, 200))
    expected = [max(1, round(share * n)) for n in sizes]
    assert Budget.share(share).word_limit(lengths(*sizes)).tolist() == expected


def test_count_is_at_most_the_length():
    assert Budget.count(3).word_limit(lengths(1, 3, 7)).tolist() == [1, 3, 3]


def test_empty_text_has_limit_zero():
    mask = torch.tensor([[False, False], [True, False]])
    assert Budget.share(0.5).word_limit(mask).tolist() == [0, 1]
    assert Budget.count(2).word_limit(mask).tolist() == [0, 1]


@pytest.mark.parametrize(("budget", "expected"), [(4, [4, 4, 3, 1]), (0.5, [2, 2, 2, 1]), (1.0, [5, 5, 3, 1])])
def test_pair_limit_uses_the_shorter_text(budget, expected):
    assert Budget.parse(budget).word_limit(lengths(7, 5, 3, 1), lengths(5, 5, 4, 2)).tolist() == expected


@pytest.mark.parametrize(
    ("written", "budget"),
    [
        (0.2, Budget.share(0.2)),
        ("0.2", Budget.share(0.2)),
        ("20%", Budget.share(0.2)),
        (" 12.5% ", Budget.share(0.125)),
        (1.0, Budget.share(1)),
        ("100%", Budget.share(1)),
        (1, Budget.count(1)),
        ("1", Budget.count(1)),
        (7, Budget.count(7)),
        (np.float32(0.5), Budget.share(0.5)),
        (np.int64(3), Budget.count(3)),
        (Budget.count(2), Budget.count(2)),
    ],
)
def test_parse(written, budget):
    assert Budget.parse(written) == budget
    assert type(Budget.parse(written).amount) in (int, float)


def test_count_one_differs_from_share_one():
    one, everything = Budget.count(1), Budget.share(1)
    assert one != everything
    assert len({one, everything}) == 2
    assert (str(one), str(everything)) == ("1", "100%")
    assert {one: "a"}.get(everything) is None


@given(st.one_of(st.integers(1, 10**6).map(Budget.count), st.floats(1e-8, 1).map(Budget.share)))
def test_str_round_trip(budget):
    assert Budget.parse(str(budget)) == budget


def test_describe():
    written = [Budget.parse(one).describe() for one in (0.02, 0.125, 1, 7)]
    assert written == ["2%", "12.5%", "1 word", "7 words"]
    assert Budget.count(4).describe("pair") == "4 pairs"


@pytest.mark.parametrize(
    "bad", [0, -1, 0.0, 1.5, float("nan"), float("inf"), 1e-9, True, "lots", "0", "0%", "101%", "-5", "", None]
)
def test_invalid_budget_raises(bad):
    with pytest.raises(ValueError, match=r"budget.*write a share such as 20% or 0\.2, or a count of words such as 5"):
        Budget.parse(bad)


def test_float_count_error_suggests_an_integer():
    with pytest.raises(ValueError, match="write 5 for a count"):
        Budget.parse(5.0)
