"""Short runs of the soak tests: their output, and that they detect planted faults."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from soak.__main__ import main
from soak.runner import Tally

from rationalizer import graph, ops

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.long


def table(text):
    """Part: (tried, wrong, unclear, hung)."""
    rows = re.findall(r"^(\w+) +(\d+) +(\d+) +(\d+) +(\d+) +[\d.]+$", text, re.M)
    return {name: tuple(map(int, counts)) for name, *counts in rows}


def test_layers_and_graphs_pass():
    command = [sys.executable, "-m", "soak", "layers", "graphs", "--seed", "1", "--scale", "0.012"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert table(done.stdout) == {"layers": (120, 0, 0, 0), "graphs": (4, 0, 0, 0)}
    assert done.stdout.startswith("seed 1, scale 0.012")


def scaled(solve, by):
    return lambda *args, **kwargs: solve(*args, **kwargs) * by


@pytest.mark.parametrize("by", [1.001, 0.999])  # infeasible, and feasible but not optimal
def test_planted_fault_of_a_layer_is_detected(by, monkeypatch, capsys):
    monkeypatch.setattr(ops, "budget", scaled(ops.budget, by))
    assert main(["layers", "--seed", "1", "--scale", "0.012", "--here"]) == 1
    printed = capsys.readouterr().out
    tried, wrong, _, _ = table(printed)["layers"]
    assert (tried, 3 < wrong <= 10) == (120, True)
    assert set(re.findall(r"layers, case \d+: wrong: (\w+);", printed)) == {"budget"}
    case = re.search(r"repeat: python -m soak (layers --seed 1 --scale 0.012 --case \d+)", printed)[1]
    assert main(case.split()) == 1
    monkeypatch.undo()
    assert main(case.split()) == 0


def test_planted_fault_of_the_graph_solver_is_detected(monkeypatch, capsys):
    solve = graph.FactorGraph.lp_sparsemap
    monkeypatch.setattr(
        graph.FactorGraph, "lp_sparsemap", lambda self, **options: solve(self, temperature=1.01, **options)
    )
    assert main(["graphs", "--seed", "1", "--scale", "0.012", "--here"]) == 1
    assert table(capsys.readouterr().out)["graphs"][1] > 0


def test_case_that_never_returns_is_counted(capsys):
    tally = Tally("layers", 1, 1.0)
    tally.record("started", 7, 10.0)
    tally.fail("hung", "a case did not return")
    assert tally.counts == {"hung": 1}
    assert "python -m soak layers --seed 1 --scale 1 --case 7" in capsys.readouterr().out


def test_unknown_part_is_an_error(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["layer"])
    assert ended.value.code == 2
    assert "there is no part 'layer'; there are: layers, " in capsys.readouterr().err
