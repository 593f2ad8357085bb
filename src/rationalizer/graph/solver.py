"""Solve a program exactly: interior point and polish for what is explicit, column generation for what has an oracle.

Structured factors enter through known configurations. Each round solves the program over these, asks every oracle for
the best configuration under the current multipliers, and adds it; when no oracle has anything better, the solution
over the known configurations is the solution over all. Early rounds stop the interior point far from the boundary:
central multipliers find good configurations sooner than extreme ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rationalizer.graph.configurations import Columns, ask, grown
from rationalizer.graph.kernels.interior_cpu import INFEASIBLE
from rationalizer.graph.kernels.solver_cpu import EXACT, solve_rows
from rationalizer.graph.literals import BoolArray, IntArray
from rationalizer.graph.program import Array, Program
from rationalizer.ops.kernels.numba_runtime import for_rows, host

_COARSE = 1e-2
_TOLERANCE = 1e-9


@dataclass
class Result:
    """What a solver found, instance by instance."""

    x: Array  # (batch, entries)
    weights: Array  # (batch, capacity of the columns)
    multipliers: Array  # (batch, rows + structured factors)
    status: Any  # (batch, entries + rows + capacity), int8: the face
    columns: Columns
    iterations: IntArray
    residual: Array
    tolerance: Array
    feasible: BoolArray

    @property
    def converged(self) -> BoolArray:
        return self.residual <= self.tolerance

    def fit_columns(self) -> None:
        """Make room for columns added since the last solve."""
        plain = self.status.shape[1] - self.weights.shape[1]
        self.weights = grown(self.weights, self.columns.capacity)
        self.status = grown(self.status, plain + self.columns.capacity)


def solve(
    program: Program,
    temperature: float,
    max_rounds: int,
    *,
    fixed: IntArray | None = None,
    columns: Columns | None = None,
    todo: BoolArray | None = None,
) -> Result:
    """Solve the instances in `todo`; `fixed` (batch, variables) holds 0 or 1 where branching has decided, else −1."""
    batch, n_rows = program.active.shape
    base = np.zeros_like(program.upper)
    if fixed is not None:
        program, base = restricted(program, fixed)
    columns = Columns(program) if columns is None else columns
    costs = host(program.costs)
    scale = np.abs(np.where(program.upper > 0, costs, 0.0)).max(axis=1, initial=1.0)
    result = blank(program, columns, scale)
    todo = np.ones(batch, np.bool_) if todo is None else todo.copy()
    result.residual[~todo] = 0.0
    if not program.structured:
        ended = run(program, costs, np.full(batch, EXACT), todo, result)
        result.feasible = ended != INFEASIBLE
        result.x += base
        return result
    fresh = todo & (columns.known == 0)
    if fresh.any():
        ask(program, columns, temperature, _literal_scores(program, costs), _nothing(program), fresh)
    gap = np.full(batch, _COARSE)
    for remaining in range(max_rounds, 0, -1):
        if remaining == 1:
            gap[:] = EXACT  # so that what is returned lies on a face, optimal or not
        ended = run(program, costs, gap, todo, result)
        # Multipliers at the price of a violation make the oracles look for configurations that end it.
        stuck = todo & (ended == INFEASIBLE) & (gap <= EXACT)
        duals, limits = result.multipliers[:, :n_rows], result.multipliers[:, n_rows:]
        noise = np.maximum(result.tolerance, 1e-10 * np.abs(result.multipliers).max(axis=1))
        better, added = ask(program, columns, temperature, duals, limits, todo, margin=-noise)
        result.feasible &= ~stuck | added
        at_end = todo & (gap <= EXACT) & ~stuck
        ends = at_end & ~added
        result.residual[at_end] = np.maximum(result.residual[at_end], better[at_end])
        todo &= ~ends & result.feasible
        if not todo.any():
            break
        gap = np.minimum(gap, 0.1 * np.maximum(better, 0.0) / scale)
        gap[(gap < 1e-7) | ~added] = EXACT
    result.fit_columns()
    result.x += base
    return result


def blank(program: Program, columns: Columns, scale: Array) -> Result:
    batch, n_rows = program.active.shape
    entries = program.upper.shape[1]
    return Result(
        x=np.zeros((batch, entries)),
        weights=np.zeros((batch, columns.capacity)),
        multipliers=np.zeros((batch, n_rows + program.copy_size.size)),
        status=np.zeros((batch, entries + n_rows + columns.capacity), np.int8),
        columns=columns,
        iterations=np.zeros(batch, np.int64),
        residual=np.full(batch, np.inf),
        # Scores of 1e5 are known to 1e-11 only.
        tolerance=_TOLERANCE * np.maximum(1.0, 1e-4 * scale),
        feasible=np.ones(batch, np.bool_),
    )


def run(program: Program, costs: Array, gap: Array, todo: BoolArray, result: Result) -> IntArray:
    """One solve over the known columns, into `result`; returns how each instance ended."""
    result.fit_columns()
    columns = result.columns
    ended, steps = np.zeros(program.batch, np.int64), np.zeros(program.batch, np.int64)
    result.residual[todo] = np.inf
    for_rows(
        solve_rows, program.batch, 10**9, todo, gap, result.tolerance, program.indptr, program.rows,
        program.coefficients, program.early, program.row_first, program.quadratic, program.copy_rows, program.copy_size,
        program.active, costs, program.upper, program.slack_upper, program.rhs, columns.known, columns.configurations,
        columns.owner, columns.costs, result.x, result.weights, result.multipliers, result.status, ended, steps,
        result.residual,
    )  # fmt: skip
    result.iterations += steps
    return ended


def restricted(program: Program, fixed: IntArray) -> tuple[Program, Array]:
    """The program with the entries that `fixed` decides moved to the right-hand side, and those entries' values."""
    base = np.zeros_like(program.upper)
    base[:, : fixed.shape[1]] = fixed == 1
    upper = program.upper.copy()
    upper[:, : fixed.shape[1]][fixed >= 0] = 0.0
    return program.replace(upper=upper, rhs=program.rhs - row_values(program, base)), base


def row_values(program: Program, x: Array) -> Array:
    """A x over the entries alone; 0 on inactive rows."""
    out = np.zeros(program.rhs.shape)
    for b in range(x.shape[0]):
        s = b if program.indptr.shape[0] > 1 else 0
        entry = np.repeat(np.arange(x.shape[1]), np.diff(program.indptr[s]))
        np.add.at(out[b], program.rows[s], program.coefficients[s] * x[b, entry])
    return np.where(program.active, out, 0.0)


def _nothing(program: Program) -> Array:
    return np.full((program.batch, program.copy_size.size), -np.inf)


def _literal_scores(program: Program, costs: Array) -> Array:
    """The scores of the structured factors' literals, row by row: what their first configurations are chosen by."""
    out = np.zeros(program.active.shape)
    first = 0
    for factor in program.structured:
        literals = factor.group
        picked = costs[np.arange(program.batch)[:, None, None], literals.ids]
        signed = np.where(literals.negated, -picked, picked) * literals.graph.present(literals.ids)
        out[:, program.copy_rows[first : first + literals.count, : literals.size]] = signed
        first += literals.count
    return out
