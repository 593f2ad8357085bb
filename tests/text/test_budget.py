import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rationalizer.text import Budget
from rationalizer.text.errors import InputError


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
    with pytest.raises(ValueError, match=r"budget.*write a share such as 20%"):
        Budget.parse(bad)


def test_float_count_error_suggests_an_integer():
    with pytest.raises(ValueError, match="write 5 for a count"):
        Budget.parse(5.0)


def test_average_bounds():
    budget = Budget.average(0.18, least=0.08, most=0.35)
    mask = torch.arange(200)[None] < torch.arange(200)[:, None]
    sizes = mask.sum(-1)
    least, most = budget.average_bounds(mask).at_least, budget.word_limit(mask)
    assert (most[1:] == (sizes[1:] * 35 // 100).clamp(min=1)).all()  # never above 35%, but at least one word
    assert (least >= 0.08 * sizes)[sizes > 2].all()
    assert (least <= most).all()
    assert least[0] == most[0] == 0
    narrow = Budget.average(0.35, least=0.3, most=0.4)
    assert narrow.average_bounds(mask).at_least[4] == narrow.word_limit(mask)[4] == 1  # no number from 1.2 to 1.6
    assert Budget.share(0.2).average_bounds(mask) is None


@pytest.mark.parametrize(
    ("written", "budget"),
    [
        ("18% on average", Budget.average(0.18, least=0.09, most=0.36)),
        ("0.18 on average", Budget.average(0.18)),
        ("18% on average, 8% to 35%", Budget.average(0.18, least=0.08, most=0.35)),
        ("60% on average", Budget.average(0.6, least=0.3, most=1.0)),
        ("12.5% on average, 0% to 100%", Budget.average(0.125, least=0, most=1)),
    ],
)
def test_average_in_text_form(written, budget):
    assert Budget.parse(written) == budget
    assert Budget.parse(str(budget)) == budget
    assert Budget.parse(budget.describe()) == budget


@pytest.mark.parametrize(
    "written", ["on average", "18 on average", "18% on average, 20% to 30%", "18% on average, 8%", "0% on average"]
)
def test_malformed_average(written):
    with pytest.raises(InputError) as error:
        Budget.parse(written)
    assert error.value.remedy


def test_messages_name_the_problem():
    problems = {"18% on average, 20% to 30%": "bounds", "150%": "at most 1", "18% on avg": "18% on avg"}
    for written, problem in problems.items():
        with pytest.raises(InputError, match=problem):
            Budget.parse(written)


def test_table_of_the_bounds():
    table = {"shares": [0.1, 0.3], "multipliers": [2.0, 1.0], "least": 0.08, "most": 0.35}
    both = table | {"default_bounds": {"shares": [0.1, 0.3], "multipliers": [6.0, 5.0]}}
    for written, known, multiplier in (
        ("20% on average, 8% to 35%", both, 1.5),
        ("20% on average", both, 5.5),
        ("20% on average, 10% to 40%", both, 5.5),
        ("20% on average, 5% to 60%", both, 1.5),
        ("20% on average", table, 1.5),
        ("60% on average", both, 5.0),
    ):
        assert Budget.parse(written).calibrated(known).multiplier == pytest.approx(multiplier)


def test_average_is_not_a_share():
    assert Budget.average(0.2) != Budget.share(0.2)
    assert Budget.average(0.2) != Budget.average(0.2, most=0.3)


@pytest.mark.parametrize(
    ("written", "budget"),
    [
        ("enough", Budget.enough()),
        ("enough, at most 30%", Budget.enough(0.3)),
        ("enough, 95% certain", Budget.enough(certainty=0.95)),
        ("enough,at most 0.25, 0% certain", Budget.enough(0.25, certainty=0)),
    ],
)
def test_enough_in_text_form(written, budget):
    assert Budget.parse(written) == budget
    assert Budget.parse(str(budget)) == budget
    assert Budget.parse(budget.describe()) == budget
    assert (
        budget.word_limit(lengths(3, 100)).tolist() == Budget.share(budget.amount).word_limit(lengths(3, 100)).tolist()
    )


@pytest.mark.parametrize(
    "written", ["enough, at most 5", "enough at most 30%", "enough, 120% certain", "enough, at most 0%"]
)
def test_malformed_enough(written):
    with pytest.raises(InputError) as error:
        Budget.parse(written)
    assert error.value.remedy
