"""The engine for CUDA tensors: all instances of the batch at once, in dense torch on their own device.

The same methods as in `kernels`, for programs without structured factors (oracles need the host anyway): Mehrotra's
interior point with elastic rows, then the exact solution on the face that it points to. Instances that have ended keep
their values while the others go on; now and then the host looks whether any is left.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rationalizer.graph.kernels.face_cpu import AT_LOWER, AT_UPPER, FREE
from rationalizer.graph.kernels.interior_cpu import INFEASIBLE, SOLVED, STALLED

if TYPE_CHECKING:
    from rationalizer.graph.program import Program

_MAX_ITERATIONS = 150
_LOOK = 5  # interior-point steps between two looks
_TO_BOUNDARY = 0.999
_NEAR = 1e-7
_PRICE = 1e4
_START = 1e-4
_VIOLATED = 1e-5
_ATTEMPTS = 15
_REFINEMENTS = 30
_PRIMAL_DAMPING = 1e-7
_ROW_DAMPING = 1e-9


def applies(program: Program) -> bool:
    return program.costs.is_cuda and not program.structured


def solve(program: Program, todo: Any, tolerance: Any) -> tuple[Tensor, ...]:
    """Exact solutions of the instances in `todo`: (x, multipliers, status, residual, how it ended, steps)."""
    p = Batch.of(program, program.active)
    device = p.cost.device
    todo = torch.from_numpy(todo).to(device)
    scale = (p.cost.abs() * p.there).amax(1, keepdim=True).clamp(min=1.0)
    scaled = p.replace(cost=p.cost / scale, quadratic=p.quadratic / scale)
    point, ended, steps = _interior_point(scaled, todo)
    y = point.y * scale
    status = torch.full_like(point.x, AT_LOWER, dtype=torch.int8)
    status[p.there & (point.x >= point.lower) & (point.room < point.upper)] = AT_UPPER
    status[p.there & (point.x >= point.lower) & (point.room >= point.upper)] = FREE
    wanted = todo & (ended != INFEASIBLE)
    x, y, status, residual = _polish(p, wanted, torch.from_numpy(tolerance).to(device), point.x, y, status)
    return x[:, : p.entries], y, status, residual, ended, steps


def project(program: Program, status: Any, active: Any, g: Tensor) -> Tensor:
    """`g` projected onto the directions of the face `status`."""
    p = Batch.of(program, active)
    slacks = g.new_zeros((g.shape[0], p.rows))
    p = p.replace(cost=torch.cat([g, slacks], 1), rhs=torch.zeros_like(p.rhs))
    face = torch.from_numpy(status).to(g.device)
    x, _ = _solve_on_face(p, face, torch.zeros_like(p.cost), torch.zeros_like(p.rhs))
    return x[:, : p.entries]


@dataclass
class Batch:
    """minimise ½ Σ quadratic x² − cost·x s.t. A x = rhs, 0 <= x <= upper; x = (entries, one slack a row)."""

    matrix: Tensor  # (1 or batch, rows, entries): A without the slacks
    active: Tensor  # (batch, rows)
    rhs: Tensor
    cost: Tensor  # (batch, entries + rows), like the next two
    quadratic: Tensor
    bound: Tensor

    @classmethod
    def of(cls, program: Program, active: Any) -> Batch:
        device = program.costs.device
        lead, entries, rows = program.indptr.shape[0], program.upper.shape[1], program.active.shape[1]
        matrix = np.zeros((lead, rows, entries))
        for s in range(lead):
            entry = np.repeat(np.arange(entries), np.diff(program.indptr[s]))
            np.add.at(matrix[s], (program.rows[s], entry), program.coefficients[s])
        squares = np.concatenate([program.quadratic, np.zeros(rows)])
        bound = np.concatenate([program.upper, program.slack_upper], axis=1)
        made = (torch.from_numpy(part).to(device) for part in (matrix, active, program.rhs, squares, bound))
        dense, used, rhs, quadratic, upper = made
        cost = torch.nn.functional.pad(program.costs.detach(), (0, rows))
        return cls(dense, used, rhs, cost, quadratic.expand_as(cost), upper)

    def replace(self, **changes: Tensor) -> Batch:
        return Batch(**{field.name: changes.get(field.name, getattr(self, field.name)) for field in fields(self)})

    @property
    def rows(self) -> int:
        return self.matrix.shape[1]

    @property
    def entries(self) -> int:
        return self.matrix.shape[2]

    @property
    def there(self) -> Tensor:
        return self.bound > 0

    def times(self, x: Tensor) -> Tensor:
        """A x; inactive rows give 0."""
        product = (self.matrix @ x[:, : self.entries, None])[..., 0] + x[:, self.entries :]
        return torch.where(self.active, product, 0.0)

    def transposed(self, y: Tensor) -> Tensor:
        return torch.cat([(self.matrix.mT @ y[..., None])[..., 0], y], 1)

    def system(self, inverse: Tensor, damping: Tensor) -> tuple[Tensor, Tensor]:
        """A D⁻¹ Aᵀ + damping, factorized: its diagonal scaled to one, Cholesky of the rest."""
        scaled = self.matrix * inverse[:, None, : self.entries]
        both = self.active[:, :, None] & self.active[:, None, :]
        normal = torch.where(both, scaled @ self.matrix.mT, 0.0)
        extra = torch.where(self.active, inverse[:, self.entries :] + damping, 1.0)
        normal = normal + torch.diag_embed(extra)
        unit = normal.diagonal(dim1=1, dim2=2).rsqrt()
        normal = normal * unit[:, :, None] * unit[:, None, :]
        identity = torch.eye(self.rows, dtype=normal.dtype, device=normal.device)
        factor, failed = torch.linalg.cholesky_ex(normal + 1e-15 * identity)
        for ridge in (1e-12, 1e-9):  # dependent rows; refinement takes the ridge's effect out again
            again, _ = torch.linalg.cholesky_ex(normal + ridge * identity)
            factor = torch.where((failed > 0)[:, None, None], again, factor)
            failed = torch.where(factor.isfinite().all(-1).all(-1), 0, 1)
        return factor, unit

    def solve(
        self, system: tuple[Tensor, Tensor], inverse: Tensor, dual_side: Tensor, primal_side: Tensor
    ) -> tuple[Tensor, Tensor]:
        """D dx + Aᵀ dy = dual_side, A dx − damping · dy = primal_side."""
        factor, unit = system
        side = torch.where(self.active, self.times(inverse * dual_side) - primal_side, 0.0)
        dy = unit * torch.cholesky_solve((unit * side)[..., None], factor)[..., 0]
        return inverse * (dual_side - self.transposed(dy)), dy


@dataclass
class _Point:
    x: Tensor
    room: Tensor  # bound − x, without the cancellation
    lower: Tensor  # the bounds' multipliers
    upper: Tensor
    y: Tensor  # the rows' multipliers
    over: Tensor  # by how much rows are violated
    under: Tensor
    high: Tensor  # price + y and price − y, without the cancellation
    low: Tensor

    def where(self, chosen: Tensor, other: _Point) -> _Point:
        parts = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return _Point(*(torch.where(chosen[:, None], a, b) for a, b in parts))


def _interior_point(p: Batch, todo: Tensor) -> tuple[_Point, Tensor, Tensor]:
    """See `kernels.interior_cpu`; costs must be scaled to about 1. Returns (point, how it ended, steps)."""
    there, active = p.there, p.active
    pairs = 2 * (there.sum(1) + active.sum(1)).to(p.rhs.dtype)
    slope = p.cost - p.quadratic * 0.5 * p.bound
    half = 0.5 * p.bound
    price = torch.full_like(p.rhs, _PRICE)
    start = torch.where(active, _START, 0.0).to(p.rhs.dtype)
    point = _Point(
        half, half, torch.where(there, 1.0 + (-slope).clamp(min=0.0), 0.0),
        torch.where(there, 1.0 + slope.clamp(min=0.0), 0.0),
        torch.zeros_like(p.rhs), start, start, price, price,
    )  # fmt: skip
    best = point
    least = torch.full_like(pairs, torch.inf)
    waited, steps = torch.zeros_like(pairs), torch.zeros_like(pairs, dtype=torch.int64)
    length = torch.ones_like(pairs)
    live, solved = todo & (pairs > 0), ~todo | (pairs == 0)
    for iteration in range(_MAX_ITERATIONS):
        dual_error = torch.where(there, p.cost - p.quadratic * point.x - p.transposed(point.y), 0.0)
        dual_error = dual_error + point.lower - point.upper
        primal_error = torch.where(active, p.rhs - p.times(point.x) - point.over + point.under, 0.0)
        error = torch.maximum(_largest(dual_error), _largest(primal_error))
        size = _largest(torch.where(active, point.y, 0.0)).clamp(min=1.0)
        mu = _complementarity(p, point) / pairs
        solved = solved | (live & (error <= 1e-11 * size) & (mu <= 1e-15))
        # Near the end rounding may spoil a step; the best point so far is the answer then.
        off = error + mu
        near = off < _NEAR
        late = (least < _NEAR) | (length < 1e-6)
        waited = torch.where(near & (off < 0.7 * least), 0.0, waited + (near | late))
        better = live & (off < least.clamp(max=_NEAR))
        best, least = point.where(better, best), torch.where(better, off, least)
        live = live & ~solved & (waited < torch.where(least < _NEAR, 3, 12)) & off.isfinite()
        if iteration % _LOOK == 0 and not live.any():
            break
        moved, length, finite = _step(p, point, dual_error, primal_error, mu, pairs)
        live = live & finite
        point = moved.where(live, point)
        steps = steps + live
    point = best.where(~solved & (least < _NEAR), point)
    violated = torch.maximum(_largest(point.over), _largest(point.under)) > _VIOLATED
    ended = torch.where(solved, SOLVED, STALLED)
    return point, torch.where(todo & violated, INFEASIBLE, ended), steps


def _step(
    p: Batch, at: _Point, dual_error: Tensor, primal_error: Tensor, mu: Tensor, pairs: Tensor
) -> tuple[_Point, Tensor, Tensor]:
    """Predictor and corrector: the new point, how far it went, and whether all of it is finite."""
    there, active = p.there, p.active
    x, room = torch.where(there, at.x, 1.0), torch.where(there, at.room, 1.0)
    inverse = torch.where(there, 1.0 / (p.quadratic + at.lower / x + at.upper / room), 0.0)
    damping = at.over / at.high + at.under / at.low
    system = p.system(inverse, damping)
    target = torch.zeros_like(mu)[:, None]
    bends = [torch.zeros((), dtype=mu.dtype, device=mu.device)] * 4
    for phase in range(2):
        to_lower, to_upper = (torch.where(there, target - bend, 0.0) for bend in bends[:2])
        to_over, to_under = (torch.where(active, target - bend, 0.0) for bend in bends[2:])
        dual_side = dual_error + to_lower / x - at.lower - to_upper / room + at.upper
        primal_side = primal_error - to_over / at.high + at.over + to_under / at.low - at.under
        dx, dy = p.solve(system, inverse, dual_side, primal_side)
        for _ in range(2):
            left = torch.where(active, primal_side - p.times(dx) + damping * dy, 0.0)
            more_x, more_y = p.solve(system, inverse, torch.zeros_like(dx), left)
            dx, dy = dx + more_x, dy + more_y
        d_lower = (to_lower - at.lower * dx) / x - at.lower
        d_upper = (to_upper + at.upper * dx) / room - at.upper
        d_over = (to_over - at.over * dy) / at.high - at.over
        d_under = (to_under + at.under * dy) / at.low - at.under
        change = _Point(dx, -dx, d_lower, d_upper, dy, d_over, d_under, dy, -dy)
        length = torch.full_like(mu, 1.0 / _TO_BOUNDARY)
        for name in ("x", "room", "lower", "upper", "over", "under", "high", "low"):
            values, moves = getattr(at, name), getattr(change, name)
            length = torch.minimum(length, _least(torch.where(moves < 0, -values / moves, torch.inf)))
        length = _TO_BOUNDARY * length
        moved = _Point(*(getattr(at, f.name) + length[:, None] * getattr(change, f.name) for f in fields(_Point)))
        if phase == 0:
            target = (mu * (_complementarity(p, moved) / pairs / mu) ** 3)[:, None]
            bends = [dx * d_lower, -dx * d_upper, d_over * dy, -d_under * dy]
    return moved, length, dx.isfinite().all(1) & dy.isfinite().all(1)


def _complementarity(p: Batch, at: _Point) -> Tensor:
    bounds = torch.where(p.there, at.x * at.lower + at.room * at.upper, 0.0).sum(1)
    return bounds + torch.where(p.active, at.over * at.high + at.under * at.low, 0.0).sum(1)


def _largest(values: Tensor) -> Tensor:
    """The largest size in each instance; 0 where there is nothing (a graph without factors has no rows)."""
    return torch.nn.functional.pad(values.abs(), (0, 1)).amax(1)


def _least(values: Tensor) -> Tensor:
    return torch.nn.functional.pad(values, (0, 1), value=torch.inf).amin(1)


def _solve_on_face(p: Batch, status: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """argmin ½ Σ quadratic x² − cost·x s.t. A x = rhs over FREE coordinates; starts from `x` and `y`."""
    free = status == FREE
    slack_free = free[:, p.entries :]
    # Rows that do not bind leave the system: their multiplier is 0 and their slack takes what is left.
    face = p.replace(active=p.active & ~slack_free)
    entry = free.clone()
    entry[:, p.entries :] = False
    inverse = torch.where(entry, 1.0 / torch.where(p.quadratic > 0, p.quadratic, _PRIMAL_DAMPING), 0.0)
    y = torch.where(slack_free, 0.0, y)
    x = torch.cat([x[:, : p.entries], torch.where(slack_free, 0.0, x[:, p.entries :])], 1)
    system = face.system(inverse, torch.full_like(y, _ROW_DAMPING))
    last = y.new_full((len(y), 1), torch.inf)
    live = torch.ones_like(last, dtype=torch.bool)
    for _ in range(_REFINEMENTS):
        dual_side = torch.where(entry, p.cost - p.quadratic * x - face.transposed(y), 0.0)
        primal_side = torch.where(face.active, p.rhs - face.times(x), 0.0)
        error = torch.maximum(_largest(dual_side), _largest(primal_side))[:, None]
        live = live & (error > 1e-15) & (error <= 0.5 * last)
        if not live.any():
            break
        last = error
        dx, dy = face.solve(system, inverse, dual_side, primal_side)
        x, y = torch.where(live, x + dx, x), torch.where(live, y + dy, y)
    left = torch.where(p.active & slack_free, p.rhs - p.times(x), x[:, p.entries :])
    return torch.cat([x[:, : p.entries], left], 1), y


def _polish(
    p: Batch, todo: Tensor, tolerance: Tensor, x: Tensor, y: Tensor, status: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Solve exactly on the face `status`, correcting it where the solution leaves it; ends with the best found."""
    best = torch.where(todo, torch.inf, 0.0).to(x.dtype)
    slack = 0.01 * tolerance[:, None]
    trial_x, trial_y, trial = x, y, status
    live = todo
    for _ in range(_ATTEMPTS):
        trial_x = torch.where(trial == AT_LOWER, 0.0, torch.where(trial == AT_UPPER, p.bound, trial_x))
        trial_x, trial_y = _solve_on_face(p, trial, trial_x, trial_y)
        slope = p.cost - p.quadratic * trial_x - p.transposed(trial_y)
        # Rounding leaves coordinates a hair outside: on the face they are at the bound.
        free = p.there & (trial == FREE)
        solution = torch.where(free, torch.minimum(trial_x.clamp(min=0.0), p.bound), trial_x)
        error = _residual(p, solution, trial_y)
        better = live & (error < best)
        x = torch.where(better[:, None], solution, x)
        y = torch.where(better[:, None], trial_y, y)
        status = torch.where(better[:, None], trial, status)
        best = torch.where(better, error, best)
        corrected = torch.where(free & (trial_x < -slack), AT_LOWER, trial)
        corrected = torch.where(free & (trial_x > p.bound + slack), AT_UPPER, corrected)
        corrected = torch.where(p.there & ~free & (slope * trial < -slack), FREE, corrected).to(torch.int8)
        live = live & (corrected != trial).any(1) & ~(error <= 0.01 * tolerance)
        trial = corrected
        if not live.any():
            break
    return x, y, status, best


def _residual(p: Batch, x: Tensor, y: Tensor) -> Tensor:
    """The violation of the optimality conditions: of the rows, and of x = clip(x + slope, 0, upper)."""
    slope = p.cost - p.quadratic * x - p.transposed(y)
    moved = torch.minimum((x + slope).clamp(min=0.0), p.bound)
    bounds = torch.where(p.there, moved - x, 0.0)
    rows = torch.where(p.active, p.rhs - p.times(x), 0.0)
    return torch.maximum(_largest(bounds), _largest(rows)).nan_to_num(torch.inf, posinf=torch.inf)
