"""Oracles: slow, obviously correct float64 versions of the ops, by enumeration and a general QP solver.

Each takes one row without a mask as NumPy arrays. Needs SciPy and Clarabel (the `test` extra).
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Solution(NamedTuple):
    z: Array
    proven: bool  # optimal to rounding; otherwise an interior point, good to about 1e-4


def quadratic_program(
    quadratic: Array, linear: Array, equal: tuple[Array, Array] | None, below: tuple[Array, Array]
) -> Solution:
    """argmin ½xᵀQx + q·x  s.t.  A x = b,  C x <= d, by an interior-point method.

    An interior point is off by the square root of its gap, so the constraints it shows to be active are then solved as
    equations; that point is returned, and `proven`, where it satisfies all optimality conditions.
    """
    import clarabel
    from scipy import sparse

    blocks, rights, cones = [], [], []
    if equal is not None:
        blocks.append(equal[0])
        rights.append(equal[1])
        cones.append(clarabel.ZeroConeT(len(equal[1])))
    blocks.append(below[0])
    rights.append(below[1])
    cones.append(clarabel.NonnegativeConeT(len(below[1])))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(quadratic)),
        linear,
        sparse.csc_matrix(np.vstack(blocks)),
        np.concatenate(rights),
        cones,
        settings,
    )
    solution = solver.solve()
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        raise RuntimeError(f"the reference QP ended as {solution.status}")
    x, slack, dual = map(np.array, (solution.x, solution.s, solution.z))
    rows, right = np.vstack(blocks), np.concatenate(rights)
    fixed = 0 if equal is None else len(equal[1])
    for ratio in (1.0, 1e-2, 1e2, 1e-4, 1e4, 1e-6, 1e6):
        active = dual > ratio * slack
        active[:fixed] = True
        point = _stationary_point(quadratic, linear, rows, right, active, fixed)
        if point is not None:
            return Solution(point, True)
    return Solution(x, False)


def _stationary_point(
    quadratic: Array, linear: Array, rows: Array, right: Array, active: npt.NDArray[np.bool_], fixed: int
) -> Array | None:
    """The optimum with `active` constraints held as equations, if it satisfies the other optimality conditions too."""
    held = rows[active]
    system = np.block([[quadratic, held.T], [held, np.zeros((len(held), len(held)))]])
    exact = np.linalg.lstsq(system, np.concatenate([-linear, right[active]]), rcond=None)[0]
    point, multipliers = exact[: len(linear)], exact[len(linear) :]
    # In absolute terms, whatever the scores' size: a multiplier off by ε is a z off by ε.
    feasible = np.all(rows @ point <= right + 1e-9) and np.all(held @ point >= right[active] - 1e-9)
    stationary = np.all(np.abs(quadratic @ point + linear + held.T @ multipliers) <= 1e-9)
    optimal = feasible and stationary and np.all(multipliers[fixed:] >= -1e-9)
    return point if optimal else None


def _first(n: int, solution: Solution) -> Solution:
    return Solution(solution.z[:n], solution.proven)


def _box(n: int, extra: int = 0) -> tuple[Array, Array]:
    wide = np.hstack([np.eye(n), np.zeros((n, extra))])
    return np.vstack([wide, -wide]), np.concatenate([np.ones(n), np.zeros(n)])


def sparsemax(s: Array) -> Solution:
    n = len(s)
    return quadratic_program(np.eye(n), -s, (np.ones((1, n)), np.ones(1)), (-np.eye(n), np.zeros(n)))


def fusedmax(s: Array, tv: float) -> Solution:
    """One extra variable t_i >= |z_i − z_{i+1}| an edge."""
    if tv == 0:  # without its variables, whose constraints would leave the multipliers open
        return sparsemax(s)
    n, m = len(s), len(s) - 1
    difference = np.eye(m, n) - np.eye(m, n, 1)
    below = np.vstack(
        [
            np.hstack([-np.eye(n), np.zeros((n, m))]),
            np.hstack([difference, -np.eye(m)]),
            np.hstack([-difference, -np.eye(m)]),
        ]
    )
    linear = np.concatenate([-s, np.full(m, tv)])
    equal = (np.concatenate([np.ones(n), np.zeros(m)])[None], np.ones(1))
    quadratic = np.diag(np.concatenate([np.ones(n), np.zeros(m)]))
    return _first(n, quadratic_program(quadratic, linear, equal, (below, np.zeros(n + 2 * m))))


def budget(s: Array, limit: int, least: int = 0) -> Solution:
    n = len(s)
    box, bound = _box(n)
    below = np.vstack([box, np.ones((1, n)), -np.ones((1, n))])
    return quadratic_program(np.eye(n), -s, None, (below, np.append(bound, [float(limit), -float(min(least, n))])))


def pair_budget(s: Array, r: Array, limit: int, least: int = 0) -> Solution:
    """The local polytope, one extra variable e_i an edge: max(0, z_i + z_{i+1} − 1) <= e_i <= min(z_i, z_{i+1})."""
    n, m = len(s), len(s) - 1
    left, right, edge = np.eye(m, n), np.eye(m, n, 1), np.eye(m)
    none = np.zeros((m, n))
    box, bound = _box(n, m)
    below = np.vstack(
        [
            box,
            np.concatenate([np.ones(n), np.zeros(m)])[None],
            -np.concatenate([np.ones(n), np.zeros(m)])[None],
            np.hstack([-left, edge]),
            np.hstack([-right, edge]),
            np.hstack([none, -edge]),
            np.hstack([left + right, -edge]),
        ]
    )
    bounds = np.concatenate([bound, [float(limit), -float(min(least, n))], np.zeros(3 * m), np.ones(m)])
    quadratic = np.diag(np.concatenate([np.ones(n), np.zeros(m)]))
    return _first(n, quadratic_program(quadratic, -np.concatenate([s, r]), None, (below, bounds)))


def sequences(n: int, limit: int, least: int = 0) -> npt.NDArray[np.int8]:
    """All binary sequences of length n with `least` (or n, if that is less) to `limit` ones, a row each."""
    every = np.array(list(itertools.product((0, 1), repeat=n)), dtype=np.int8).reshape(-1, n)
    return every[(every.sum(1) <= limit) & (every.sum(1) >= min(least, n))]


def sequence_scores(s: Array, r: Array, y: npt.NDArray[Any]) -> Array:
    return y @ s + (y[:, :-1] * y[:, 1:]) @ r


def sequence_budget(s: Array, r: Array, limit: int, least: int = 0) -> Solution:
    return _mixture(s, r, sequences(len(s), limit, least).astype(float))


def _mixture(s: Array, r: Array, y: Array) -> Solution:
    """A QP over the weights of the given sequences."""
    count = len(y)
    score = sequence_scores(s, r, y)
    # In terms of (p, z) with z = Yᵀp, so that the quadratic part stays small and well scaled.
    n = len(s)
    quadratic = np.diag(np.concatenate([np.zeros(count), np.ones(n)]))
    equal = np.vstack([np.hstack([y.T, -np.eye(n)]), np.concatenate([np.ones(count), np.zeros(n)])[None]])
    right = np.concatenate([np.zeros(n), [1.0]])
    below = (np.hstack([-np.eye(count), np.zeros((count, n))]), np.zeros(count))
    linear = np.concatenate([score.max() - score, np.zeros(n)])
    z, proven = quadratic_program(quadratic, linear, (equal, right), below)
    return Solution(z[count:], proven)


def sequence_budget_map(s: Array, r: Array, limit: int, least: int = 0) -> Array:
    y = sequences(len(s), limit, least)
    return y[int(np.argmax(sequence_scores(s, r, y)))].astype(float)


def allowed(
    n: int,
    limit: int,
    *,
    least: int = 0,
    spans: int | None = None,
    shortest: int = 1,
    longest: int | None = None,
    unit: npt.NDArray[Any] | None = None,
    fixed: npt.NDArray[Any] | None = None,
    group: npt.NDArray[Any] | None = None,
    per_group: int | None = None,
) -> npt.NDArray[np.int8]:
    """The sequences that keep to all constraints of `ops.spans`, a row each; each constraint checked as it is said."""

    def keeps(y: npt.NDArray[np.int8]) -> bool:
        runs = [len(list(run)) for bit, run in itertools.groupby(y) if bit]
        return (
            (spans is None or len(runs) <= spans)
            and all(run >= shortest and (longest is None or run <= longest) for run in runs)
            and (unit is None or all(y[i] == y[i + 1] for i in range(n - 1) if unit[i] == unit[i + 1]))
            and (fixed is None or all(y[i] == (fixed[i] > 0) for i in range(n) if fixed[i]))
            and (per_group is None or all(y[group == g].sum() <= per_group for g in np.unique(np.asarray(group))))
        )

    every = sequences(n, limit, least)
    return every[[keeps(y) for y in every]]


def spans(s: Array, r: Array, limit: int, **constraints: Any) -> Solution:
    return _mixture(s, r, allowed(len(s), limit, **constraints).astype(float))


def spans_map(s: Array, r: Array, limit: int, **constraints: Any) -> Array:
    y = allowed(len(s), limit, **constraints)
    return y[int(np.argmax(sequence_scores(s, r, y)))].astype(float)


def alignments(
    m: int,
    n: int,
    limit: int | None = None,
    *,
    least: int = 0,
    exactly: bool = False,
    fixed: npt.NDArray[Any] | None = None,
    monotone: bool = False,
) -> npt.NDArray[np.int8]:
    """The 0/1 matchings that keep to all of it, flattened, a row each; each constraint checked as it is said."""

    def keeps(y: npt.NDArray[np.int8]) -> bool:
        links = list(zip(*y.nonzero(), strict=True))
        return (
            (y.sum(0) <= 1).all()
            and (y.sum(1) <= 1).all()
            and (limit is None or (y.sum() == limit if exactly else y.sum() <= limit))
            and y.sum() >= min(least, m, n)
            and (fixed is None or ((y[fixed == 1] == 1).all() and (y[fixed == -1] == 0).all()))
            and (not monotone or all((a - c) * (b - d) > 0 for (a, b), (c, d) in itertools.combinations(links, 2)))
        )

    partners = itertools.product(range(n + 1), repeat=m)  # of each row a column, or the last number for none
    every = (np.eye(n + 1, dtype=np.int8)[list(choice), :n].reshape(m, n) for choice in partners)
    return np.array([y.ravel() for y in every if keeps(y)], dtype=np.int8).reshape(-1, m * n)


def alignment(s: Array, limit: int | None = None, **constraints: Any) -> Solution:
    """A QP over the weights of all alignments of a score matrix."""
    y = alignments(s.shape[0], s.shape[1], limit, **constraints).astype(float)
    z, proven = _mixture(s.ravel(), np.zeros(s.size - 1), y)
    return Solution(z.reshape(s.shape), proven)


def alignment_map(s: Array, limit: int | None = None, **constraints: Any) -> float:
    """What the best alignment scores."""
    return float((alignments(s.shape[0], s.shape[1], limit, **constraints) @ s.ravel()).max())
