"""LP-MAP: a vertex of the local polytope that maximises the scores; and branch and bound on top of it."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from rationalizer.graph.columns import Columns
from rationalizer.graph.faces import project
from rationalizer.graph.kernels.face_cpu import AT_LOWER, AT_UPPER, FREE
from rationalizer.graph.kernels.interior_cpu import INFEASIBLE
from rationalizer.graph.kernels.solve_cpu import EXACT
from rationalizer.graph.literals import BoolArray, IntArray
from rationalizer.graph.program import Array, InfeasibleError, Program
from rationalizer.graph.solve import Result, restricted, row_values, run, solve
from rationalizer.ops._inputs import host

_INTEGRAL = 1e-7


def lp_vertex(
    program: Program,
    max_rounds: int,
    *,
    fixed: IntArray | None = None,
    columns: Columns | None = None,
    todo: BoolArray | None = None,
) -> tuple[Result, Array]:
    """Solve the LP, and walk to a vertex of its optimal face where it has several optima. Also returns the values.

    An interior point ends in the middle of the optimal face. The vertex is where a second, generic objective over that
    face is largest.
    """
    todo = np.ones(program.batch, np.bool_) if todo is None else todo
    result = solve(program, 1.0, max_rounds, fixed=fixed, columns=columns, todo=todo)
    known = np.arange(result.columns.capacity) < result.columns.known[:, None]
    values = (host(program.costs) * result.x).sum(1) + (result.columns.costs * result.weights * known).sum(1)
    generic = np.random.default_rng(0).uniform(0.5, 1.0, program.upper.shape)
    generic[:, ::2] *= -1
    moves, _ = project(program.replace(quadratic=np.ones_like(program.quadratic)), result, generic)
    moving = np.abs(moves[:, : program.variables]).max(axis=1, initial=0.0) > 1e-6
    several = todo & result.feasible & result.converged & moving
    if several.any():
        _walk(program, result, generic, fixed, several)
    near = np.abs(result.x - np.round(result.x)) < _INTEGRAL
    result.x[near] = np.round(result.x[near])
    return result, values


def _walk(program: Program, result: Result, generic: Array, fixed: IntArray | None, todo: BoolArray) -> None:
    """Replace the solutions in `todo` by vertices of their optimal faces."""
    entries, n_rows = program.upper.shape[1], program.active.shape[1]
    if fixed is not None:
        program, base = restricted(program, fixed)
    else:
        base = np.zeros_like(program.upper)
    status = result.status
    at_upper = status[:, :entries] == AT_UPPER
    held = np.where(at_upper, program.upper, 0.0)
    slack = status[:, entries : entries + n_rows]
    # Rows that bind stay bound; entries at a bound stay there; configurations without weight go.
    slack_upper = np.where(slack == FREE, program.slack_upper, 0.0)
    rhs = program.rhs - np.where(slack == AT_UPPER, program.slack_upper, 0.0) - row_values(program, held)
    upper = np.where(status[:, :entries] == FREE, program.upper, 0.0)
    face = program.replace(rhs=rhs, slack_upper=slack_upper, upper=upper, quadratic=np.zeros(entries))
    kept = result.columns.keep(status[:, entries + n_rows :] != AT_LOWER, program)
    kept.costs[:] = 0.0
    vertex = Result(
        x=np.zeros_like(result.x),
        weights=np.zeros_like(kept.costs),
        multipliers=np.zeros_like(result.multipliers),
        status=np.zeros((program.batch, entries + n_rows + kept.capacity), np.int8),
        columns=kept,
        iterations=result.iterations,
        residual=np.full(program.batch, np.inf),
        tolerance=result.tolerance,
        feasible=result.feasible,
    )
    ended = run(face, generic, np.full(program.batch, EXACT), todo, vertex)
    good = todo & (ended != INFEASIBLE) & vertex.converged
    result.x[good] = (vertex.x + held + base)[good]


@dataclass(order=True)
class _Node:
    bound: float  # minus the parent's value: heaps pop the smallest
    order: int
    fixed: IntArray = field(compare=False)


def branch_and_bound(program: Program, max_rounds: int, max_nodes: int) -> tuple[Array, IntArray]:
    """The best 0/1 assignment of every instance (batch, variables), and how many programs each took.

    Best bound first; branches on the variable nearest to ½. One node of every unfinished instance a round.
    """
    batch, size = program.batch, program.variables
    heaps = [[_Node(-np.inf, 0, np.full(size, -1))] for _ in range(batch)]
    best = np.full(batch, -np.inf)
    answer = np.zeros((batch, size))
    nodes = np.zeros(batch, np.int64)
    columns = Columns(program)
    slack = 1e-9 * np.abs(host(program.costs)).sum(axis=1, initial=1.0)
    while True:
        fixed = np.full((batch, size), -1)
        todo = np.zeros(batch, np.bool_)
        for b, heap in enumerate(heaps):
            if heap and -heap[0].bound > best[b] + slack[b]:
                fixed[b] = heapq.heappop(heap).fixed
                todo[b] = True
        if not todo.any():
            break
        nodes[todo] += 1
        if (nodes > max_nodes).any():
            raise _unfinished(int(nodes.argmax()), max_nodes, best, heaps)
        result, values = lp_vertex(program, max_rounds, fixed=fixed, columns=columns, todo=todo)
        for b in map(int, (todo & result.feasible).nonzero()[0]):
            if not result.converged[b]:
                raise _unfinished(b, int(nodes[b]), best, heaps)
            z = result.x[b, :size]
            if values[b] <= best[b] + slack[b]:
                continue
            middle = np.abs(z - 0.5)
            if np.all(middle == 0.5):
                best[b], answer[b] = values[b], z
                continue
            split = int(middle.argmin())
            for value in (0, 1):
                child = fixed[b].copy()
                child[split] = value
                heapq.heappush(heaps[b], _Node(-values[b], -2 * int(nodes[b]) - value, child))
    if np.isinf(best).any():
        raise InfeasibleError(
            f"no 0/1 assignment satisfies all factors of instance {int(np.isinf(best).argmax())} of the batch"
        )
    return answer, nodes


def _unfinished(instance: int, nodes: int, best: Array, heaps: list[list[_Node]]) -> RuntimeError:
    bound = max((-node.bound for node in heaps[instance]), default=np.inf)
    found = f"the best found scores {best[instance]:.6g}" if np.isfinite(best[instance]) else "none was found"
    return RuntimeError(
        f"map() did not finish: after {nodes} programs instance {instance} of the batch has no proven best assignment "
        f"({found}, the bound is {bound:.6g}); raise max_nodes, or use lp_map(), which is always exact for the LP"
    )
