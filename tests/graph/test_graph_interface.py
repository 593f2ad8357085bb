"""Literals and indices, logic factors one by one, padding, errors."""

import warnings

import numpy as np
import pytest
import torch

from rationalizer.graph import (
    AndOut,
    AtMostOne,
    Budget,
    Factor,
    FactorGraph,
    Imply,
    InfeasibleError,
    Or,
    OrOut,
    Pair,
    Sequence,
    SequenceBudget,
    Xor,
    XorOut,
)
from rationalizer.ops import ConvergenceWarning


def graph(*shape, scale=1.0, seed=0, **options):
    scores = scale * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    g = FactorGraph()
    return g, g.variable(scores, **options)


def test_docstring_example():
    g, z = graph(2, 5, 7)
    g.add(Xor(z, dim=-1))
    g.add(AtMostOne(z, dim=-2))
    g.add(Budget(z, 5))
    solution = g.lp_sparsemap()
    torch.testing.assert_close(solution[z].sum(-1), torch.ones(2, 5, dtype=torch.float64))
    assert (solution[z].sum(-2) <= 1 + 1e-9).all()
    assert solution.converged.tolist() == [True, True]
    for report in (solution.iterations, solution.residual, solution.integral):
        assert report.shape == (2,)
    assert (solution.residual < 1e-9).all()


def test_scores_without_factors_are_clipped():
    scores = torch.tensor([[-1.0, 0.3, 2.0, 5.0]], dtype=torch.float64)
    g = FactorGraph()
    z = g.variable(scores)
    assert torch.equal(g.lp_sparsemap()[z], scores.clamp(0, 1))
    g.add(AtMostOne(z[:, 2:]))
    torch.testing.assert_close(g.lp_sparsemap()[z], torch.tensor([[0.0, 0.3, 0.0, 1.0]], dtype=torch.float64))
    assert g.map()[z].tolist() == [[0, 1, 0, 1]]


@pytest.mark.parametrize(
    "index",
    [
        (slice(None), 2, slice(None)),
        (slice(None), slice(None), [0, 3]),
        (..., 1),
        (slice(None), torch.tensor([0, 1]), torch.tensor([2, 3])),
        (slice(None), torch.eye(3, 4, dtype=torch.bool)),
        (torch.arange(2)[:, None], torch.tensor([[0, 1], [2, 0]]), 1),
    ],
)
def test_tensor_indexing(index):
    g, z = graph(2, 3, 4)
    g.add(AtMostOne(z, dim=-1))
    solution = g.lp_sparsemap(solver="general")
    torch.testing.assert_close(solution[z[index]], solution[z][index])
    torch.testing.assert_close(solution[~z[index]], 1 - solution[z][index])
    assert z[index].shape == solution[z][index].shape


def test_factors_per_instance():
    """Index tensors with a batch dimension: each instance has its own graph."""
    scores = torch.randn(3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 1
    picks = torch.tensor([[0, 1, 2], [3, 1, 5], [0, 5, 2]])
    g = FactorGraph()
    z = g.variable(scores)
    g.add(Xor(z[torch.arange(3)[:, None], picks]))
    g.add(Imply(z[:, 0], z[:, 4]))
    together = g.lp_sparsemap()[z]
    for b in range(3):
        h = FactorGraph()
        w = h.variable(scores[b : b + 1])
        h.add(Xor(w[:, picks[b]]))
        h.add(Imply(w[:, 0], w[:, 4]))
        torch.testing.assert_close(h.lp_sparsemap()[w][0], together[b])


def test_several_variables_and_dtypes():
    g = FactorGraph()
    z, w = g.variable(torch.tensor([[0.8, 0.9]])), g.variable(torch.tensor([[0.2]], dtype=torch.float64))
    g.add(OrOut(z, w))
    solution = g.lp_sparsemap()
    assert solution[z].dtype == torch.float32
    assert solution[w].dtype == torch.float64
    assert float(solution[w]) >= float(solution[z].max()) - 1e-6


@pytest.mark.parametrize(
    ("make", "holds"),
    [
        (lambda z: Xor(z), lambda y: y.sum() == 1),
        (lambda z: AtMostOne(z), lambda y: y.sum() <= 1),
        (lambda z: Or(~z), lambda y: y.sum() < 4),
        (lambda z: Budget(z, 2), lambda y: y.sum() <= 2),
        (lambda z: Imply(z[:, 0], ~z[:, 1]), lambda y: not (y[0] and y[1])),
        (lambda z: XorOut(z[:, :3], z[:, 3]), lambda y: y[:3].sum() == y[3]),
        (lambda z: OrOut(z[:, :3], z[:, 3]), lambda y: y[:3].max() == y[3]),
        (lambda z: AndOut([z[:, 0], ~z[:, 1]], z[:, 3]), lambda y: (y[0] and not y[1]) == y[3]),
        (lambda z: SequenceBudget(z, 2), lambda y: y.sum() <= 2),
        (lambda z: Sequence(z.graph_rows), lambda y: y[0] + y[1] == 1 and y[2] + y[3] == 1),
    ],
)
def test_allowed_configurations_of_each_factor(make, holds):
    """The MAP under scores that want a given assignment is that assignment exactly if the factor allows it."""
    for number in range(16):
        wanted = np.array([number >> i & 1 for i in range(4)])
        g = FactorGraph()
        z = g.variable(torch.from_numpy(2.0 * wanted - 1)[None])
        z.graph_rows = z[:, torch.tensor([[0, 1], [2, 3]])]
        g.add(make(z))
        assert bool((g.map()[z][0].numpy() == wanted).all()) == bool(holds(wanted)), wanted


def test_padding_has_no_effect_in_any_factor():
    mask = torch.tensor([[True, True, False], [False, False, False]])
    g, z = graph(2, 3, mask=mask)
    other = g.variable(torch.ones(2, 1, dtype=torch.float64))
    for factor in (Xor(z), Or(~z), Budget(z, 0), AtMostOne(~z[:, 1:]), XorOut(z, other), OrOut(z, other)):
        g.factors = [factor]
        solution = g.lp_sparsemap()
        assert (solution[z][~mask] == 0).all()
        assert solution[other][1].item() == 1.0  # with nothing but padding the factor has no say
    g.factors = [Imply(~z[:, 2], z[:, 0])]
    g.add(Pair(z[:, 2], other[:, 0], -100.0))
    assert g.lp_sparsemap()[other].tolist() == [[1.0], [1.0]]


def test_padding_splits_a_sequence():
    """States on both sides of a padded position still sum to one, and transitions stay on their side."""
    scores = torch.tensor([[[0.1, 0.3], [0.2, 0.9], [0.5, 0.4], [0.2, 0.6], [0.8, 0.1]]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False, True, True]])
    transition = torch.tensor([[0.7, 0.0], [0.1, 0.2]], dtype=torch.float64)
    g = FactorGraph()
    z = g.variable(scores, mask=mask)
    g.add(Sequence(z, transition))
    with_gap = g.lp_sparsemap()[z]
    for part in (slice(0, 2), slice(3, 5)):
        h = FactorGraph()
        w = h.variable(scores[:, part])
        h.add(Sequence(w, transition))
        torch.testing.assert_close(with_gap[:, part], h.lp_sparsemap()[w])
    assert (with_gap[:, 2] == 0).all()


