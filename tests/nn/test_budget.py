import numpy as np
import pytest
import torch

from rationalizer.nn import check_budget, token_budget


def lengths(*values):
    return torch.arange(max(values))[None] < torch.tensor(values)[:, None]


@pytest.mark.parametrize("fraction", [0.02, 0.1, 0.15, 0.2, 0.5, 1.0])
def test_fraction_is_rounded_as_in_python_and_at_least_one(fraction):
    sizes = list(range(1, 200))
    expected = [max(1, round(fraction * n)) for n in sizes]
    assert token_budget(fraction, lengths(*sizes)).tolist() == expected


def test_count_is_cut_to_the_length():
    assert token_budget(3, lengths(1, 3, 7)).tolist() == [1, 3, 3]


def test_text_without_tokens_has_no_budget():
    mask = torch.tensor([[False, False], [True, False]])
    assert token_budget(0.5, mask).tolist() == [0, 1]
    assert token_budget(2, mask).tolist() == [0, 1]


@pytest.mark.parametrize("good", [0.2, 1.0, 1, 7, np.float32(0.5), np.int64(3)])
def test_good_budgets_become_plain_numbers(good):
    checked = check_budget(good)
    assert checked == good
    assert type(checked) in (int, float)


@pytest.mark.parametrize("bad", [0, -1, 0.0, 1.5, float("nan"), True, "0.2", None])
def test_bad_budgets_are_named(bad):
    with pytest.raises(ValueError, match="budget must be a fraction"):
        check_budget(bad)


def test_float_count_gets_its_remedy():
    with pytest.raises(ValueError, match="write 5 for a count"):
        check_budget(5.0)
