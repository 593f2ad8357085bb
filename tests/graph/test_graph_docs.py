"""The guide's examples run as printed, and their factors are right against enumeration."""

import ast
import itertools
import re
from pathlib import Path

import local_polytope
import numpy as np
import pytest
import torch

from rationalizer.constraints import CONSTRAINTS
from rationalizer.discovery import Registry
from rationalizer.graph import Budget, FactorGraph, Or

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "custom-factor.md"


def guide_blocks() -> list[str]:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)
    assert len(blocks) == 5
    return blocks


@pytest.fixture(scope="module")
def examples():
    """The namespaces that the guide's code blocks leave behind; the first block is a signature, not a
    program."""
    spaces = []
    for block in guide_blocks()[1:3]:
        space: dict = {}
        exec(compile(block, str(GUIDE), "exec"), space)
        spaces.append(space)
    return spaces


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def test_whole_sentences_output_in_guide(examples):
    space = examples[0]
    third = 0.1 / 3
    expected = double([[0.4, 0.4, 0.4, 0.35, 0.35, third, third, third]])
    torch.testing.assert_close(space["solution"][space["z"]].detach(), expected)
    assert space["g"].map()[space["z"]].tolist() == [[1, 1, 1, 0, 0, 0, 0, 0]]


def test_at_most_spans_output_in_guide(examples):
    space = examples[1]
    assert space["solution"].converged.all()
    assert space["g"].map()[space["z"]].tolist() == [[1, 1, 1, 0, 1, 1, 0, 0]]
    assert (space["scores"].grad != 0).any()


def spans_of(y):
    return int(y[0] + ((y[1:] == 1) & (y[:-1] == 0)).sum())


def test_at_most_spans_agrees_with_general_solver(examples):
    factor = examples[1]["AtMostSpans"]
    draw = torch.Generator().manual_seed(0)
    for scale in (0.5, 5.0):
        scores = scale * torch.randn(3, 7, dtype=torch.float64, generator=draw)
        g = FactorGraph()
        z = g.variable(scores)
        g.add(factor(z, most=2, penalty=0.3))
        g.add(Budget(z, 4))
        g.add(Or([z[:, 1], z[:, 3], ~z[:, 6]]))
        solution, best = g.lp_sparsemap(), g.map()
        assert solution.converged.all()
        for b in range(3):
            every = [(i, False) for i in range(7)]
            enumerated = [
                local_polytope.Enumerated(every, lambda y: spans_of(y) <= 2, lambda y: -0.3 * spans_of(y)),
                local_polytope.Enumerated(every, lambda y: y.sum() <= 4),
                local_polytope.Enumerated([(1, False), (3, False), (6, True)], lambda y: y.any()),
            ]
            expected = local_polytope.lp_sparsemap(scores[b].numpy(), enumerated)
            np.testing.assert_allclose(solution[z][b].numpy(), expected, atol=1e-6)
            value = local_polytope.assignment_value(scores[b].numpy(), enumerated, best[z][b].numpy())
            assert value == pytest.approx(local_polytope.best_assignment(scores[b].numpy(), enumerated))


@pytest.mark.parametrize("mask", [[1, 1, 1, 1, 1, 0, 0], [1, 0, 1, 1, 0, 1, 1]])
def test_spans_oracle_with_padding(examples, mask):
    mask = torch.tensor([mask]).bool()
    scores = torch.randn(1, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    g = FactorGraph()
    factor = examples[1]["AtMostSpans"](g.variable(scores, mask=mask), most=1, penalty=0.2)
    found = factor.map(torch.where(mask, scores, 0.0))[0]
    kept = scores[0][mask[0]]
    values = [
        float(kept @ double(y)) - 0.2 * spans_of(np.array(y))
        for y in itertools.product((0, 1), repeat=kept.numel())
        if spans_of(np.array(y)) <= 1
    ]
    chosen = found[mask[0]]
    assert float(kept @ chosen) - 0.2 * spans_of(chosen.numpy()) == pytest.approx(max(values))
    assert factor.extra(found[None, None])[0, 0].item() == pytest.approx(-0.2 * spans_of(chosen.numpy()))


def test_gradient_of_the_penalty(examples):
    factor = examples[1]["AtMostSpans"]

    def layer(scores, penalty):
        g = FactorGraph()
        z = g.variable(scores)
        made = factor(z, most=2)
        made.penalty = penalty
        g.add(made)
        return g.lp_sparsemap()[z]

    scores = double([[0.9, -0.2, 0.7, -0.8, 0.6, 0.5, -0.9, 0.4]]).requires_grad_()
    assert torch.autograd.gradcheck(layer, (scores, double(0.13).requires_grad_()), eps=1e-6, atol=1e-6)


def test_factors_in_models_in_guide(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    known = Registry("constraint")
    known.update((name, kind) for name, kind in CONSTRAINTS.items() if name not in ("few-sentences", "few-far"))
    monkeypatch.setattr("rationalizer.constraints.base.CONSTRAINTS", known)
    space = {}
    exec(compile(guide_blocks()[3], str(GUIDE), "exec"), space)
    shown = [line for line in capsys.readouterr().out.splitlines() if "[" in line and "abc]" not in line]
    assert len(shown) == 2
    numbers = [{text[: at.start()].count(".") for at in re.finditer(r"\[", text)} for text in shown]
    assert len(numbers[0]) == 1
    assert len(numbers[1]) <= 2
    assert (tmp_path / "runs/few/config.json").is_file()

    exec(compile(guide_blocks()[4], str(GUIDE), "exec"), space)
    one, two = (ast.literal_eval(line) for line in capsys.readouterr().out.splitlines())
    assert [sum(abs(i - j) > 3 for i, j in links) <= most for links, most in ((one, 1), (two, 2))] == [True, True]
    premise, hypothesis = (text.rstrip(".").split() for text in space["pairs"][0])
    assert (premise.index("boys"), hypothesis.index("Boys")) in two
    assert (tmp_path / "runs/few-far/config.json").is_file()
