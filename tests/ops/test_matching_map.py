"""The best matching against brute force and SciPy's assignment solver."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rationalizer import ops
from tests.ops.oracles_matching import KINDS, best_value, matchings, randn, shape_for, violation

kinds = pytest.mark.parametrize("kind", KINDS)


def allowed(y: np.ndarray, rows: str = "at_most_one", columns: str = "at_most_one", budget: int | None = None) -> bool:
    exact = (rows != "exactly_one" or y.sum(1).min() == 1) and (columns != "exactly_one" or y.sum(0).min() == 1)
    return exact and (budget is None or y.sum() <= budget)


@settings(max_examples=80)
@given(data=st.data())
def test_agrees_with_brute_force(data):
    kind = data.draw(st.sampled_from(list(KINDS)))
    small = data.draw(st.integers(1, 4))
    m, n = shape_for(kind, small, data.draw(st.integers(small, 4)))
    options = dict(KINDS[kind])
    if "budget" in options:
        options["budget"] = data.draw(st.integers(0, small + 1))
    values = data.draw(st.lists(st.integers(-3, 3).map(float), min_size=m * n, max_size=m * n))
    scores = np.array(values).reshape(m, n)
    y = ops.matching_map(torch.tensor(scores), **options).numpy()
    assert allowed(y, **options)
    assert set(np.unique(y)) <= {0.0, 1.0}
    assert (scores * y).sum() == max((scores * other).sum() for other in matchings(m, n) if allowed(other, **options))
    if kind in ("at_most_one_2", "budget"):
        # Pairs that do not raise the score are left out.
        fewest = min(
            other.sum()
            for other in matchings(m, n)
            if allowed(other, **options) and (scores * other).sum() == (scores * y).sum()
        )
        assert y.sum() == fewest


@kinds
@pytest.mark.parametrize("scale", [0.1, 1.0, 1e5])
def test_agrees_with_scipy(kind, scale):
    for seed, (small, large) in enumerate(itertools.product((1, 5, 17, 64), (64, 100))):
        m, n = shape_for(kind, small, large)
        scores = scale * randn(m, n, seed=seed)
        options = {"rows": "at_most_one", "columns": "at_most_one", "budget": None} | KINDS[kind]
        y = ops.matching_map(scores, **options)
        assert violation(y, **options) <= 0
        assert abs(float((scores * y).sum()) - best_value(scores.numpy(), **options)) <= 1e-12 * scale * small * 10


def test_every_budget_gives_the_best_matching_of_its_size():
    scores = randn(12, 15, seed=4)
    values = []
    for budget in range(14):
        y = ops.matching_map(scores, budget=budget)
        value = float((scores * y).sum())
        assert y.sum() <= budget
        assert value == pytest.approx(best_value(scores.numpy(), "at_most_one", "at_most_one", budget), abs=1e-12)
        values.append(value)
    gains = np.diff(values)
    assert (gains >= -1e-12).all()
    assert (np.diff(gains) <= 1e-12).all()


def test_negative_scores_are_matched_only_if_required():
    scores = -torch.ones(3, 4)
    assert ops.matching_map(scores).sum() == 0
    assert ops.matching_map(scores, rows="exactly_one").sum() == 3


def test_ties_are_broken_deterministically():
    scores = torch.ones(40, 6, 8)
    y = ops.matching_map(scores, budget=3)
    assert (y == y[0]).all()
    assert y[0].sum() == 3
