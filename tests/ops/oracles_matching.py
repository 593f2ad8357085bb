"""Oracles for the matching layers: a general QP, brute force, and problems built around a known answer."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from tests.ops.oracles import Solution, quadratic_program

KINDS = {
    "xor_at_most_one": {"rows": "exactly_one"},
    "at_most_one_2": {},
    "budget": {"budget": 3},
    "columns_exact": {"columns": "exactly_one"},
    "permutation": {"rows": "exactly_one", "columns": "exactly_one"},
}


def shape_for(kind: str, small: int, large: int) -> tuple[int, int]:
    """A shape that the kind can be asked for."""
    if kind == "permutation":
        return small, small
    return (large, small) if kind == "columns_exact" else (small, large)


def qp(
    scores: np.ndarray, rows: str = "at_most_one", columns: str = "at_most_one", budget: int | None = None
) -> Solution:
    m, n = scores.shape
    sums = {
        "rows": (np.kron(np.eye(m), np.ones((1, n))), np.ones(m), rows),
        "columns": (np.kron(np.ones((1, m)), np.eye(n)), np.ones(n), columns),
    }
    equal = [(a, b) for a, b, kind in sums.values() if kind == "exactly_one"]
    below = [(-np.eye(m * n), np.zeros(m * n))]
    below += [(a, b) for a, b, kind in sums.values() if kind == "at_most_one"]
    if budget is not None:
        below.append((np.ones((1, m * n)), np.array([float(budget)])))
    stack = lambda parts: (np.vstack([a for a, _ in parts]), np.concatenate([b for _, b in parts]))  # noqa: E731
    z, proven = quadratic_program(np.eye(m * n), -scores.ravel(), stack(equal) if equal else None, stack(below))
    return Solution(z.reshape(m, n), proven)


def matchings(m: int, n: int):
    """Every 0/1 matrix with row and column sums at most one."""
    for choice in itertools.product(range(n + 1), repeat=m):
        used = [j for j in choice if j < n]
        if len(set(used)) == len(used):
            y = np.zeros((m, n))
            for i, j in enumerate(choice):
                if j < n:
                    y[i, j] = 1.0
            yield y


def best_value(scores: np.ndarray, rows: str, columns: str, budget: int | None) -> float:
    """The MAP's value by SciPy, a budget by n − k dummy rows and m − k dummy columns."""
    m, n = scores.shape
    if "exactly_one" in (rows, columns):
        i, j = linear_sum_assignment(scores, maximize=True)
        return float(scores[i, j].sum())
    k = min(m, n) if budget is None else min(budget, m, n)
    wide = np.zeros((m + n - k, m + n - k))
    wide[:m, :n] = np.maximum(scores, 0.0)
    wide[m:, n:] = -1e9
    i, j = linear_sum_assignment(wide, maximize=True)
    return float(wide[i, j].sum())


def planted(rng: np.random.Generator, m: int, n: int, kind: str, scale: float) -> tuple[np.ndarray, np.ndarray, dict]:
    """Scores whose projection is known: S = Z + (multipliers of the tight sums) − (multipliers of the zeros).

    Z is a mixture of matchings, so feasible; by the optimality conditions it is the answer at every scale.
    """
    options = dict(KINDS[kind])
    exact_rows, exact_columns = options.get("rows") == "exactly_one", options.get("columns") == "exactly_one"
    size = min(m, n)
    budget = int(rng.integers(1, size + 1)) if "budget" in options else None
    weights = rng.dirichlet(np.ones(4))
    z = np.zeros((m, n))
    for weight in weights:
        count = size
        if not (exact_rows or exact_columns):
            count = int(rng.integers(0, size + 1))
            if budget is not None:
                count = min(count, budget) if rng.random() < 0.5 else min(budget, size)
        z[rng.permutation(m)[:count], rng.permutation(n)[:count]] += weight
    row_tight, column_tight = z.sum(1) > 1 - 1e-9, z.sum(0) > 1 - 1e-9
    a = rng.standard_normal(m) if exact_rows else rng.exponential(size=m) * row_tight
    b = rng.standard_normal(n) if exact_columns else rng.exponential(size=n) * column_tight
    c = 0.0
    if budget is not None:
        options["budget"] = budget
        c = float(rng.exponential() * (z.sum() > budget - 1e-9))
    off = rng.exponential(size=(m, n)) * (z == 0)
    return z + scale * (a[:, None] + b + c - off), z, options


def violation(
    z: torch.Tensor, rows: str = "at_most_one", columns: str = "at_most_one", budget: int | None = None
) -> float:
    """How far `z` is outside the polytope."""
    parts = [(-z).amax()]
    for dim, kind in ((-1, rows), (-2, columns)):
        excess = z.double().sum(dim) - 1
        parts.append(excess.abs().amax() if kind == "exactly_one" else excess.amax())
    if budget is not None:
        parts.append((z.double().sum((-1, -2)) - budget).amax())
    return max(float(part) for part in parts)


def randn(*shape: int, seed: int = 0, scale: float = 1.0) -> torch.Tensor:
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
