"""LP-MAP, a vertex of the local polytope that maximises the scores; and MAP by branch and bound."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
import torch

from rationalizer.graph.column_pool import ColumnPool
from rationalizer.graph.gradient import project_onto_face
from rationalizer.graph.literals import BoolArray, IntArray
from rationalizer.graph.program import Array, Program
from rationalizer.graph.solver import SolverResult, row_values, solve, violation_costs
from rationalizer.ops import InfeasibleError
from rationalizer.ops.kernels.numba_runtime import host

_INTEGRAL = 1e-7


def lp_vertex(
    program: Program,
    max_rounds: int,
    *,
    fixed: IntArray | None = None,
    columns: ColumnPool | None = None,
    todo: BoolArray | None = None,
) -> tuple[SolverResult, Array]:
    """Solve the LP; if it has several optima, move to a vertex of the optimal face. Also returns the values.

    An interior-point method converges to the middle of the optimal face. Generically perturbed scores have one optimum,
    a vertex; its value under the true scores shows whether it belongs to that face.
    """
    todo = np.ones(program.batch, np.bool_) if todo is None else todo
    result = solve(program, 1.0, max_rounds, fixed=fixed, columns=columns, todo=todo)
    values = _values(program, result)
    size = np.abs(host(program.costs)).sum(axis=1, initial=1.0)
    generic = np.zeros(program.upper.shape)
    generic[:, : program.variables] = np.random.default_rng(0).uniform(-1.0, 1.0, program.variables)
    moves, _ = project_onto_face(program.replace(quadratic=np.ones_like(program.quadratic)), result, generic)
    moving = np.abs(moves[:, : program.variables]).max(axis=1, initial=0.0) > 1e-6
    several = todo & result.feasible & result.converged & moving
    for perturbation in (1e-5, 1e-7):
        if not several.any():
            break
        costs = program.costs.detach() + torch.from_numpy(perturbation * generic).to(program.costs.device)
        perturbed = program.replace(costs=costs)
        vertex = solve(perturbed, 1.0, max_rounds, fixed=fixed, columns=result.columns, todo=several)
        result.iterations += vertex.iterations
        optimal = vertex.converged & (_values(program, vertex) >= values - 1e-11 * size)
        result.x[several & optimal] = vertex.x[several & optimal]
        several &= ~optimal
    near = np.abs(result.x - np.round(result.x)) < _INTEGRAL
    result.x[near] = np.round(result.x[near])
    return result, values


def _values(program: Program, result: SolverResult) -> Array:
    columns = result.columns
    known = np.arange(result.weights.shape[1]) < columns.known[:, None]
    own = (columns.costs[:, : result.weights.shape[1]] * result.weights * known).sum(1)
    soft = violation_costs(program)
    penalties = np.where(soft < np.inf, soft, 0.0) * np.abs(row_values(program, result.x) - program.rhs)
    return np.asarray((host(program.costs) * result.x).sum(1) + own - penalties.sum(1))


@dataclass(order=True)
class _Node:
    bound: float  # minus the parent's value: a heap pops the smallest
    order: int
    fixed: IntArray = field(compare=False)


def branch_and_bound(program: Program, max_rounds: int, max_nodes: int) -> tuple[Array, IntArray]:
    """Return the best 0/1 assignment of every instance (batch, variables), and the number of programs solved for each.

    Best bound first; branches on the variable nearest to ½. Each round solves one node of every unfinished instance.
    """
    batch, size = program.batch, program.variables
    heaps = [[_Node(-np.inf, 0, np.full(size, -1))] for _ in range(batch)]
    best = np.full(batch, -np.inf)
    assignment = np.zeros((batch, size))
    nodes = np.zeros(batch, np.int64)
    columns = ColumnPool(program)
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
                best[b], assignment[b] = values[b], z
                continue
            split = int(middle.argmin())
            for value in (0, 1):
                child = fixed[b].copy()
                child[split] = value
                heapq.heappush(heaps[b], _Node(-values[b], -2 * int(nodes[b]) - value, child))
    if np.isinf(best).any():
        instance = int(np.isinf(best).argmax())
        raise InfeasibleError(f"no 0/1 assignment satisfies all factors of instance {instance} of the batch", instance)
    return assignment, nodes


def _unfinished(instance: int, nodes: int, best: Array, heaps: list[list[_Node]]) -> RuntimeError:
    bound = max((-node.bound for node in heaps[instance]), default=np.inf)
    found = f"best score so far {best[instance]:.6g}" if np.isfinite(best[instance]) else "none found so far"
    return RuntimeError(
        f"map() stopped after {nodes} programs without a proven best assignment of instance {instance} of the batch "
        f"({found}, upper bound {bound:.6g}); raise max_nodes, or use lp_map(), which solves the LP exactly"
    )
