"""The gradient: the projection onto the directions of the face that a solution lies on."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rationalizer.graph.configurations import ask, differentiable_costs
from rationalizer.graph.kernels.polish_cpu import AT_LOWER, FREE, make_orthogonal
from rationalizer.graph.kernels.solver_cpu import project_rows
from rationalizer.graph.literals import BoolArray
from rationalizer.graph.program import Array, Program
from rationalizer.graph.solver import Result
from rationalizer.ops.kernels.numba_runtime import for_rows, host


def differentiable(program: Program, result: Result, temperature: float) -> Tensor:
    """The entries (batch, entries), connected to scores and to the factors' own parameters."""
    if program.structured and torch.is_grad_enabled():
        _complete_face(program, result, temperature)
    costs = differentiable_costs(program, result.columns, temperature)
    return _Face.apply(  # type: ignore[no-untyped-call]
        program.costs, costs, program, result
    )


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
        program.row_first, program.quadratic, program.copy_rows, program.copy_size, active, columns.known,
        columns.configurations, columns.owner, status, g, h, weight_h,
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
    and 0011) the two differ. Multipliers disturbed along a direction that no difference of known
    configurations has show another configuration, if there is one.
    """
    columns, n_rows = result.columns, program.active.shape[1]
    random = np.random.default_rng(0)
    duals, limits = result.multipliers[:, :n_rows], result.multipliers[:, n_rows:]
    size = 1e-6 * np.maximum(1.0, np.abs(duals).max(axis=1, keepdims=True))
    fixed = _fixed_literals(program, result)
    todo = result.converged
    while todo.any():
        found = np.zeros(program.batch, np.bool_)
        directions = _unknown_directions(program, result, random, todo)
        before = columns.known.copy()
        for sign in (1.0, -1.0):
            # Configurations that disagree with fixed variables are not on the face; they should lose ties.
            disturbed = duals + size * (sign * directions + 10.0 * fixed)
            _, added = ask(program, columns, temperature, disturbed, limits, todo, at=duals, margin=result.tolerance)
            found |= added
        result.fit_columns()
        plain = result.status.shape[1] - columns.capacity
        for b in found.nonzero()[0]:
            for k in range(before[b], columns.known[b]):
                owner = columns.owner[b, k]
                expected = fixed[b, program.copy_rows[owner, : program.copy_size[owner]]]
                agrees = (2 * columns.configurations[b, k, : expected.size] - 1) * expected >= 0
                result.status[b, plain + k] = FREE if agrees.all() else AT_LOWER
        todo = found


def _fixed_literals(program: Program, result: Result) -> Array:
    """(batch, rows): 1 and −1 where a structured factor's literal is fixed at 1 and 0, 0 where it is not fixed."""
    out = np.zeros(program.active.shape)
    first = 0
    for factor in program.structured:
        literals = factor.group
        status = result.status[np.arange(program.batch)[:, None, None], literals.ids].astype(np.float64)
        signed = np.where(literals.negated, -status, status) * literals.graph.present(literals.ids)
        out[:, program.copy_rows[first : first + literals.count, : literals.size]] = signed
        first += literals.count
    return out


def _unknown_directions(program: Program, result: Result, random: np.random.Generator, todo: BoolArray) -> Array:
    """(batch, rows): for each structured factor a direction orthogonal to its configurations' differences."""
    columns = result.columns
    out = np.zeros(program.active.shape)
    plain = result.status.shape[1] - columns.capacity
    for b in todo.nonzero()[0]:
        k = columns.known[b]
        free = result.status[b, plain : plain + k] == FREE
        for factor, size in enumerate(program.copy_size):
            kept = columns.configurations[b, :k, :size][free & (columns.owner[b, :k] == factor)]
            copies = program.copy_rows[factor, :size]
            direction = random.standard_normal(size) * program.active[b, copies]
            make_orthogonal(np.ascontiguousarray(kept), direction)
            out[b, copies] = direction
    return out
