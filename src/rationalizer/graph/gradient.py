"""Gradients of solutions: the projection onto the directions of the face on which a solution lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rationalizer.graph.column_pool import differentiable_costs, query_oracles
from rationalizer.graph.kernels.face_solve_cpu import AT_LOWER, FREE, make_orthogonal
from rationalizer.graph.kernels.solver_cpu import project_rows
from rationalizer.graph.literals import BoolArray
from rationalizer.graph.program import Array, Program
from rationalizer.graph.solver import SolverResult, literal_values, row_values
from rationalizer.ops.kernels.numba_runtime import for_rows, host


def attach_gradient(program: Program, result: SolverResult, temperature: float) -> Tensor:
    """Return the entries (batch, entries) of a solution, differentiable in the scores and the factors' parameters."""
    if program.structured and torch.is_grad_enabled():
        _add_missing_configurations(program, result, temperature)
    costs = differentiable_costs(program, result.columns, temperature)
    return _FaceProjection.apply(  # type: ignore[no-untyped-call]
        program.costs, program.violation_costs, costs, program, result
    )


class _FaceProjection(torch.autograd.Function):
    """The solution as a function of its costs; its Jacobian is the projector onto the face of the solution."""

    @staticmethod
    def forward(
        ctx: Any, costs: Tensor, violation_costs: Tensor, weight_costs: Tensor, program: Program, result: SolverResult
    ) -> Tensor:
        ctx.program, ctx.result = program, result
        return torch.from_numpy(result.x.copy()).to(costs.device)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor | None, Tensor, None, None]:
        program, x = ctx.program, ctx.result.x
        h, weight_h = project_onto_face(program, ctx.result, host(g) * program.quadratic)
        violation_h = None
        if ctx.needs_input_grad[1]:
            # The derivative of −|A x − rhs| at a change h of x. Rows that bind have A h = 0, except those of cost 0,
            # which are not in the problem: they take one of two derivatives at a tie.
            side = np.where(row_values(program, x) > program.rhs, -1.0, 1.0)
            violation_h = torch.from_numpy(side * row_values(program, h)).to(g.device)
        return torch.from_numpy(h).to(g.device), violation_h, torch.from_numpy(weight_h).to(g.device), None, None


def project_onto_face(program: Program, result: SolverResult, g: Array) -> tuple[Array, Array]:
    """Project `g` onto the directions of the face; return the projection of the entries and of the weights."""
    columns = result.columns
    h, weight_h = np.zeros(result.x.shape), np.zeros(result.weights.shape)
    for_rows(
        project_rows, program.batch, 10**9, program.indptr, program.rows, program.coefficients, program.early,
        program.row_first, program.quadratic, program.copy_rows, program.copy_size, program.active, columns.known,
        columns.configurations, columns.owner, result.status, g, h, weight_h,
    )  # fmt: skip
    return h, weight_h


def _add_missing_configurations(program: Program, result: SolverResult, temperature: float) -> None:
    """Add optimal configurations of the structured factors until they span the face of the solution.

    A solution can be a mixture of a few configurations, but the gradient needs all directions of the face. With ties
    there are more: ½, ½, ½, ½ is a mixture of 1100 and 0011, but 1010 and 0101 may be optimal too. If an optimal
    configuration is missing, the oracle finds it when the multipliers are perturbed in a random direction that is
    orthogonal to all differences of known configurations. Only configurations that differ from the known ones along
    this direction are added: others are on the face too, but in its span.
    """
    columns, n_rows = result.columns, program.active.shape[1]
    random = np.random.default_rng(0)
    duals, thresholds = result.multipliers[:, :n_rows], result.multipliers[:, n_rows:]
    size = 1e-6 * np.maximum(1.0, np.abs(duals).max(axis=1, keepdims=True))
    fixed = literal_values(program, result.status)  # 1 and −1 for literals fixed at 1 and 0, 0 for free ones
    todo = result.converged
    while todo.any():
        extended = np.zeros(program.batch, np.bool_)
        directions, levels = _draw_directions(program, result, random, todo)
        before = columns.known.copy()
        for sign in (1.0, -1.0):
            # Configurations that contradict fixed variables are not on the face and must lose ties.
            perturbed = duals + size * (sign * directions + 10.0 * fixed)
            _, added = query_oracles(
                program, columns, temperature, perturbed, thresholds, todo, at=duals, margin=result.tolerance,
                off=(directions, levels),
            )  # fmt: skip
            extended |= added
        result.fit_columns()
        plain = result.status.shape[1] - columns.capacity
        for b in extended.nonzero()[0]:
            for k in range(before[b], columns.known[b]):
                owner = columns.owner[b, k]
                expected = fixed[b, program.copy_rows[owner, : program.copy_size[owner]]]
                agrees = (2 * columns.configurations[b, k, : expected.size] - 1) * expected >= 0
                result.status[b, plain + k] = FREE if agrees.all() else AT_LOWER
        todo = extended


def _draw_directions(
    program: Program, result: SolverResult, random: np.random.Generator, todo: BoolArray
) -> tuple[Array, Array]:
    """Return, for each structured factor, a random direction orthogonal to the differences of its configurations, and
    the product of the direction and these configurations.

    The shapes are (batch, rows), with the direction of a factor in the rows that copy its literals; and (batch,
    structured factors).
    """
    columns = result.columns
    out = np.zeros(program.active.shape)
    levels = np.zeros((program.batch, program.copy_size.size))
    plain = result.status.shape[1] - columns.capacity
    for b in todo.nonzero()[0]:
        k = columns.known[b]
        free = result.status[b, plain : plain + k] == FREE
        for factor, size in enumerate(program.copy_size):
            known = columns.configurations[b, :k, :size][free & (columns.owner[b, :k] == factor)]
            copies = program.copy_rows[factor, :size]
            direction = random.standard_normal(size) * program.active[b, copies]
            make_orthogonal(np.ascontiguousarray(known), direction)
            out[b, copies] = direction
            levels[b, factor] = direction @ known[0] if len(known) else 0.0
    return out, levels
