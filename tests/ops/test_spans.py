"""Selections under constraints against enumeration: each constraint, and all of them together."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rationalizer import ops
from tests.ops import oracles
from tests.ops.layers import random_mask, row
from tests.ops.test_oracle import assert_close, assert_jacobian, tied


def constraints(random, n):
    """Some of the constraints, or all; most problems have several feasible selections, few have none."""
    rules = {}
    if random.random() < 0.5:
        rules["spans"] = int(random.integers(0, 4))
    if random.random() < 0.4:
        rules["shortest"] = int(random.integers(1, 4))
    if random.random() < 0.4:
        rules["longest"] = int(random.integers(rules.get("shortest", 1), 5))
    if random.random() < 0.4:
        rules["unit"] = np.cumsum(random.random(n) < 0.6)
    if random.random() < 0.4:
        rules["fixed"] = random.choice(np.array([0, 0, 0, 0, -1, 1], dtype=np.int8), n)
    if random.random() < 0.5:
        rules["group"], rules["per_group"] = np.cumsum(random.random(n) < 0.3), int(random.integers(0, 4))
    return rules


def problems(count):
    """Scores, transitions, budget and constraints, drawn uniformly: simple cases would leave most constraints slack."""
    for seed in range(count):
        random = np.random.default_rng(seed)
        n, scale = int(random.integers(1, 9)), random.choice([0.1, 1.0, 3.0, 30.0, 1e3])
        s = random.normal(size=n) if seed % 3 else np.round(3 * random.normal(size=n)) / 3
        r = random.normal(size=n - 1) * random.choice([0.0, 0.1, 1.0])
        yield s * scale, r * scale, int(random.integers(0, n + 2)), constraints(random, n)


def tensors(rules):
    return {name: row(rule) if isinstance(rule, np.ndarray) else rule for name, rule in rules.items()}


def test_spans():
    for s, r, limit, rules in problems(150):
        if not len(oracles.allowed(len(s), limit, **rules)):
            with pytest.raises(ops.InfeasibleError, match="row 0"):
                ops.spans(row(s), limit, transition=row(r), **tensors(rules))
            continue
        z, info = ops.spans(row(s), limit, transition=row(r), **tensors(rules), return_info=True)
        assert info.converged.all()
        assert_close(z, oracles.spans(s, r, limit, **rules))


def test_spans_map():
    for s, r, limit, rules in problems(500):
        allowed = oracles.allowed(len(s), limit, **rules)
        if not len(allowed):
            with pytest.raises(ops.InfeasibleError, match="row 0"):
                ops.spans_map(row(s), limit, transition=row(r), **tensors(rules))
            continue
        y = ops.spans_map(row(s), limit, transition=row(r), **tensors(rules))[0].numpy()
        assert (allowed == y).all(1).any()
        best = oracles.sequence_scores(s, r, allowed).max()
        assert oracles.sequence_scores(s, r, y[None])[0] == pytest.approx(best, rel=1e-12, abs=1e-12)


def test_units_across_groups():
    for seed in range(60):
        random = np.random.default_rng(seed)
        s, r = random.random(8), np.zeros(7)  # all worth selecting, so that the groups' limits bind
        rules = {"unit": np.cumsum(random.random(8) < 0.7), "group": np.arange(8) // 3, "per_group": 2}
        y = ops.spans_map(row(s), 8, **tensors(rules))[0].numpy()
        np.testing.assert_array_equal(y, oracles.spans_map(s, r, 8, **rules))


@settings(max_examples=60)
@given(tied(sign="±"), st.integers(0, 2**20))
def test_ties(case, seed):
    s, r, limit = case
    rules = constraints(np.random.default_rng(seed), len(s))
    if len(oracles.allowed(len(s), limit, **rules)):
        edges = torch.from_numpy(r)
        assert_close(ops.spans(row(s), limit, transition=edges, **tensors(rules)), oracles.spans(s, r, limit, **rules))

        def layer(x):
            copies = {name: rule.expand(len(x), -1) if isinstance(rule, torch.Tensor) else rule for name, rule in every}
            return ops.spans(x, limit, transition=edges, **copies)

        every = tensors(rules).items()
        assert_jacobian(layer, s)


SENTENCES = torch.arange(24) // 6
QUOTES = {"spans": 2, "shortest": 2, "longest": 4}


def some_rules(rows, generator):
    """What each row alone can be asked for, and its batch with it."""
    fixed = torch.zeros(rows, 24, dtype=torch.int8)
    fixed[:, ::5] = -1
    unit = (torch.rand(rows, 24, generator=generator) < 0.6).cumsum(-1)
    return {"unit": unit, "fixed": fixed, "group": SENTENCES.expand(rows, 24), "per_group": 4}


def test_mask_equals_truncation_and_batch_equals_rows(generator):
    scores = torch.randn(10, 24, dtype=torch.float64, generator=generator)
    mask, rules = random_mask(10, 24, generator), some_rules(10, generator)
    counts = torch.randint(0, 4, (10,), generator=generator)
    garbage = {
        name: rule.masked_fill(~mask, 7) if isinstance(rule, torch.Tensor) else rule for name, rule in rules.items()
    }
    for op in (ops.spans, ops.spans_map):
        z = op(scores.masked_fill(~mask, torch.nan), 6, transition=0.3, mask=mask, spans=counts, **garbage)
        assert (z[~mask] == 0).all()
        for i in range(10):
            real = mask[i]
            short = {name: rule[i, real] if isinstance(rule, torch.Tensor) else rule for name, rule in rules.items()}
            assert torch.equal(z[i, real], op(scores[i, real], 6, transition=0.3, spans=int(counts[i]), **short))


@pytest.mark.parametrize("transition", [0.0, 0.4, -0.4])
def test_gradcheck(transition, generator):
    scores = torch.randn(4, 24, dtype=torch.float64, generator=generator, requires_grad=True)
    edges = (transition + 0.1 * torch.rand(4, 23, dtype=torch.float64, generator=generator)).requires_grad_()
    rules = some_rules(4, generator)

    def layer(s, r):
        return ops.spans(s, 7, transition=r, spans=3, shortest=2, longest=4, temperature=0.7, **rules)

    assert torch.autograd.gradcheck(layer, (scores, edges))


@pytest.mark.parametrize("transition", [0.0, 0.5, -0.5])
def test_no_constraints_equals_sequence_budget(transition, generator):
    scores = torch.randn(20, 30, dtype=torch.float64, generator=generator)
    expected = ops.sequence_budget(scores, 6, transition=transition)
    torch.testing.assert_close(ops.spans(scores, 6, transition=transition), expected, rtol=0, atol=1e-9)
    no_rule = {"spans": 30, "longest": 30, "unit": torch.arange(30).expand(20, 30)}
    torch.testing.assert_close(ops.spans(scores, 6, transition=transition, **no_rule), expected, rtol=0, atol=1e-9)
    best = ops.sequence_budget_map(scores, 6, transition=transition)
    assert torch.equal(ops.spans_map(scores, 6, transition=transition, **no_rule), best)


@pytest.mark.parametrize("transition", [0.5, -0.5])
def test_only_fixed_words_equal_fixed_words_with_a_slack_constraint(transition, generator):
    """The first uses the sequence budget on the free words, the second the dynamic program."""
    scores = torch.randn(20, 14, dtype=torch.float64, generator=generator).requires_grad_()
    edges = (transition + torch.rand(20, 13, dtype=torch.float64, generator=generator)).requires_grad_()
    mask = random_mask(20, 14, generator)
    fixed = torch.randint(-6, 7, (20, 14), generator=generator).clamp(-5, 5).div(5, rounding_mode="trunc")
    weight = torch.randn(20, 14, dtype=torch.float64, generator=generator)
    answers = [
        ops.spans(scores, 6, transition=edges, mask=mask, fixed=fixed, temperature=0.7, **rule)
        for rule in ({}, {"longest": 14})
    ]
    torch.testing.assert_close(*answers, rtol=0, atol=1e-9)
    for inputs in (scores, edges):
        gradients = [torch.autograd.grad((z * weight).sum(), inputs, retain_graph=True)[0] for z in answers]
        torch.testing.assert_close(*gradients, rtol=0, atol=1e-7)
    best = [
        ops.spans_map(scores, 6, transition=edges, mask=mask, fixed=fixed, **rule) for rule in ({}, {"longest": 14})
    ]
    torch.testing.assert_close(*best, rtol=0, atol=0)


def no_other_mixture_is_better(scores, budget, transition, temperature, rules, within=1e-10):
    """The best selection at s − z earns no more there than the mixture does."""
    z, info = ops.spans(scores, budget, transition=transition, temperature=temperature, return_info=True, **rules)
    assert info.converged.all()
    assert (z.sum(-1) <= budget + 1e-9).all()
    rest, r = scores / temperature - z, transition / temperature
    y = ops.spans_map(rest, budget, transition=r, **rules)
    best = (rest * y).sum(-1) + r * (y[:, 1:] * y[:, :-1]).sum(-1)
    at_most = (rest * z).sum(-1) + r * torch.minimum(z[:, 1:], z[:, :-1]).sum(-1)
    assert (at_most >= best - within * (1 + best.abs())).all()
    assert (info.gap <= within * (1 + best.abs())).all()


@pytest.mark.parametrize("n", [30, 120])
@pytest.mark.parametrize("temperature", [1.0, 0.05, 1e-4])
def test_exact_beyond_enumeration(n, temperature, generator):
    scores = 0.3 * torch.randn(3, n, dtype=torch.float64, generator=generator)
    unit, group = (torch.arange(n) // 2).expand(3, n), (torch.arange(n) // 15).expand(3, n)
    for rules in (QUOTES, {"unit": unit, "spans": 3}, {"group": group, "per_group": 3, "shortest": 2}):
        no_other_mixture_is_better(scores, n // 5, 0.01, temperature, rules)


@pytest.mark.parametrize(
    "rules",
    [
        {"longest": 5},
        {"shortest": 3},
        {"spans": 5},
        {"per_group": 12, "group": (torch.arange(150) // 15).expand(2, 150)},
    ],
    ids=["longest", "shortest", "spans", "per_group"],
)
def test_exact_with_the_lagrangian_search(rules, generator):
    """Budgets of more than a hundred words are not counted at every step."""
    scores = 1.0 + 0.3 * torch.randn(2, 150, dtype=torch.float64, generator=generator)
    for budget in (100, 149):  # which binds, and which does not
        no_other_mixture_is_better(scores, budget, 0.1, 1.0, rules)
    must = torch.zeros(2, 150, dtype=torch.int8)
    must[:, 40:43] = 1
    no_other_mixture_is_better(scores, 100, 0.1, 1.0, {**rules, "fixed": must})


@pytest.mark.parametrize("rules", [QUOTES, {"spans": 1}, {"shortest": 3}, {"longest": 2}])
def test_low_temperature_equals_map(rules, generator):
    scores = torch.randn(20, 25, dtype=torch.float64, generator=generator)
    z = ops.spans(scores, 6, transition=0.2, temperature=1e-7, **rules)
    torch.testing.assert_close(z, ops.spans_map(scores, 6, transition=0.2, **rules), rtol=0, atol=1e-8)


def test_tolerance_bounds_the_error(generator):
    scores = 0.5 + 0.3 * torch.randn(4, 60, dtype=torch.float64, generator=generator)
    exact, slow = ops.spans(scores, 12, transition=0.1, spans=3, return_info=True)
    near, quick = ops.spans(scores, 12, transition=0.1, spans=3, tolerance=1e-2, return_info=True)
    assert (near - exact).norm(dim=-1).max() <= 1e-2
    assert quick.iterations.sum() < slow.iterations.sum()


def test_convergence_warning(generator):
    scores = 0.5 + 0.3 * torch.randn(4, 60, dtype=torch.float64, generator=generator)
    with pytest.warns(ops.ConvergenceWarning, match="4 of 4"):
        z = ops.spans(scores, 12, transition=0.1, spans=3, max_iterations=2)
    optimum = ops.spans(scores, 12, transition=0.1, spans=3)
    _, info = ops.spans(scores, 12, transition=0.1, spans=3, max_iterations=2, return_info=True)
    assert (0.5 * (z - optimum).square().sum(-1) <= info.gap + 1e-12).all()


def test_infeasible_row_raises():
    scores = torch.zeros(3, 5)
    fixed = torch.zeros(3, 5, dtype=torch.int8)
    fixed[2, [0, 2, 4]] = 1
    for op in (ops.spans, ops.spans_map):
        with pytest.raises(ops.InfeasibleError, match="row 2"):
            op(scores, 3, spans=2, fixed=fixed)
        assert op(scores, 5, spans=2, fixed=fixed).sum() == 4  # a word between two of them joins them
        with pytest.raises(ops.InfeasibleError, match="row 2"):
            op(scores, 2, fixed=fixed)


@pytest.mark.parametrize("op", [ops.spans, ops.spans_map])
def test_errors(op):
    scores, numbers = torch.randn(2, 4), torch.tensor([[0, 0, 1, 1]] * 2)
    with pytest.raises(ValueError, match="got -1"):
        op(scores, 2, spans=-1)
    with pytest.raises(ValueError, match="got -3 in row 1"):
        op(scores, 2, spans=torch.tensor([1, -3]))
    with pytest.raises(ValueError, match="shortest"):
        op(scores, 2, shortest=0)
    with pytest.raises(ValueError, match="longest"):
        op(scores, 2, shortest=3, longest=2)
    with pytest.raises(TypeError, match=r"2\.5"):
        op(scores, 2, longest=2.5)
    with pytest.raises(ValueError, match="group needs per_group"):
        op(scores, 2, group=numbers)
    with pytest.raises(ValueError, match="per_group needs group"):
        op(scores, 2, per_group=1)
    with pytest.raises(ValueError, match=r"group\[1, 2\] is 0"):
        op(scores, 2, group=torch.tensor([[0, 0, 1, 1], [0, 1, 0, 1]]), per_group=1)
    with pytest.raises(ValueError, match=r"fixed\[0, 3\] is 2"):
        op(scores, 2, spans=1, fixed=torch.tensor([[0, 0, 1, 2], [0, 0, 0, 0]]))
    with pytest.raises(TypeError, match="unit"):
        op(scores, 2, unit=scores)
    with pytest.raises(ValueError, match=r"got \(4,\)"):
        op(scores, 2, unit=numbers[0])


@pytest.mark.parametrize("op", [ops.spans, ops.spans_map])
@pytest.mark.parametrize("constraints", [{}, {"spans": 1}])
@pytest.mark.parametrize("value", [256, 257, -255, -(2**63)])
def test_fixed_values_do_not_wrap(op, constraints, value):
    with pytest.raises(ValueError, match=rf"fixed\[0, 1\] is {value};"):
        op(torch.zeros(1, 3), 2, fixed=torch.tensor([[0, value, 1]]), **constraints)


@pytest.mark.parametrize("op", [ops.spans, ops.spans_map])
@pytest.mark.parametrize("name", ["spans", "longest", "per_group"])
def test_huge_constraints_exclude_nothing(op, name, generator):
    scores = torch.randn(2, 6, generator=generator)
    group = torch.zeros(2, 6, dtype=torch.int64) if name == "per_group" else None
    assert torch.equal(op(scores, 3, group=group, **{name: 2**70}), op(scores, 3, group=group, **{name: 6}))


def test_shortest_beyond_the_text_selects_nothing():
    assert not ops.spans(torch.ones(1, 4), 4, shortest=2**70).any()


def test_empty_batch_as_the_first_call():
    code = "import torch; from rationalizer import ops; print(ops.spans(torch.zeros(0, 4), 2, spans=1).shape)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "[0, 4]" in done.stdout, done.stderr


@pytest.mark.parametrize("op", [ops.spans, ops.spans_map])
def test_too_many_states_raise(op):
    with pytest.raises(ValueError, match="GiB"):
        op(torch.rand(1, 1000), 500, spans=50, longest=100)
