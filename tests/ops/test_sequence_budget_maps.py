"""All budgets of a text at once: the same selections as for each budget alone."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rationalizer import ops
from tests.ops.layers import chains, random_mask, row
from tests.ops.test_oracle import tied


@settings(max_examples=300, deadline=None)
@given(st.one_of(chains(longest=9, sign="±"), tied(sign="±")), st.integers(1, 12))
def test_each_budget_as_alone(case, most):
    s, r, _ = case
    y = ops.sequence_budget_maps(row(s), most, transition=row(r))
    alone = [ops.sequence_budget_map(row(s), budget, transition=row(r)) for budget in range(1, most + 1)]
    assert torch.equal(y, torch.stack(alone, 1))


def test_masks_and_leading_dimensions(generator):
    scores = torch.randn(2, 5, 30, generator=generator) - 0.5
    mask = random_mask(10, 30, generator).reshape(2, 5, 30)
    y = ops.sequence_budget_maps(scores, 35, transition=0.2, mask=mask)
    assert y.shape == (2, 5, 35, 30)
    assert y.dtype == scores.dtype
    for budget in (1, 7, 35):
        alone = ops.sequence_budget_map(scores, budget, transition=0.2, mask=mask)
        assert torch.equal(y[:, :, budget - 1], alone)
    assert ops.sequence_budget_maps(torch.zeros(3, 0), 2).shape == (3, 2, 0)


@pytest.mark.parametrize("budget", [0, -1, 2.0, True])
def test_invalid_budget(budget):
    with pytest.raises(ValueError, match="budget"):
        ops.sequence_budget_maps(torch.zeros(1, 3), budget)
