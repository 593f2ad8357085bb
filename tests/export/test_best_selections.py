"""The decoders in NumPy select exactly what the ops select, also at ties (scores are small integers)."""

import numpy as np
import pytest
import torch

from rationalizer import ops
from rationalizer.export.best_matchings import best_alignment
from rationalizer.export.best_sequences import best_sequence, sparsemax, top_k
from rationalizer.export.constrained_sequences import WordConstraints, best_constrained_sequence

N = 9


@pytest.fixture
def random():
    return np.random.default_rng(0)


def scores_of(random, *shape):
    return random.integers(-2, 4, shape).astype(np.float64)


def test_sequences(random):
    for transition in (0.0, 1.0, -1.0, 0.5):
        scores = scores_of(random, 60, N)
        budget = random.integers(0, N + 1, 60)
        least = random.integers(0, budget + 1)
        y = ops.sequence_budget_map(
            torch.from_numpy(scores),
            torch.from_numpy(budget),
            at_least=torch.from_numpy(least),
            transition=transition,
        )
        for row, expected in enumerate(y.numpy()):
            edges = np.full(N, transition)
            assert (best_sequence(scores[row], edges, least[row], budget[row]) == expected).all()


def test_simple_decoders(random):
    scores = scores_of(random, 40, N)
    for row, expected in zip(scores, ops.top_k(torch.from_numpy(scores), 4).numpy(), strict=True):
        assert (top_k(row, 4) == expected).all()
    for row, expected in zip(scores, ops.sparsemax(torch.from_numpy(scores)).numpy(), strict=True):
        np.testing.assert_allclose(sparsemax(row), expected, atol=1e-12)


CONSTRAINTS = [
    ("spans",),
    ("spans", "shortest"),
    ("shortest", "longest"),
    ("unit",),
    ("fixed",),
    ("group", "per_group"),
    ("spans", "unit", "fixed"),
    ("spans", "shortest", "longest", "fixed", "group", "per_group"),
    ("unit", "group", "per_group", "fixed"),
]


@pytest.mark.parametrize("names", CONSTRAINTS, ids="-".join)
def test_constrained_sequences(names, random):
    infeasible = 0
    for _ in range(60):
        every = {
            "spans": int(random.integers(1, 4)),
            "shortest": int(random.integers(1, 4)),
            "longest": int(random.integers(3, 5)),
            "unit": np.cumsum(random.integers(0, 2, N)),
            "fixed": random.choice([-1, 0, 0, 0, 1], N),
            "group": np.cumsum(random.integers(0, 2, N)),
            "per_group": int(random.integers(1, 4)),
        }
        given = {name: every[name] for name in names}
        scores, budget, transition = scores_of(random, N), int(random.integers(0, N + 1)), float(random.integers(-1, 2))
        tensors = {k: torch.from_numpy(v)[None] if isinstance(v, np.ndarray) else v for k, v in given.items()}
        found = best_constrained_sequence(scores, transition, budget, WordConstraints(**given))
        try:
            expected = ops.spans_map(torch.from_numpy(scores)[None], budget, transition=transition, **tensors)[0]
        except ops.InfeasibleError:
            infeasible += 1
            assert found is None
            continue
        assert found is not None
        assert (found == expected.numpy()).all(), (given, scores, budget, transition)
    assert infeasible < 55


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("fixes", [False, True])
@pytest.mark.parametrize("kind", ["free", "budget", "exactly", "complete"])
def test_alignments(kind, fixes, monotone, random):
    for _ in range(60):
        m, n = random.integers(1, 6, 2).tolist()
        scores, budget = scores_of(random, m, n), int(random.integers(1, 6))
        fixed = random.choice([-1, 0, 0, 0, 0, 0, 1], (m, n)) if fixes else None
        arguments = {} if fixed is None else {"fixed": torch.from_numpy(fixed)[None]}
        turned = kind == "complete" and m > n  # rows are the shorter side
        solve, tensor = ops.monotone_matching_map if monotone else ops.matching_map, torch.from_numpy(scores)[None]
        if kind in ("budget", "exactly"):
            arguments |= {"budget": budget, "exactly": kind == "exactly"}
        elif kind == "complete" and monotone:
            arguments |= {"budget": min(m, n), "exactly": True}
        elif kind == "complete":
            arguments |= {"rows": "exactly_one"}
        if turned:
            tensor = tensor.mT
            arguments |= {"fixed": arguments["fixed"].mT} if fixes else {}
        settings = {"budget": budget} if kind in ("budget", "exactly") else {}
        settings |= {"exactly": kind == "exactly", "complete": kind == "complete", "monotone": monotone, "fixed": fixed}
        found = best_alignment(scores, **settings)
        try:
            expected = solve(tensor, **arguments)[0].numpy()
        except ValueError:
            assert found is None
            continue
        assert found is not None
        assert (found == (expected.T if turned else expected)).all(), (scores, settings)
