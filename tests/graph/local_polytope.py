"""The problem of a factor graph written out: every factor by all its configurations, for general solvers.

Independent of the engine: a factor here is a list of literals, a predicate and a score over their 0/1 values.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

Literal = tuple[int, bool]  # variable, negated


@dataclass
class Enumerated:
    literals: Sequence[Literal]
    allowed: Callable[[np.ndarray], bool]
    score: Callable[[np.ndarray], float] = lambda y: 0.0

    def configurations(self) -> tuple[np.ndarray, np.ndarray]:
        every = [np.array(y) for y in itertools.product((0, 1), repeat=len(self.literals))]
        kept = [y for y in every if self.allowed(y)]
        return np.array(kept, float), np.array([self.score(y) for y in kept])


def _equalities(n: int, factors: Sequence[Enumerated]):
    """Rows A x = b over x = (z, weights of every factor's configurations), and the weights' scores."""
    tables = [factor.configurations() for factor in factors]
    total = n + sum(len(scores) for _, scores in tables)
    rows, sides, start = [], [], n
    scores = np.zeros(total - n)
    for factor, (configurations, own) in zip(factors, tables, strict=True):
        stop = start + len(own)
        scores[start - n : stop - n] = own
        row = np.zeros(total)
        row[start:stop] = 1
        rows.append(row)
        sides.append(1.0)
        for position, (variable, negated) in enumerate(factor.literals):
            row = np.zeros(total)
            row[variable] = -1 if negated else 1
            row[start:stop] = -configurations[:, position]
            rows.append(row)
            sides.append(-1.0 if negated else 0.0)
        start = stop
    return np.array(rows).reshape(-1, total), np.array(sides), scores


def lp_sparsemap(scores: np.ndarray, factors: Sequence[Enumerated]) -> np.ndarray:
    n = scores.size
    equal, sides, own = _equalities(n, factors)
    total = equal.shape[1]
    quadratic = sparse.diags(np.r_[np.ones(n), np.zeros(total - n)]).tocsc()
    inequalities = np.vstack([-np.eye(total), np.eye(total)[:n]])
    matrix = sparse.csc_matrix(np.vstack([equal, inequalities]))
    bounds = np.r_[sides, np.zeros(total), np.ones(n)]
    import clarabel  # here: the engine is compared with itself on machines that lack it

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    cones = [clarabel.ZeroConeT(len(sides)), clarabel.NonnegativeConeT(len(inequalities))]
    solver = clarabel.DefaultSolver(quadratic, -np.r_[scores, own], matrix, bounds, cones, settings)
    return np.array(solver.solve().x)[:n]


def lp_value(scores: np.ndarray, factors: Sequence[Enumerated], fixed: np.ndarray | None = None) -> float:
    """The LP's optimal value, with z fixed to `fixed` if given; −inf if infeasible."""
    n = scores.size
    equal, sides, own = _equalities(n, factors)
    bounds = [(0, 1)] * n if fixed is None else [(v, v) for v in fixed]
    bounds += [(0, None)] * own.size
    answer = linprog(-np.r_[scores, own], A_eq=equal, b_eq=sides, bounds=bounds, method="highs")
    return -answer.fun if answer.status == 0 else -np.inf


def best_assignment(scores: np.ndarray, factors: Sequence[Enumerated]) -> float:
    """The value of the best 0/1 assignment, by enumeration; −inf if there is none."""
    best = -np.inf
    for y in itertools.product((0, 1), repeat=scores.size):
        z = np.array(y)
        best = max(best, assignment_value(scores, factors, z))
    return best


def assignment_value(scores: np.ndarray, factors: Sequence[Enumerated], z: np.ndarray) -> float:
    value = float(scores @ z)
    for factor in factors:
        literals = np.array([1 - z[v] if negated else z[v] for v, negated in factor.literals])
        if not factor.allowed(literals):
            return -np.inf
        value += factor.score(literals)
    return value
