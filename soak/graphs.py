"""Random factor graphs against general solvers on the enumerated local polytope."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "graph"))  # not a package

import local_polytope as oracle
from random_graphs import random_graph

from rationalizer.graph import FactorGraph, InfeasibleError
from soak.cases import Case, Soak, Unclear, Wrong, require


def run(soak: Soak) -> None:
    soak.check(300, check_case, seconds=60)


def check_case(case: Case) -> None:
    small = case.chance(0.5)  # small enough to enumerate all assignments
    variables = int(case.random.integers(6, 11 if small else 41))
    factors = int(case.random.integers(1, 10 if small else 21))
    scale = 10.0 ** case.random.uniform(-2, 3)
    seed = int(case.random.integers(2**31))
    case.note(f"random_graph({seed}, {variables}, {factors}, scale={scale!r})")
    scores, build, enumerated = random_graph(seed, variables, factors, scale=scale)
    if case.chance(0.2):
        case.note("scores rounded")
        scores = scores.round()  # ties: several optima
    graph = FactorGraph()
    z = graph.variable(scores)
    build(graph, z)
    values = scores[0].numpy()
    bound = oracle.lp_value(values, enumerated)
    if bound == -np.inf:
        _require_infeasible(graph.lp_sparsemap, solver="general")
        return
    _check_sparsemap(graph, z, values, enumerated)
    if small:
        _check_maps(graph, z, values, enumerated, bound)


def _require_infeasible(solve, **options) -> None:
    try:
        solve(**options)
    except InfeasibleError:
        return
    raise Wrong(f"{solve.__name__} found a solution where there is none")


def _check_sparsemap(graph, z, values, enumerated) -> None:
    solution = graph.lp_sparsemap(solver="general")
    require(solution.converged.all(), "lp_sparsemap did not converge")
    found, expected = solution[z][0].numpy(), oracle.lp_sparsemap(values, enumerated)
    if np.abs(found - expected).max() <= 1e-6:
        return
    ours, theirs = (_quadratic_value(values, enumerated, x) for x in (found, expected))
    # The general solver stops early on some degenerate graphs; then ours is feasible and better.
    slack = 1e-9 * max(1.0, np.abs(values).max())
    message = f"values {ours!r}, general solver {theirs!r}, z differs by {np.abs(found - expected).max():.1e}"
    require(ours > -np.inf and not ours < theirs - slack, "lp_sparsemap is not optimal:", message)
    if not ours > theirs:
        raise Unclear(message)


def _quadratic_value(values, enumerated, z) -> float:
    return oracle.lp_value(values, enumerated, np.round(z, 12)) - 0.5 * z @ z


def _check_maps(graph, z, values, enumerated, bound) -> None:
    near = 1e-7 * max(1.0, abs(bound))
    relaxed = graph.lp_map()
    require(relaxed.converged.all(), "lp_map did not converge")
    attained = oracle.lp_value(values, enumerated, relaxed[z][0].numpy())
    require(abs(attained - bound) <= near, "lp_map attains", attained, "of", bound)
    best = oracle.best_assignment(values, enumerated)
    if best == -np.inf:
        _require_infeasible(graph.map)
        return
    found = graph.map()[z][0].numpy()
    require(set(np.unique(found)) <= {0.0, 1.0}, "map is not 0/1:", found)
    value = oracle.assignment_value(values, enumerated, found)
    require(abs(value - best) <= near, "map attains", value, "of", best)
    if relaxed.integral.all():
        require(abs(attained - best) <= near, "lp_map calls itself integral at", attained, "but the best is", best)