def test_lp_map_returns_a_vertex_at_ties():
    g = FactorGraph()
    z = g.variable(torch.ones(1, 3, 4, dtype=torch.float64))
    g.add(AtMostOne(z, dim=-1))
    g.add(AtMostOne(z, dim=-2))
    g.add(SequenceBudget(z[:, 0], 2))
    solution = g.lp_map()
    assert solution.integral.all()
    assert solution[z].sum() == 3


def test_factor_of_only_padding_has_no_effect():
    mask = torch.tensor([[False, False]])
    g, z = graph(1, 2, mask=mask)
    g.add(SequenceBudget(z, 1, 3.0))
    assert g.lp_sparsemap(solver="general")[z].tolist() == [[0.0, 0.0]]


def test_masked_scores_are_ignored():
    scores = torch.tensor([[1.0, float("nan"), 0.5]], requires_grad=True)
    g = FactorGraph()
    z = g.variable(scores, mask=torch.tensor([[True, False, True]]))
    g.add(Xor(z))
    g.lp_sparsemap(solver="general")[z].sum().backward()
    assert torch.isfinite(scores.grad).all()


def test_half_precision():
    g = FactorGraph()
    z = g.variable(torch.tensor([[0.5, 0.25, 2.0]], dtype=torch.bfloat16))
    g.add(Budget(z[:, :2], 1))
    assert g.lp_sparsemap()[z].dtype == torch.bfloat16


def test_infeasible_graphs_name_instance_and_factors():
    g, z = graph(2, 4)
    g.add(Xor(z[:, :2]))
    g.add(Xor(z[:, 2:]))
    g.add(Budget(z, torch.tensor([2, 1])))
    with pytest.raises(InfeasibleError, match=r"instance 1 .*Xor.*Budget"):
        g.lp_sparsemap()
    with pytest.raises(InfeasibleError, match="instance 1"):
        g.lp_map()
    with pytest.raises(InfeasibleError, match="0/1"):
        g.map()


def test_infeasible_matching_names_the_factors():
    g, z = graph(1, 3, 2)
    g.add(Xor(z, dim=-1))
    g.add(AtMostOne(z, dim=-2))
    with pytest.raises(InfeasibleError, match=r"Xor\(3 over 2.*AtMostOne|AtMostOne.*Xor\(3 over 2"):
        g.lp_sparsemap()


def test_contradicting_xors_are_infeasible():
    g, z = graph(1, 3)
    g.add(Xor(z[:, :2]))
    g.add(Xor(~z[:, :2]))
    g.add(Xor(z))
    g.add(Imply(z[:, 0], z[:, 2]))
    g.add(Imply(z[:, 1], z[:, 2]))
    with pytest.raises(InfeasibleError, match="infeasible"):
        g.lp_sparsemap()


