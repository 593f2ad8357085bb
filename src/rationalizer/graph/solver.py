"""Solve a program exactly: an interior-point method and a polish for explicit rows, column generation for oracles.

Structured factors enter through known configurations. Each round solves the program over these, queries every oracle
for the best configuration under the current multipliers, and adds it; if no oracle returns a better one, the solution
over the known configurations is optimal over all.

If no variable is in two structured factors, each round continues from the exact solution of the one before. Otherwise,
and in linear programs, there are many optimal multipliers, of which central ones lead to good configurations sooner
than extreme ones; so early rounds stop an interior point far from the boundary instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rationalizer.graph.column_pool import ColumnPool, enlarge, query_oracles
from rationalizer.graph.kernels.interior_cpu import INFEASIBLE
from rationalizer.graph.kernels.solver_cpu import EXACT, solve_rows
from rationalizer.graph.literals import BoolArray, IntArray
from rationalizer.graph.program import Array, Program
from rationalizer.ops.kernels.numba_runtime import for_rows, host

_COARSE = 1e-2
_TOLERANCE = 1e-9


@dataclass
class SolverResult:
    """The solution of each instance."""

    x: Array  # (batch, entries)
    weights: Array  # (batch, capacity of the pool)
    multipliers: Array  # (batch, rows + structured factors)
    status: Any  # (batch, entries + rows + capacity), int8: the face
    columns: ColumnPool
    iterations: IntArray
    residual: Array
    tolerance: Array
    feasible: BoolArray

    @property
    def converged(self) -> BoolArray:
        return self.residual <= self.tolerance

    def fit_columns(self) -> None:
        """Enlarge arrays for the columns added since the last solve."""
        plain = self.status.shape[1] - self.weights.shape[1]
        self.weights = enlarge(self.weights, self.columns.capacity)
        self.status = enlarge(self.status, plain + self.columns.capacity)


def solve(
    program: Program,
    temperature: float,
    max_rounds: int,
    *,
    fixed: IntArray | None = None,
    columns: ColumnPool | None = None,
    todo: BoolArray | None = None,
) -> SolverResult:
    """Solve the instances in `todo`; `fixed` (batch, variables) is 0 or 1 for variables fixed by branching, else −1."""
    batch, n_rows = program.active.shape
    base = np.zeros_like(program.upper)
    if fixed is not None:
        program, base = fix_variables(program, fixed)
    columns = ColumnPool(program) if columns is None else columns
    costs = host(program.costs)
    scale = np.abs(np.where(program.upper > 0, costs, 0.0)).max(axis=1, initial=1.0)
    soft = violation_costs(program)
    scale = np.maximum(scale, np.where(soft < np.inf, soft, 0.0).max(axis=1, initial=1.0))
    result = empty_result(program, columns, scale)
    todo = np.ones(batch, np.bool_) if todo is None else todo.copy()
    result.residual[~todo] = 0.0
    if not program.structured:
        outcome = solve_known_columns(program, costs, np.full(batch, EXACT), todo, result)
        result.feasible = outcome != INFEASIBLE
        result.x += base
        return result
    fresh = todo & (columns.known == 0)
    if fresh.any():
        scores = literal_values(program, costs)  # first configurations are chosen by the literals' scores
        query_oracles(program, columns, temperature, scores, np.full((batch, program.copy_size.size), -np.inf), fresh)
    continues = program.quadratic.any() and program.early == program.copy_size.sum()
    gap = np.full(batch, EXACT if continues else _COARSE)
    warm = np.zeros(batch, np.bool_)
    for remaining in range(max_rounds, 0, -1):
        if remaining == 1:
            gap[:] = EXACT  # so that the returned solution lies on a face, optimal or not
        outcome = solve_known_columns(program, costs, gap, todo, result, warm)
        # Multipliers at the cost of a violation lead the oracles to configurations that end it.
        stuck = todo & (outcome == INFEASIBLE) & (gap <= EXACT)
        duals, thresholds = result.multipliers[:, :n_rows], result.multipliers[:, n_rows:]
        noise = np.maximum(result.tolerance, 1e-10 * np.abs(result.multipliers).max(axis=1))
        excess, added = query_oracles(program, columns, temperature, duals, thresholds, todo, margin=-noise)
        result.feasible &= ~stuck | added
        at_end = todo & (gap <= EXACT) & ~stuck
        ends = at_end & ~added
        if (ends & warm).any():
            solve_known_columns(program, costs, gap, ends & warm, result, warm, settle=True)
        warm = at_end & (result.residual <= result.tolerance) & continues
        result.residual[at_end] = np.maximum(result.residual[at_end], excess[at_end])
        todo &= ~ends & result.feasible
        if not todo.any():
            break
        gap = np.minimum(gap, 0.1 * np.maximum(excess, 0.0) / scale)
        gap[(gap < 1e-7) | ~added] = EXACT
    result.fit_columns()
    result.x += base
    return result


def empty_result(program: Program, columns: ColumnPool, scale: Array) -> SolverResult:
    batch, n_rows = program.active.shape
    entries = program.upper.shape[1]
    return SolverResult(
        x=np.zeros((batch, entries)),
        weights=np.zeros((batch, columns.capacity)),
        multipliers=np.zeros((batch, n_rows + program.copy_size.size)),
        status=np.zeros((batch, entries + n_rows + columns.capacity), np.int8),
        columns=columns,
        iterations=np.zeros(batch, np.int64),
        residual=np.full(batch, np.inf),
        # The rounding error of scores of 1e5 is 1e-11.
        tolerance=_TOLERANCE * np.maximum(1.0, 1e-4 * scale),
        feasible=np.ones(batch, np.bool_),
    )


def solve_known_columns(
    program: Program,
    costs: Array,
    gap: Array,
    todo: BoolArray,
    result: SolverResult,
    warm: BoolArray | None = None,
    settle: bool = False,
) -> IntArray:
    """Solve over the known columns, into `result`; returns the outcome of each instance.

    For instances in `warm`, `result` has the exact solution over earlier columns. Its face may be ambiguous unless
    `settle`.
    """
    warm = np.zeros(program.batch, np.bool_) if warm is None else warm
    result.fit_columns()
    columns = result.columns
    outcome, steps = np.zeros(program.batch, np.int64), np.zeros(program.batch, np.int64)
    result.residual[todo] = np.inf
    for_rows(
        solve_rows, program.batch, 10**9, todo, warm, settle, gap, result.tolerance, program.indptr, program.rows,
        program.coefficients, program.early, program.row_first, program.quadratic, program.copy_rows, program.copy_size,
        program.active, violation_costs(program), costs, program.upper, program.slack_upper, program.rhs, columns.known,
        columns.configurations, columns.owner, columns.costs, result.x, result.weights, result.multipliers,
        result.status, outcome, steps, result.residual,
    )  # fmt: skip
    result.iterations += steps
    return outcome


def fix_variables(program: Program, fixed: IntArray) -> tuple[Program, Array]:
    """Return the program with fixed entries moved to the right-hand side, and the values of these entries."""
    base = np.zeros_like(program.upper)
    base[:, : fixed.shape[1]] = fixed == 1
    upper = program.upper.copy()
    upper[:, : fixed.shape[1]][fixed >= 0] = 0.0
    return program.replace(upper=upper, rhs=program.rhs - row_values(program, base)), base


def violation_costs(program: Program) -> Array:
    """Return the costs of violating the rows (batch, rows): inf for those that must hold and for inactive ones."""
    return np.where(program.active, host(program.violation_costs), np.inf)


def row_values(program: Program, x: Array) -> Array:
    """Return A x over the entries alone."""
    batch, count = program.rhs.shape
    entry = np.stack([np.repeat(np.arange(x.shape[1]), np.diff(indptr)) for indptr in program.indptr])
    terms = program.coefficients * np.take_along_axis(x, np.broadcast_to(entry, (batch, entry.shape[1])), axis=1)
    rows = program.rows + count * np.arange(batch)[:, None]
    sums = np.bincount(rows.ravel(), terms.ravel(), batch * count)
    return sums.astype(np.float64, copy=False).reshape(batch, count)


def literal_values(program: Program, entries: npt.NDArray[Any]) -> Array:
    """(batch, rows): signed values of the structured factors' literals, from values of the entries; 0 on padding."""
    out = np.zeros(program.active.shape)
    first = 0
    for factor in program.structured:
        group = factor.group
        picked = entries[np.arange(program.batch)[:, None, None], group.ids].astype(np.float64)
        signed = np.where(group.negated, -picked, picked) * group.graph.present(group.ids)
        out[:, program.copy_rows[first : first + group.count, : group.size]] = signed
        first += group.count
    return out
