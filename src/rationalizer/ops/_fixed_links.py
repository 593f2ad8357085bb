"""Pairs that must be aligned, and pairs that never may be: what they leave of a matching problem.

A pair that must be aligned takes its row and its column out of the problem and one off the budget; one that may not be
is an entry that is 0. What remains is a matching problem of the same kind, so every op on matchings takes them.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops import _matrix_inputs as _pairs
from rationalizer.ops._matrix_inputs import UNLIMITED, Pairs

_Left = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


class Links(NamedTuple):
    """The problem that is left."""

    row_mask: Tensor  # (pairs, m), without the rows that are spoken for
    column_mask: Tensor  # (pairs, n)
    budget: Tensor  # (pairs,), without what must be aligned; -1 where the links contradict each other
    allowed: Tensor | None  # (pairs, m, n) bool: what may still be aligned; None: everything
    aligned: Tensor | None  # (pairs, m, n) bool: what is aligned in any case; None: nothing

    def complete(self, z: Tensor) -> Tensor:
        """A solution of what is left, (..., m, n), as one of the whole."""
        return z if self.aligned is None else z + self.aligned.reshape(z.shape).to(z.dtype)


def as_links(
    fixed: Tensor | None, row_mask: Tensor, column_mask: Tensor, budget: Tensor, shape: torch.Size, monotone: bool
) -> Links:
    """`fixed` of the scores' `shape` (..., m, n), applied to flat masks and budgets; with `monotone` also pairs that
    cross one that must be aligned may not be."""
    if fixed is None:
        return Links(row_mask, column_mask, budget, None, None)
    if not isinstance(fixed, Tensor) or fixed.is_floating_point() or fixed.is_complex() or fixed.dtype == torch.bool:
        kind = fixed.dtype if isinstance(fixed, Tensor) else type(fixed).__name__
        raise TypeError(
            f"fixed must be an integer tensor (1 must, -1 never, 0 free), got {kind}; use fixed.to(torch.int8)"
        )
    if fixed.shape != shape:
        raise ValueError(f"fixed must have the shape of the scores, {tuple(shape)}, got {tuple(fixed.shape)}")
    flat = fixed.to(device=row_mask.device, dtype=torch.int8).reshape(row_mask.shape[0], *shape[-2:])
    return Links(*_links(flat, row_mask, column_mask, budget, monotone))


@_inputs.opaque("links")
def _links(
    fixed: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, monotone: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return _left(fixed, row_mask, column_mask, budget, monotone)


def _left(fixed: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, monotone: bool) -> _Left:
    real = row_mask[:, :, None] & column_mask[:, None, :]
    aligned = (fixed == 1) & real
    rows, columns = aligned.any(-1), aligned.any(-2)
    allowed = (fixed == 0) & real & ~rows[:, :, None] & ~columns[:, None, :]
    contradicts = (aligned.sum(-1) > 1).any(-1) | (aligned.sum(-2) > 1).any(-1)
    if monotone:
        crossed = _crossed(aligned)
        allowed &= ~crossed
        contradicts |= (crossed & aligned).any(-1).any(-1)
    count = aligned.sum((-2, -1))
    left = torch.where(budget == UNLIMITED, budget, budget - count)
    left = torch.where(contradicts | (left < 0), -1, left)
    return row_mask & ~rows, column_mask & ~columns, left, allowed, aligned


@_links.register_kernel("cpu")
def _(
    fixed: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, monotone: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    _inputs.require_budget(budget)
    if (fixed.abs() > 1).any():
        where = _inputs._first(fixed.abs() > 1)
        raise ValueError(f"fixed{where} is {int(fixed[tuple(where)])}; write 1 (must), -1 (never) or 0 (free)")
    found = _left(fixed, row_mask, column_mask, budget, monotone)
    if (found[2] < 0).any():
        row = int((found[2] < 0).nonzero()[0])
        _refuse(row, found[4][row], int(budget[row]))
    return found


@_links.register_fake
def _(
    fixed: Tensor, row_mask: Tensor, column_mask: Tensor, budget: Tensor, monotone: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return (
        torch.empty_like(row_mask),
        torch.empty_like(column_mask),
        torch.empty_like(budget),
        row_mask.new_empty(fixed.shape),
        row_mask.new_empty(fixed.shape),
    )


def _crossed(aligned: Tensor) -> Tensor:
    """Pairs with a word before and a word after those of some aligned pair, the other way round in the other text."""
    before = aligned.flip(-1).cumsum(-1).flip(-1) - aligned.int()  # in the same row, further right
    above_right = before.cumsum(-2) - before
    after = aligned.cumsum(-1) - aligned.int()
    below_left = after.flip(-2).cumsum(-2).flip(-2) - after
    return (above_right > 0) | (below_left > 0)


def _refuse(row: int, aligned: Tensor, budget: int) -> None:
    """ValueError that names the pairs of which not all can be had."""
    pairs = [tuple(pair) for pair in aligned.nonzero().tolist()]
    for at, (i, j) in enumerate(pairs):
        for k, h in pairs[:at]:
            if i == k or j == h:
                side, word = ("row", i) if i == k else ("column", j)
                raise ValueError(
                    f"row {row} of the batch: ({k}, {h}) and ({i}, {j}) must be aligned, both with {side} {word}"
                )
    if len(pairs) > budget:
        raise ValueError(
            f"row {row} of the batch: {len(pairs)} pairs must be aligned, budget {budget}; raise it, or ask for fewer"
        )
    for at, (i, j) in enumerate(pairs):
        for k, h in pairs[:at]:
            if (i - k) * (j - h) < 0:
                raise ValueError(f"row {row} of the batch: ({k}, {h}) and ({i}, {j}) must be aligned, but cross")


def require_found(found: Tensor, exact: bool) -> None:
    """ValueError for the first pair of texts that has no alignment with as many links as it has to have."""
    if not found.all():
        row = int((~found).nonzero()[0])
        have = "as many pairs as the budget says" if exact else "a partner for every word that must have one"
        raise ValueError(f"row {row} of the batch: no alignment has {have}; free some of the pairs in `fixed`")


class Monotone(NamedTuple):
    """A problem without crossing links, on the host."""

    pairs: Pairs
    links: Links
    exactly: bool
    device: torch.device

    @property
    def arguments(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, bool]:
        """What the ops take."""
        allowed = self.links.allowed
        if allowed is None:
            allowed = self.links.row_mask[:, :, None] & self.links.column_mask[:, None, :]
        return self.pairs.scores, *self.links[:3], allowed, self.exactly

    def restore(self, z: Tensor) -> Tensor:
        return self.links.complete(self.pairs.restore(z)).to(self.device)

    def restore_rows(self, values: Tensor) -> Tensor:
        return self.pairs.restore_pairs(values).to(self.device)


def as_monotone(
    scores: Tensor,
    budget: int | Tensor | None,
    exactly: bool,
    fixed: Tensor | None,
    row_mask: Tensor | None,
    column_mask: Tensor | None,
    temperature: float,
) -> Monotone:
    _pairs.as_sides(scores, row_mask, column_mask, temperature)  # so that errors speak of the tensors as given
    _pairs.as_all_exact("at_most_one", "at_most_one", exactly, budget)
    pairs = _pairs.as_pairs(scores.cpu(), _host(row_mask), _host(column_mask), temperature)
    limit = budget.cpu() if isinstance(budget, Tensor) else budget
    limit = _pairs.as_pair_budget(limit, pairs.shape[:-2], torch.device("cpu"))
    links = as_links(_host(fixed), pairs.row_mask, pairs.column_mask, limit, pairs.shape, monotone=True)
    return Monotone(pairs, links, exactly, scores.device)


def _host(values: Tensor | None) -> Tensor | None:
    return values.cpu() if isinstance(values, Tensor) else values
