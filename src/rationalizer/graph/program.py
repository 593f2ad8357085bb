"""Translate the factors of a graph into the arrays of one batched quadratic program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rationalizer.graph.kernels.solver_cpu import row_profile
from rationalizer.graph.literals import BoolArray, FactorGroup, IntArray
from rationalizer.ops import InfeasibleError

if TYPE_CHECKING:
    from rationalizer.graph.factors import Factor
    from rationalizer.graph.graph import FactorGraph

Array = npt.NDArray[np.float64]


@dataclass
class _RowBlock:
    """A block of `count` rows lower <= Σ coefficient · entry <= upper."""

    factor: Factor
    ids: IntArray  # (1 or batch, count, width)
    coefficients: Array
    lower: Array  # (batch, count)
    upper: Array
    active: BoolArray
    violation_costs: Tensor | None = None  # (batch, count) if the rows are soft, otherwise they must hold


@dataclass
class Program:
    """A batch of quadratic programs as arguments of the kernels; `kernels.linear_systems_cpu` states the problem."""

    batch: int
    variables: int  # the number of entries that are variables of the graph; the others are auxiliary
    costs: Tensor  # (batch, entries), float64, differentiable
    violation_costs: Tensor  # (batch, rows), float64, differentiable; inf for rows that must hold
    quadratic: Array
    upper: Array
    indptr: IntArray
    rows: IntArray
    coefficients: Array
    row_first: IntArray
    active: BoolArray
    rhs: Array
    slack_upper: Array
    row_factor: list[Factor]
    structured: list[Factor]
    early: int  # the number of rows that copy a variable for the first time; they come first
    copy_rows: IntArray  # (structured factors per instance, most literals per factor): the rows that copy the literals
    copy_size: IntArray

    def replace(self, **changes: Any) -> Program:
        return replace(self, **changes)


class Builder:
    """Collects the rows of all factors. Entries are the variables of the graph, then auxiliary variables."""

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph
        self.batch = graph.batch
        self._entries = graph.size
        self._costs = [variable.scores.reshape(self.batch, -1).to(torch.float64) for variable in graph.variables]
        self._added_costs: list[Tensor] = []
        self._upper = [graph.mask.astype(np.float64)]
        self._copies: list[_RowBlock] = []
        self._blocks: list[_RowBlock] = []
        self._structured: list[Factor] = []

    def present(self, literals: FactorGroup) -> Any:
        """Return a mask (batch, count, size) that is False on padding."""
        return self.graph.present(literals.ids)

    def auxiliary(self, costs: Tensor, present: BoolArray, upper: float) -> IntArray:
        """Add entries with `costs` (batch, k) and without a quadratic term; return their ids (k,)."""
        ids = np.arange(self._entries, self._entries + costs.shape[1])
        self._entries += costs.shape[1]
        self._costs.append(costs)
        self._upper.append(np.where(present, upper, 0.0))
        return ids

    def add_costs(self, literals: FactorGroup, costs: Tensor) -> None:
        """Add `costs` (batch, count, size) to those of the literals, up to a constant."""
        shape = (self.batch, *literals.ids.shape[1:])
        sign = torch.from_numpy(np.where(literals.negated, -1.0, 1.0)).to(costs.device)
        ids = torch.from_numpy(np.broadcast_to(literals.ids, shape).reshape(self.batch, -1).copy()).to(costs.device)
        added = torch.zeros((self.batch, self.graph.size), dtype=torch.float64, device=costs.device)
        self._added_costs.append(added.scatter_add(1, ids, (sign * costs).reshape(self.batch, -1)))

    def literal_rows(
        self,
        factor: Factor,
        literals: FactorGroup,
        coefficients: float | Array,
        lower: float | Array,
        upper: float | Array,
        active: BoolArray,
        auxiliary: tuple[IntArray, float] | None = None,
        copies: bool = False,
        violation_costs: Tensor | None = None,
    ) -> None:
        """Add rows lower <= Σ coefficient · literal (+ Σ auxiliary entries) <= upper, one per factor of the group.

        `copies`: whether the rows copy the literals of a structured factor.
        """
        weights = np.broadcast_to(coefficients, literals.ids.shape).astype(np.float64)
        shift = (self.present(literals) * np.where(literals.negated, weights, 0.0)).sum(-1)
        signed = np.where(literals.negated, -weights, weights)
        ids = literals.ids
        if auxiliary is not None:
            more, sign = auxiliary
            lead = ids.shape[0]
            ids = np.concatenate([ids, np.broadcast_to(more, (lead, *more.shape))], axis=-1)
            signed = np.concatenate([signed, np.full((lead, *more.shape), sign)], axis=-1)
        low, high = np.asarray(lower - shift), np.asarray(upper - shift)
        blocks = self._copies if copies else self._blocks
        active = np.broadcast_to(active, shift.shape)
        blocks.append(_RowBlock(factor, ids, signed, low, high, active, violation_costs))

    def soft_rows(
        self, factor: Factor, literals: FactorGroup, coefficients: Array, costs: Tensor, active: BoolArray
    ) -> None:
        """Add the score −cost · |Σ coefficient · literal|, with `costs` >= 0 (batch, count), for each factor."""
        self.literal_rows(factor, literals, coefficients, 0.0, 0.0, active, violation_costs=costs)

    def structured(self, factor: Factor) -> None:
        """Add a factor that is given by an oracle: each literal equals its mean over the configurations."""
        literals = factor.group
        flat = (literals.ids.shape[0], -1, 1)
        each = FactorGroup(literals.graph, literals.ids.reshape(flat), literals.negated.reshape(flat))
        present = self.present(each)[..., 0]
        self.literal_rows(factor, each, 1.0, 0.0, 0.0, present, copies=True)
        self._structured.append(factor)

    def build(self, temperature: float, quadratic: bool) -> Program:
        blocks = self._copies + [self._binding(block) for block in self._blocks]
        lead = max((block.ids.shape[0] for block in blocks), default=1)
        upper = np.concatenate(self._upper, axis=1)
        squares = np.zeros(self._entries)
        if quadratic:
            squares[: self.graph.size] = 1.0
        number, early = self._number_rows(blocks)
        indptr, rows, coefficients = _by_entry(blocks, number, lead, self._entries)
        active, rhs, slack_upper = self._bounds(blocks, number, upper)
        groups = [factor.group for factor in self._structured]
        copy_size = np.array([group.size for group in groups for _ in range(group.count)], np.int64)
        copy_rows = np.zeros((copy_size.size, int(copy_size.max(initial=0))), np.int64)
        first = 0
        for group, numbers in zip(groups, number, strict=False):
            copy_rows[first : first + group.count, : group.size] = numbers.reshape(group.count, group.size)
            first += group.count
        owners: list[Any] = [None] * sum(block.ids.shape[1] for block in blocks)
        for block, numbers in zip(blocks, number, strict=True):
            for i in numbers:
                owners[i] = block.factor
        costs = torch.cat(self._costs, dim=1)
        for added in self._added_costs:
            costs = costs + torch.nn.functional.pad(added, (0, self._entries - self.graph.size))
        return Program(
            batch=self.batch,
            variables=self.graph.size,
            costs=costs / temperature,
            violation_costs=self._violation_costs(blocks, number) / temperature,
            quadratic=squares,
            upper=upper,
            indptr=indptr,
            rows=rows,
            coefficients=coefficients,
            row_first=row_profile(indptr, rows, len(owners)),
            active=active,
            rhs=rhs,
            slack_upper=slack_upper,
            row_factor=owners,
            structured=self._structured,
            early=early,
            copy_rows=copy_rows,
            copy_size=copy_size,
        )

    def _violation_costs(self, blocks: list[_RowBlock], number: list[IntArray]) -> Tensor:
        """Return the costs of violations (batch, rows), in the order of the rows."""
        hard = torch.full((self.batch, 1), torch.inf, dtype=torch.float64, device=self.graph.device)
        parts = [
            hard.expand(-1, block.ids.shape[1]) if block.violation_costs is None else block.violation_costs
            for block in blocks
        ]
        order = torch.from_numpy(np.argsort(np.concatenate([*number, np.zeros(0, np.int64)])))
        return torch.cat([hard[:, :0], *parts], dim=1)[:, order.to(hard.device)]

    def _binding(self, block: _RowBlock) -> _RowBlock:
        """Return the block without the rows that bind in no instance."""
        if block.violation_costs is not None:
            return block  # a row of cost 0 does not bind, but its cost has a gradient
        least, most = self._reach(block, np.concatenate(self._upper, axis=1))
        binds = (block.active & ((block.upper < most) | (block.lower > least))).any(0)
        if binds.all():
            return block
        own: list[Any] = [np.broadcast_to(part, least.shape) for part in (block.lower, block.upper, block.active)]
        return _RowBlock(
            block.factor, block.ids[:, binds], block.coefficients[:, binds], *(part[:, binds] for part in own)
        )

    def _reach(self, block: _RowBlock, upper: Array) -> tuple[Array, Array]:
        """Return the smallest and the largest possible sum of each row, both (batch, count)."""
        reach = block.coefficients * upper[np.arange(self.batch)[:, None, None], block.ids]
        return np.minimum(reach, 0).sum(-1), np.maximum(reach, 0).sum(-1)

    def _number_rows(self, blocks: list[_RowBlock]) -> tuple[list[IntArray], int]:
        """Return the row numbers of each block, and the number of first copies (see `kernels.linear_systems_cpu`).

        First copies come first, then narrow rows in the order of their variables, then wide rows. This order keeps the
        profile of the kernels' matrices narrow.
        """
        if not blocks:
            return [], 0
        of_graph = [np.where(block.ids[0] < self.graph.size, block.ids[0], -1) for block in blocks]
        low = np.concatenate([np.where(ids < 0, self.graph.size, ids).min(-1) for ids in of_graph])
        high = np.concatenate([ids.max(-1) for ids in of_graph])
        later = np.ones(low.size, np.bool_)
        if self._copies:
            lead = max(block.ids.shape[0] for block in self._copies)
            copied = [np.broadcast_to(block.ids[..., 0], (lead, block.ids.shape[1])) for block in self._copies]
            ids = np.concatenate(copied, axis=1)
            later[: ids.shape[1]] = False
            for one in ids:
                again = np.ones(one.size, np.bool_)
                again[np.unique(one, return_index=True)[1]] = False
                later[: one.size] |= again
        order = np.lexsort(((low + high) / 2, high - low > self.graph.size / 8, later))
        position = np.empty(order.size, np.int64)
        position[order] = np.arange(order.size)
        ends = np.cumsum([block.ids.shape[1] for block in blocks])
        return np.split(position, ends[:-1]), int((~later).sum())

    def _bounds(self, blocks: list[_RowBlock], number: list[IntArray], upper: Array) -> tuple[BoolArray, Array, Array]:
        """Write the rows as Σ + slack = rhs; return (active, rhs, upper bounds of the slacks).

        Rows that can never bind are inactive.
        """
        count = sum(block.ids.shape[1] for block in blocks)
        active = np.zeros((self.batch, count), np.bool_)
        rhs, slack = np.zeros((self.batch, count)), np.zeros((self.batch, count))
        for block, numbers in zip(blocks, number, strict=True):
            least, most = self._reach(block, upper)
            if block.violation_costs is not None:
                active[:, numbers] = block.active & (block.violation_costs.detach().cpu().numpy() > 0.0)
                rhs[:, numbers] = block.upper
                continue
            copies = block.factor in self._structured
            bad = block.active & ((block.lower > most + 1e-9) | (block.upper < least - 1e-9))
            if bad.any() and not copies:
                raise infeasible(int(bad.any(1).argmax()), [block.factor])
            equal = block.lower == block.upper
            side = np.where(np.isfinite(block.upper), block.upper, most + 1.0)
            active[:, numbers] = block.active & (copies | (block.upper < most) | (block.lower > least))
            rhs[:, numbers] = side
            bottom = np.where(np.isfinite(block.lower), block.lower, np.minimum(least, side) - 1.0)
            slack[:, numbers] = np.where(equal, 0.0, side - bottom)
        rhs[~active] = 0.0
        slack[~active] = 0.0
        return active, rhs, slack


def _by_entry(
    blocks: list[_RowBlock], number: list[IntArray], lead: int, entries: int
) -> tuple[IntArray, IntArray, Array]:
    """Return the matrix in compressed columns (indptr, rows, coefficients), once if all instances share it."""
    if not blocks:
        return np.zeros((1, entries + 1), np.int64), np.zeros((1, 0), np.int64), np.zeros((1, 0))

    def spread(values: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        return np.broadcast_to(values, (lead, *shape)).reshape(lead, -1)

    ids = np.concatenate([spread(block.ids, block.ids.shape[1:]) for block in blocks], axis=1)
    values = np.concatenate([spread(block.coefficients, block.ids.shape[1:]) for block in blocks], axis=1)
    rows = np.concatenate(
        [spread(numbers[:, None], block.ids.shape[1:]) for block, numbers in zip(blocks, number, strict=True)],
        axis=1,
    )
    order = np.argsort(ids, axis=1, kind="stable")
    counts = np.zeros((lead, entries + 1), np.int64)
    for s in range(lead):
        counts[s, 1:] = np.bincount(ids[s], minlength=entries)
    return (
        np.cumsum(counts, axis=1),
        np.take_along_axis(rows, order, axis=1),
        np.ascontiguousarray(np.take_along_axis(values, order, axis=1)),
    )


def infeasible(instance: int, factors: list[Factor]) -> InfeasibleError:
    """Return an error that names the conflicting factors."""
    names = ", ".join(dict.fromkeys(repr(factor) for factor in factors))
    return InfeasibleError(
        f"instance {instance} of the batch is infeasible; conflicting factors: {names}. "
        "Relax or remove one of these factors, or mask the variables that should not take part",
        instance,
    )
