"""The gradient: the projection onto the directions of the face that a solution lies on."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rationalizer.graph.columns import ask, differentiable_costs
from rationalizer.graph.kernels.face_cpu import AT_LOWER, FREE
from rationalizer.graph.kernels.solve_cpu import project_rows
from rationalizer.graph.literals import BoolArray
from rationalizer.graph.program import Array, Program
from rationalizer.graph.solve import Result
from rationalizer.ops._inputs import host
from rationalizer.ops.kernels.runtime import for_rows


def differentiable(program: Program, result: Result, temperature: float) -> Tensor:
    """The entries (batch, entries), connected to scores and to the factors' own parameters."""
    if program.structured and torch.is_grad_enabled():
        _complete_face(program, result, temperature)
    costs = differentiable_costs(program, result.columns, temperature)
    return _Face.apply(program.costs, costs, program, result)


class _Face(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, costs: Tensor, weight_costs: Tensor, program: Program, result: Result) -> Tensor:
        ctx.program, ctx.result = program, result
        return torch.from_numpy(result.x.copy()).to(costs.device)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, None, None]:
        h, weight_h = project(ctx.program, ctx.result, host(g) * ctx.program.quadratic)
        return torch.from_numpy(h).to(g.device), torch.from_numpy(weight_h).to(g.device), None, None


def project(program: Program, result: Result, g: Array) -> tuple[Array, Array]:
    """`g` projected onto the face's directions: entries and weights."""
    status, active = _open_pairs(program, result)
    columns = result.columns
    h, weight_h = np.zeros(result.x.shape), np.zeros(result.weights.shape)
    for_rows(
        project_rows, program.batch, 10**9, program.indptr, program.rows, program.coefficients, program.early,
        program.row_first, program.quadratic, program.copy_rows, program.copy_size, active, columns.known, columns.configurations,
        columns.owner, status, g, h, weight_h,
    )  # fmt: skip
    return h, weight_h


def _open_pairs(program: Program, result: Result) -> tuple[Any, BoolArray]:
    """Status and active rows with the pairs of score 0 put at min(first, second), from where their gradient flows."""
    if not program.undecided:
        return result.status, program.active
    status, active = result.status.copy(), program.active.copy()
    entries = program.upper.shape[1]
    for ids, negated, pairs, first, second, where in program.undecided:
        values = np.abs(result.x[np.arange(program.batch)[:, None, None], ids] - negated)
        nearer = np.where(values[..., 0] <= values[..., 1], first, second)
        b, i = where.nonzero()
        active[b, nearer[b, i]] = True
        status[b, entries + nearer[b, i]] = AT_LOWER
        status[b, pairs[i]] = FREE
    return status, active


def _complete_face(program: Program, result: Result, temperature: float) -> None:
    """Add configurations that are as good as the known ones, until they span the face.

    The solution needs few configurations, the gradient all directions: with tied scores (½, ½, ½, ½ from 1100
    and 0011) the two differ. Multipliers disturbed along a direction that no difference of known configurations
    has show another configuration, if there is one.
    """
    columns, n_rows = result.columns, program.active.shape[1]
    random = np.random.default_rng(0)
    duals, limits = result.multipliers[:, :n_rows], result.multipliers[:, n_rows:]
    size = 1e-6 * np.maximum(1.0, np.abs(duals).max(axis=1, keepdims=True))
    todo = result.converged
    while todo.any():
        found = np.zeros(program.batch, np.bool_)
        directions = size * _unknown_directions(program, result, random)
        before = columns.known.copy()
        for sign in (1.0, -1.0):
            disturbed = duals + sign * directions
            _, added = ask(
                program, columns, temperature, disturbed, limits, todo, at=duals, margin=result.tolerance
            )
            found |= added
        result.fit_columns()
        plain = result.status.shape[1] - columns.capacity
        for b in found.nonzero()[0]:
            result.status[b, plain + before[b] : plain + columns.known[b]] = FREE
        todo = found


def _unknown_directions(program: Program, result: Result, random: np.random.Generator) -> Array:
    """(batch, rows): for each structured factor a random direction orthogonal to its configurations' differences."""
    columns = result.columns
    out = np.zeros(program.active.shape)
    plain = result.status.shape[1] - columns.capacity
    for b in range(program.batch):
        k = columns.known[b]
        free = result.status[b, plain : plain + k] == FREE
        for factor, size in enumerate(program.copy_size):
            kept = columns.configurations[b, :k, :size][free & (columns.owner[b, :k] == factor)]
            direction = random.standard_normal(size) * program.active[b, program.copy_rows[factor, :size]]
            if len(kept) > 1:
                basis, sizes, _ = np.linalg.svd((kept[1:] - kept[0]).T, full_matrices=False)
                basis = basis[:, sizes > 1e-9 * sizes[0]]
                direction -= basis @ (basis.T @ direction)
            out[b, program.copy_rows[factor, :size]] = direction
    return out
