"""The known configurations of structured factors (columns of the program), and queries to their oracles."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rationalizer.graph.factors import Factor
from rationalizer.graph.literals import BoolArray, IntArray
from rationalizer.graph.program import Array, Program

_OFF = 1e-7  # the rounding error of a product with a direction is far smaller


class ColumnPool:
    """The known configurations of every instance; instance b uses the first `known[b]` slots."""

    def __init__(self, program: Program) -> None:
        batch = program.batch
        self.known: IntArray = np.zeros(batch, np.int64)
        self.configurations: Array = np.zeros((batch, 0, int(program.copy_size.max(initial=0))))
        self.owner: IntArray = np.zeros((batch, 0), np.int64)
        self.costs: Array = np.zeros((batch, 0))
        self._seen: list[set[tuple[int, bytes]]] = [set() for _ in range(batch)]

    @property
    def capacity(self) -> int:
        return self.owner.shape[1]

    def add(self, instance: int, owner: int, configuration: Array, cost: float) -> bool:
        """Add a configuration; return False if it was already known."""
        key = (owner, np.packbits(configuration > 0.5).tobytes())
        if key in self._seen[instance]:
            return False
        self._seen[instance].add(key)
        k = int(self.known[instance])
        if k == self.capacity:
            size = max(8, 2 * k)
            for name in ("configurations", "owner", "costs"):
                setattr(self, name, enlarge(getattr(self, name), size))
        self.configurations[instance, k, : configuration.size] = configuration
        self.owner[instance, k] = owner
        self.costs[instance, k] = cost
        self.known[instance] += 1
        return True


def enlarge(values: Any, size: int) -> Any:
    """Return `values` with the second dimension padded with zeros to `size`."""
    if values.shape[1] == size:
        return values
    out = np.zeros((values.shape[0], size, *values.shape[2:]), values.dtype)
    out[:, : values.shape[1]] = values
    return out


def query_oracles(
    program: Program,
    columns: ColumnPool,
    temperature: float,
    scores: Array,
    thresholds: Array,
    todo: BoolArray,
    at: Array | None = None,
    margin: float | Array = 0.0,
    off: tuple[Array, Array] | None = None,
) -> tuple[Array, BoolArray]:
    """Query every oracle for its best configuration under `scores` (batch, rows); add those that exceed `thresholds`.

    If `at` is given, the oracles maximise `scores`, but the thresholds apply to the values under `at`. Configurations
    up to `margin` below the threshold are added too. If `off` is given, directions (batch, rows) and levels (batch,
    factors), only configurations whose product with the direction is not the level are added. Returns, per instance,
    the largest excess over the thresholds and whether a new configuration was added.
    """
    excess = np.full(program.batch, -np.inf)
    added = np.zeros(program.batch, np.bool_)
    first_owner = 0
    least = np.broadcast_to(-np.asarray(margin), (program.batch,))
    for factor in program.structured:
        count, size = factor.group.count, factor.group.size
        copies = program.copy_rows[first_owner : first_owner + count, :size]
        configurations, costs = _query_oracle(program, factor, scores[:, copies].reshape(-1, size), temperature)
        values = (configurations * (scores if at is None else at)[:, copies].reshape(-1, size)).sum(-1) + costs
        gains = values.reshape(-1, count) - thresholds[:, first_owner : first_owner + count]
        wanted = todo[:, None] & (gains > least[:, None])
        if off is not None:
            products = (configurations * off[0][:, copies].reshape(-1, size)).sum(-1).reshape(-1, count)
            wanted &= np.abs(products - off[1][:, first_owner : first_owner + count]) > _OFF
        for b, i in np.argwhere(wanted).tolist():
            row = b * count + i
            added[b] |= columns.add(b, first_owner + i, configurations[row], costs[row])
        excess = np.maximum(excess, gains.max(axis=1))
        first_owner += count
    return excess, added


def _query_oracle(program: Program, factor: Factor, scores: Array, temperature: float) -> tuple[Array, Array]:
    """Return the best configurations of a factor and their own scores, after checking what the oracle returned."""
    name = type(factor).__name__
    rows = torch.from_numpy(scores).to(program.costs.device)
    with torch.no_grad():
        best = factor.map(rows * temperature)
        if not isinstance(best, Tensor) or best.shape != rows.shape:
            shape = tuple(best.shape) if isinstance(best, Tensor) else type(best).__name__
            raise ValueError(f"{name}.map must return shape {tuple(rows.shape)}, got {shape}")
        best = best.to(torch.float64)
        if not ((best == 0) | (best == 1)).all():
            raise ValueError(f"{name}.map must return configurations of 0 and 1 only")
        best = best * factor.mask
        costs = _own_costs(factor, best[:, None], temperature)[:, 0]
    return best.cpu().numpy(), costs.cpu().numpy()


def _own_costs(factor: Factor, configurations: Tensor, temperature: float) -> Tensor:
    """Return the scores that the factor itself gives to configurations, divided by the temperature."""
    costs = factor.extra(configurations)
    if costs.shape != configurations.shape[:2]:
        expected = tuple(configurations.shape[:2])
        raise ValueError(f"{type(factor).__name__}.extra must return shape {expected}, got {tuple(costs.shape)}")
    # A factor whose literals are all padding does not exist, so its scores do not count.
    return torch.where(factor.mask.any(-1, keepdim=True), costs.to(torch.float64), 0.0) / temperature


def differentiable_costs(program: Program, columns: ColumnPool, temperature: float) -> Tensor:
    """Return the factors' own scores of all configurations, (batch, capacity), differentiable in their parameters."""
    out = torch.zeros(columns.costs.shape, dtype=torch.float64, device=program.costs.device)
    in_use = np.arange(columns.capacity) < columns.known[:, None]
    first_owner = 0
    for factor in program.structured:
        count, size = factor.group.count, factor.group.size
        b, k = (in_use & (columns.owner >= first_owner) & (columns.owner < first_owner + count)).nonzero()
        row = b * count + columns.owner[b, k] - first_owner
        # The slot of a configuration is its rank among those of the same row.
        order = np.argsort(row, kind="stable")
        starts = np.r_[0, np.cumsum(np.bincount(row, minlength=factor.rows))[:-1]]
        slot = np.empty(row.size, np.int64)
        slot[order] = np.arange(row.size) - starts[row[order]]
        known = np.zeros((factor.rows, int(slot.max(initial=-1)) + 1, size))
        known[row, slot] = columns.configurations[b, k, :size]
        costs = _own_costs(factor, torch.from_numpy(known).to(out.device), temperature)
        target, source = (tuple(torch.from_numpy(i).to(out.device) for i in pair) for pair in ((b, k), (row, slot)))
        out = out.index_put(target, costs[source])
        first_owner += count
    return out
