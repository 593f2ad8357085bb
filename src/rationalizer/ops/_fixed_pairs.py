"""Pairs that must or must not be aligned: the reduction of a matching problem to the free pairs.

A pair that must be aligned removes its row and its column and one unit of the budget; a pair that must not be aligned
is an entry fixed at 0. The rest is a matching problem of the same kind, so every op on matchings supports fixed pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops import _matrix_inputs as _matrices
from rationalizer.ops._declare import declare
from rationalizer.ops._errors import InfeasibleError
from rationalizer.ops._matrix_inputs import UNLIMITED, Matrices


class FreePairs(NamedTuple):
    """The problem on the free pairs."""

    row_mask: Tensor  # (matrices, m), without the rows of aligned pairs
    column_mask: Tensor  # (matrices, n)
    budget: Tensor  # (matrices,), without the aligned pairs; -1 if the fixed pairs are infeasible
    allowed: Tensor | None  # (matrices, m, n) bool: pairs that may be aligned; None: all
    aligned: Tensor | None  # (matrices, m, n) bool: pairs that must be aligned; None: none

    def restore_fixed(self, z: Tensor) -> Tensor:
        """Add the pairs that must be aligned to a solution (..., m, n) on the free pairs."""
        return z if self.aligned is None else z + self.aligned.reshape(z.shape).to(z.dtype)

    def remaining_lower_bound(self, at_least: Tensor | None, row_mask: Tensor, column_mask: Tensor) -> Tensor | None:
        """Return the lower bound on the number of free pairs; the masks are those of all pairs."""
        if at_least is None or self.aligned is None:
            return at_least
        shorter = torch.minimum(row_mask.sum(-1), column_mask.sum(-1))
        remaining = torch.minimum(at_least, shorter) - self.aligned.sum((-2, -1))
        return torch.where(at_least < 0, at_least, remaining.clamp(min=0))


def remove_fixed_pairs(
    fixed: Tensor | None, row_mask: Tensor, column_mask: Tensor, budget: Tensor, shape: torch.Size, monotone: bool
) -> FreePairs:
    """Apply `fixed`, of the scores' `shape` (..., m, n), to flat masks and budgets.

    With `monotone`, pairs that cross an aligned pair are not allowed either.
    """
    if fixed is None:
        return FreePairs(row_mask, column_mask, budget, None, None)
    _inputs.check_integers(fixed, shape, "fixed")
    flat = fixed.to(device=row_mask.device, dtype=torch.int64).reshape(row_mask.shape[0], *shape[-2:])
    return FreePairs(*_free_pairs(flat, row_mask, column_mask, budget, monotone))


def _fake(
    fixed: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    sides = torch.empty_like(row_mask), torch.empty_like(column_mask)
    return *sides, torch.empty_like(budget), row_mask.new_empty(fixed.shape), row_mask.new_empty(fixed.shape)


def _reduce(
    fixed: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, monotone: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    unmasked = row_mask[:, :, None] & column_mask[:, None, :]
    aligned = (fixed == 1) & unmasked
    rows, columns = aligned.any(-1), aligned.any(-2)
    allowed = (fixed == 0) & unmasked & ~rows[:, :, None] & ~columns[:, None, :]
    infeasible = (aligned.sum(-1) > 1).any(-1) | (aligned.sum(-2) > 1).any(-1)
    if monotone:
        crossed = _crossed(aligned)
        allowed &= ~crossed
        infeasible |= (crossed & aligned).any(-1).any(-1)
    remaining = torch.where(budget == UNLIMITED, budget, budget - aligned.sum((-2, -1)))
    remaining = torch.where(infeasible | (remaining < 0), -1, remaining)
    return row_mask & ~rows, column_mask & ~columns, remaining, allowed, aligned


@declare("free_pairs", fake=_fake, elsewhere=_reduce)
def _free_pairs(
    fixed: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, monotone: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    _inputs.require_budget(budget)
    _inputs.require_fixed(fixed)
    free = _reduce(fixed, row_mask, column_mask, budget, monotone)
    if (free[2] < 0).any():
        row = _inputs.first_index(free[2] < 0)[0]
        _raise_infeasible(row, free[4][row], int(budget[row]))
    return free


def _crossed(aligned: Tensor) -> Tensor:
    """Return the pairs that cross an aligned pair."""
    right = aligned.flip(-1).cumsum(-1).flip(-1) - aligned.int()  # aligned pairs in the same row, further right
    above_right = right.cumsum(-2) - right
    left = aligned.cumsum(-1) - aligned.int()
    below_left = left.flip(-2).cumsum(-2).flip(-2) - left
    return (above_right > 0) | (below_left > 0)


def _raise_infeasible(row: int, aligned: Tensor, budget: int) -> None:
    """Raise an InfeasibleError that names the pairs that cannot all be aligned."""
    pairs = [tuple(pair) for pair in aligned.nonzero().tolist()]
    combinations = [(other, pair) for i, pair in enumerate(pairs) for other in pairs[:i]]
    prefix = f"row {row} of the batch: "
    for (k, h), (i, j) in combinations:
        if i == k or j == h:
            word = f"row {i}" if i == k else f"column {j}"
            raise InfeasibleError(f"{prefix}({k}, {h}) and ({i}, {j}) must be aligned, but both contain {word}", row)
    if len(pairs) > budget:
        raise InfeasibleError(
            f"{prefix}{len(pairs)} pairs must be aligned, but the budget is {budget}; raise it or fix fewer pairs", row
        )
    for (k, h), (i, j) in combinations:
        if (i - k) * (j - h) < 0:
            raise InfeasibleError(f"{prefix}({k}, {h}) and ({i}, {j}) must be aligned, but cross", row)


def require_feasible(feasible: Tensor, exact: bool) -> None:
    """Raise an InfeasibleError for the first matrix without a feasible alignment."""
    if not feasible.all():
        row = _inputs.first_index(~feasible)[0]
        need = "as many pairs as required" if exact else "a partner for every word that needs one"
        raise InfeasibleError(
            f"row {row} of the batch: no alignment has {need}; free some of the pairs in `fixed`", row
        )


class MonotoneProblem(NamedTuple):
    """A problem without crossing pairs, on the host."""

    matrices: Matrices
    free: FreePairs
    exactly: bool
    device: torch.device

    def arguments(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, bool]:
        """The arguments of the custom ops."""
        allowed = self.free.allowed
        if allowed is None:
            allowed = self.free.row_mask[:, :, None] & self.free.column_mask[:, None, :]
        return self.matrices.scores, *self.free[:3], allowed, self.exactly

    def restore(self, z: Tensor) -> Tensor:
        return self.free.restore_fixed(self.matrices.restore(z)).to(self.device)

    def restore_batch(self, values: Tensor) -> Tensor:
        return self.matrices.restore_batch(values).to(self.device)


def as_monotone(
    scores: Tensor,
    budget: int | Tensor | None,
    exactly: bool,
    fixed: Tensor | None,
    row_mask: Tensor | None,
    column_mask: Tensor | None,
    temperature: float,
) -> MonotoneProblem:
    _matrices.check_matrices(scores, row_mask, column_mask, temperature)  # before the copies: errors name the originals
    _matrices.check_exact("at_most_one", "at_most_one", exactly, budget)
    matrices = _matrices.as_matrices(scores.cpu(), _host(row_mask), _host(column_mask), temperature)
    limit = budget.cpu() if isinstance(budget, Tensor) else budget
    limit = _matrices.as_matrix_budget(limit, matrices.shape[:-2], torch.device("cpu"))
    sides = (matrices.row_mask, matrices.column_mask)
    free = remove_fixed_pairs(_host(fixed), *sides, limit, matrices.shape, monotone=True)
    return MonotoneProblem(matrices, free, exactly, scores.device)


def _host(values: Tensor | None) -> Tensor | None:
    return values.cpu() if isinstance(values, Tensor) else values