def test_infeasible_structured_factor():
    g, z = graph(1, 4)
    g.add(SequenceBudget(z, 1))
    g.add(Xor(z[:, :2]))
    g.add(Xor(z[:, 2:]))
    with pytest.raises(InfeasibleError, match="SequenceBudget"):
        g.lp_sparsemap()


def test_convergence_warning():
    g, z = graph(2, 12, seed=3)
    g.add(SequenceBudget(z, 4, 1.0))
    with pytest.warns(ConvergenceWarning, match="max_rounds"):
        solution = g.lp_sparsemap(solver="general", max_rounds=2)
    assert not solution.converged.any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert g.lp_sparsemap(solver="general").converged.all()


class Silent(Factor):
    pass


class Wrong(Factor):
    def __init__(self, literals, answer):
        super().__init__(literals)
        self.answer = answer

    def map(self, scores):
        return self.answer


def _other_graph():
    return graph(2, 3)[1]


BAD = [
    (lambda g, z: Xor(z[:, 7]), IndexError, r"\(2, 3\)"),
    (lambda g, z: Xor(z[0]), IndexError, "first dimension"),
    (lambda g, z: Xor(z[:1]), IndexError, "first dimension"),
    (lambda g, z: Xor(z[:, :0]), ValueError, "Xor has no variables"),
    (lambda g, z: Or([]), ValueError, "Or has no variables"),
    (lambda g, z: Xor(z, dim=0), ValueError, "dim=0"),
    (lambda g, z: Xor(z, dim=5), ValueError, "dim=5"),
    (lambda g, z: Xor([z[:, 0], z[:, 0]]), ValueError, "twice"),
    (lambda g, z: OrOut(z, z[:, 0]), ValueError, "twice"),
    (lambda g, z: Xor(torch.zeros(2, 3)), TypeError, "literals"),
    (lambda g, z: Xor([z[:, 0], 1]), TypeError, "got int"),
    (lambda g, z: Imply(z, z[:, :2]), ValueError, "one shape"),
    (lambda g, z: Imply(z, _other_graph()), ValueError, "two graphs"),
    (lambda g, z: XorOut(z, z), ValueError, "needs 1 outputs"),
    (lambda g, z: XorOut(z, 1.0), TypeError, "out"),
    (lambda g, z: Budget(z, -1), ValueError, "got -1"),
    (lambda g, z: Budget(z, 0.2), TypeError, "fraction"),
    (lambda g, z: Budget(z, torch.tensor([1, 2, 3])), ValueError, r"shape \(2,\)"),
    (lambda g, z: Pair(z[:, 0], z[:, 1], torch.zeros(3)), ValueError, "broadcast"),
    (lambda g, z: Pair(z[:, 0], z[:, 1], float("nan")), ValueError, "Pair: scores"),
    (lambda g, z: Pair(z[:, 0], z[:, 1], "1"), TypeError, "number or a tensor"),
    (lambda g, z: SequenceBudget(z, 1, torch.zeros(3)), ValueError, r"\(3,\)"),
    (lambda g, z: iter(z), TypeError, "not iterable"),
]


@pytest.mark.parametrize(("make", "error", "message"), BAD)
def test_bad_factors(make, error, message):
    g, z = graph(2, 3)
    with pytest.raises(error, match=message):
        make(g, z)


def test_bad_graphs():
    g, z = graph(2, 3)
    with pytest.raises(ValueError, match="batch size"):
        g.variable(torch.zeros(3, 1))
    with pytest.raises(TypeError, match=r"torch\.Tensor"):
        g.variable([1.0])
    with pytest.raises(ValueError, match=r"scores\[0, 1\] is nan"):
        g.variable(torch.tensor([[0.0, float("nan")], [0.0, 0.0]]))
    with pytest.raises(ValueError, match="mask"):
        g.variable(torch.zeros(2, 3), mask=torch.ones(2, 2, dtype=torch.bool))
    with pytest.raises(TypeError, match="factor"):
        g.add(z)
    with pytest.raises(ValueError, match="another graph"):
        g.add(Xor(_other_graph()))
    with pytest.raises(ValueError, match="no variables"):
        FactorGraph().lp_sparsemap()
    with pytest.raises(ValueError, match="temperature"):
        g.lp_sparsemap(temperature=0.0)
    with pytest.raises(ValueError, match="fast"):
        g.lp_sparsemap(solver="fast")
    with pytest.raises(KeyError, match="own graph"):
        g.lp_sparsemap()[_other_graph()]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda z: Silent(z), NotImplementedError, "Silent"),
        (lambda z: Wrong(z, torch.zeros(2, 2)), ValueError, r"got \(2, 2\)"),
        (lambda z: Wrong(z, torch.full((2, 3), 0.5)), ValueError, "0 and 1 only"),
        (lambda z: Wrong(z, None), ValueError, "got NoneType"),
    ],
)
def test_bad_oracles(make, error, message):
    g, z = graph(2, 3)
    g.add(make(z))
    with pytest.raises(error, match=message):
        g.lp_sparsemap()
