"""What the ops on score matrices share: masks on both sides, and which requests have an answer."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from rationalizer.ops import _inputs

UNLIMITED = 2**62
LARGEST = 1e30  # scores that the projection onto matchings still gets right
FINITE_REMEDY = "only finite scores have an answer (leave words out with row_mask and column_mask, not -inf)"


class Pairs(NamedTuple):
    """A batch of score matrices as the kernels take it."""

    scores: Tensor  # (pairs, m, n), float64, divided by the temperature
    row_mask: Tensor  # (pairs, m), bool
    column_mask: Tensor  # (pairs, n), bool
    shape: torch.Size
    dtype: torch.dtype

    def restore(self, z: Tensor) -> Tensor:
        return z.reshape(self.shape).to(self.dtype)

    def restore_pairs(self, values: Tensor) -> Tensor:
        return values.reshape(self.shape[:-2])


def as_pairs(scores: Tensor, row_mask: Tensor | None, column_mask: Tensor | None, temperature: float) -> Pairs:
    return scaled(scores, *as_sides(scores, row_mask, column_mask, temperature), temperature)


def scaled(scores: Tensor, row_mask: Tensor, column_mask: Tensor, temperature: float) -> Pairs:
    flat = scores.to(_inputs._precision(scores.device)).reshape(row_mask.shape[0], *scores.shape[-2:])
    return Pairs(flat / temperature, row_mask, column_mask, scores.shape, scores.dtype)


def as_sides(
    scores: Tensor, row_mask: Tensor | None, column_mask: Tensor | None, temperature: float
) -> tuple[Tensor, Tensor]:
    """The arguments checked; the masks as (pairs, m) and (pairs, n)."""
    _inputs.check_scores(scores, dims=2, shape_hint="(batch, m, n)")
    _inputs.check_temperature(temperature)
    lead, (m, n) = scores.shape[:-2], scores.shape[-2:]
    pairs = math.prod(lead)
    rows = _inputs.check_mask(row_mask, lead + torch.Size([m]), scores.device, "row_mask")
    columns = _inputs.check_mask(column_mask, lead + torch.Size([n]), scores.device, "column_mask")
    return rows.reshape(pairs, m), columns.reshape(pairs, n)


def as_exact(kind: str, name: str) -> bool:
    if kind not in ("exactly_one", "at_most_one"):
        raise ValueError(f"{name} must be 'exactly_one' or 'at_most_one', got {kind!r}")
    return kind == "exactly_one"


def as_all_exact(rows: str, columns: str, exactly: bool, budget: int | Tensor | None) -> tuple[bool, bool, bool]:
    """Whether the sums of rows, of columns, and the total are fixed."""
    exact = as_exact(rows, "rows"), as_exact(columns, "columns")
    if exactly and budget is None:
        raise ValueError("exactly=True asks for as many pairs as the budget says; give a budget")
    if exactly and any(exact):
        raise ValueError("exactly=True with 'exactly_one': the rows or columns say already how many pairs there are")
    return *exact, exactly


def as_pair_budget(budget: int | Tensor | None, lead: torch.Size, device: torch.device) -> Tensor:
    return _inputs.as_budget(UNLIMITED if budget is None else budget, lead, device)


def real_pairs(row_mask: Tensor, column_mask: Tensor, allowed: Tensor | None) -> Tensor:
    real = row_mask[:, :, None] & column_mask[:, None, :]
    return real if allowed is None else real & allowed


def require_finite_pairs(scores: Tensor, row_mask: Tensor, column_mask: Tensor, allowed: Tensor | None = None) -> None:
    real = real_pairs(row_mask, column_mask, allowed)
    _inputs.require_finite(scores, real, "scores", FINITE_REMEDY)


def require_in_range(scores: Tensor, row_mask: Tensor, column_mask: Tensor, allowed: Tensor | None) -> None:
    real = real_pairs(row_mask, column_mask, allowed)
    if (scores.abs() > LARGEST).logical_and(real).any():
        raise ValueError(
            f"scores/temperature must be at most {LARGEST:.0e} in size, beyond which rounding leaves nothing of the "
            "answer; divide the scores, raise the temperature, or use matching_map, which has no such bound"
        )


def require_feasible(
    row_mask: Tensor, column_mask: Tensor, budget: Tensor, rows_exact: bool, columns_exact: bool, total_exact: bool
) -> None:
    _inputs.require_budget(budget)
    rows, columns = row_mask.sum(-1), column_mask.sum(-1)
    if total_exact:
        short = torch.minimum(rows, columns)
        need = "exactly=True needs a budget of at most the shorter side's length"
        _refuse(budget > short, rows, columns, need)
    if rows_exact and columns_exact:
        _refuse(
            rows != columns,
            rows,
            columns,
            "rows='exactly_one' with columns='exactly_one' needs as many columns as rows",
        )
    if rows_exact:
        _refuse(rows > columns, rows, columns, "rows='exactly_one' needs at least as many columns as rows")
        _refuse_budget(budget < rows, budget, rows, "rows")
    if columns_exact:
        _refuse(columns > rows, rows, columns, "columns='exactly_one' needs at least as many rows as columns")
        _refuse_budget(budget < columns, budget, columns, "columns")


def _refuse(bad: Tensor, rows: Tensor, columns: Tensor, need: str) -> None:
    if bad.any():
        where = int(bad.nonzero()[0])
        raise ValueError(f"{need}; row {where} of the batch has {int(rows[where])} rows, {int(columns[where])} columns")


def _refuse_budget(bad: Tensor, budget: Tensor, count: Tensor, side: str) -> None:
    if bad.any():
        where = int(bad.nonzero()[0])
        raise ValueError(
            f"{side}='exactly_one' needs a budget of at least the number of {side}; "
            f"row {where} of the batch has {int(count[where])} {side}, budget {int(budget[where])}"
        )
