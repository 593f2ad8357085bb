"""The known configurations of structured factors, and the oracles that they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rationalizer.graph.factors import Factor
from rationalizer.graph.literals import BoolArray, IntArray
from rationalizer.graph.program import Array, Program


class Columns:
    """Configurations by instance; the first `known[b]` of instance b are there."""

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
        """False if it was known already."""
        key = (owner, np.packbits(configuration > 0.5).tobytes())
        if key in self._seen[instance]:
            return False
        self._seen[instance].add(key)
        k = int(self.known[instance])
        if k == self.capacity:
            size = max(8, 2 * k)
            self.configurations, self.owner = grown(self.configurations, size), grown(self.owner, size)
            self.costs = grown(self.costs, size)
        self.configurations[instance, k, : configuration.size] = configuration
        self.owner[instance, k] = owner
        self.costs[instance, k] = cost
        self.known[instance] += 1
        return True


def grown(values: Any, size: int) -> Any:
    """`values` with its second dimension extended to `size` by zeros."""
    if values.shape[1] == size:
        return values
    out = np.zeros((values.shape[0], size, *values.shape[2:]), values.dtype)
    out[:, : values.shape[1]] = values
    return out


def ask(
    program: Program,
    columns: Columns,
    temperature: float,
    scores: Array,
    limits: Array,
    todo: BoolArray,
    at: Array | None = None,
    margin: float | Array = 0.0,
) -> tuple[Array, BoolArray]:
    """Ask every oracle for its best configuration under `scores` (batch, rows), and keep those that beat `limits`.

    With `at`, configurations are searched under `scores` but valued under `at`, and kept from `margin` below the limit.
    Returns by how much the best beat the limits, and where a configuration was new.
    """
    better = np.full(program.batch, -np.inf)
    added = np.zeros(program.batch, np.bool_)
    first_owner = 0
    threshold = np.broadcast_to(-np.asarray(margin), (program.batch,))
    for factor in program.structured:
        count, size = factor.group.count, factor.group.size
        copies = program.copy_rows[first_owner : first_owner + count, :size]
        found, costs = _best(program, factor, scores[:, copies].reshape(-1, size), temperature)
        values = (found * (scores if at is None else at)[:, copies].reshape(-1, size)).sum(-1) + costs
        gains = values.reshape(-1, count) - limits[:, first_owner : first_owner + count]
        for b, i in zip(*(todo[:, None] & (gains > threshold[:, None])).nonzero(), strict=True):
            row = b * count + i
            added[b] |= columns.add(b, first_owner + i, found[row], costs[row])
        better = np.maximum(better, gains.max(axis=1))
        first_owner += count
    return better, added


def _best(program: Program, factor: Factor, scores: Array, temperature: float) -> tuple[Array, Array]:
    """The factor's best configurations and their own costs, checked."""
    name = type(factor).__name__
    rows = torch.from_numpy(scores).to(program.costs.device)
    with torch.no_grad():
        found = factor.map(rows * temperature)
        if not isinstance(found, Tensor) or found.shape != rows.shape:
            shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise ValueError(f"{name}.map must return shape {tuple(rows.shape)}, got {shape}")
        found = found.to(torch.float64)
        if not ((found == 0) | (found == 1)).all():
            raise ValueError(f"{name}.map must return configurations of 0 and 1 only")
        found = found * factor.mask
        costs = _own_costs(factor, found[:, None], temperature)[:, 0]
    return found.cpu().numpy(), costs.cpu().numpy()


def _own_costs(factor: Factor, configurations: Tensor, temperature: float) -> Tensor:
    costs = factor.extra(configurations)
    if costs.shape != configurations.shape[:2]:
        wanted = tuple(configurations.shape[:2])
        raise ValueError(f"{type(factor).__name__}.extra must return shape {wanted}, got {tuple(costs.shape)}")
    # A factor with nothing but padding has disappeared, scores and all.
    return torch.where(factor.mask.any(-1, keepdim=True), costs.to(torch.float64), 0.0) / temperature


def differentiable_costs(program: Program, columns: Columns, temperature: float) -> Tensor:
    """(batch, capacity): the configurations' own costs, connected to the factors' parameters."""
    out = torch.zeros(columns.costs.shape, dtype=torch.float64, device=program.costs.device)
    there = np.arange(columns.capacity) < columns.known[:, None]
    first_owner = 0
    for factor in program.structured:
        count, size = factor.group.count, factor.group.size
        b, k = (there & (columns.owner >= first_owner) & (columns.owner < first_owner + count)).nonzero()
        row = b * count + columns.owner[b, k] - first_owner
        # Number the configurations of each factor: its rank among equal rows.
        order = np.argsort(row, kind="stable")
        starts = np.r_[0, np.cumsum(np.bincount(row, minlength=factor.rows))[:-1]]
        slot = np.empty(row.size, np.int64)
        slot[order] = np.arange(row.size) - starts[row[order]]
        known = np.zeros((factor.rows, int(slot.max(initial=-1)) + 1, size))
        known[row, slot] = columns.configurations[b, k, :size]
        costs = _own_costs(factor, torch.from_numpy(known).to(out.device), temperature)
        at, of = (tuple(torch.from_numpy(i).to(out.device) for i in pair) for pair in ((b, k), (row, slot)))
        out = out.index_put(at, costs[of])
        first_owner += count
    return out
