"""Arguments of the ops on score matrices (one matrix for each pair of texts): masks on both sides, feasibility."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._errors import InfeasibleError

UNLIMITED = _inputs.LARGEST_COUNT
LARGEST = 1e30  # the largest scores for which the projection onto matchings is accurate
FINITE_REMEDY = "scores must be finite (exclude words with row_mask and column_mask, not with -inf)"


class Matrices(NamedTuple):
    """A batch of score matrices in the form that the kernels take."""

    scores: Tensor  # (matrices, m, n), float64, divided by the temperature
    row_mask: Tensor  # (matrices, m), bool
    column_mask: Tensor  # (matrices, n), bool
    shape: torch.Size
    dtype: torch.dtype

    def restore(self, z: Tensor) -> Tensor:
        """Return `z` (matrices, m, n) in the shape and dtype of the scores."""
        return z.reshape(self.shape).to(self.dtype)

    def restore_batch(self, values: Tensor) -> Tensor:
        """Return one value per matrix in the leading dimensions of the scores."""
        return values.reshape(self.shape[:-2])


def as_matrices(scores: Tensor, row_mask: Tensor | None, column_mask: Tensor | None, temperature: float) -> Matrices:
    return scale(scores, *check_matrices(scores, row_mask, column_mask, temperature), temperature)


def scale(scores: Tensor, row_mask: Tensor, column_mask: Tensor, temperature: float) -> Matrices:
    flat = scores.to(_inputs.compute_dtype(scores.device)).reshape(row_mask.shape[0], *scores.shape[-2:])
    return Matrices(flat / float(temperature), row_mask, column_mask, scores.shape, scores.dtype)


def check_matrices(
    scores: Tensor, row_mask: Tensor | None, column_mask: Tensor | None, temperature: float
) -> tuple[Tensor, Tensor]:
    """Check the arguments; return the masks as (matrices, m) and (matrices, n)."""
    _inputs.check_scores(scores, dims=2, shape_hint="(batch, m, n)")
    _inputs.check_temperature(temperature)
    lead, (m, n) = scores.shape[:-2], scores.shape[-2:]
    count = math.prod(lead)
    rows = _inputs.check_mask(row_mask, lead + torch.Size([m]), scores.device, "row_mask")
    columns = _inputs.check_mask(column_mask, lead + torch.Size([n]), scores.device, "column_mask")
    return rows.reshape(count, m), columns.reshape(count, n)


def _is_exact(kind: str, name: str) -> bool:
    if kind not in ("exactly_one", "at_most_one"):
        raise ValueError(f"{name} must be 'exactly_one' or 'at_most_one', got {kind!r}")
    return kind == "exactly_one"


def check_exact(rows: str, columns: str, exactly: bool, budget: int | Tensor | None) -> tuple[bool, bool, bool]:
    """Return whether the row sums, the column sums and the total are equalities."""
    exact = _is_exact(rows, "rows"), _is_exact(columns, "columns")
    if exactly and budget is None:
        raise ValueError("exactly=True needs a budget, the number of aligned pairs")
    if exactly and any(exact):
        raise ValueError("exactly=True cannot be combined with 'exactly_one', which already fixes the number of pairs")
    return *exact, exactly


def as_matrix_budget(budget: int | Tensor | None, lead: torch.Size, device: torch.device) -> Tensor:
    return _inputs.as_budget(UNLIMITED if budget is None else budget, lead, device)


def require_solvable(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    allowed: Tensor | None,
    rows_exact: bool = False,
    columns_exact: bool = False,
    total_exact: bool = False,
    largest: float | None = None,
) -> None:
    """Raise unless all scores that are used are finite (and at most `largest`) and a feasible matching exists."""
    _require_feasible(row_mask, column_mask, budget, rows_exact, columns_exact, total_exact)
    used = row_mask[:, :, None] & column_mask[:, None, :]
    used = used if allowed is None else used & allowed
    _inputs.require_finite(scores, used, "scores", FINITE_REMEDY)
    if largest is not None and (scores.abs() > largest).logical_and(used).any():
        raise ValueError(
            f"scores/temperature must be at most {largest:.0e} in size, or rounding destroys the solution; divide the "
            "scores, raise the temperature, or use matching_map, which has no such bound"
        )


def is_solvable(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    allowed: Tensor | None,
    rows_exact: bool,
    columns_exact: bool,
    total_exact: bool,
    at_least: Tensor | None,
) -> Tensor:
    """Return for each matrix whether `require_solvable` and `_inputs.require_bounds` accept it, without raising."""
    used = row_mask[:, :, None] & column_mask[:, None, :]
    used = used if allowed is None else used & allowed
    solvable = (scores.abs().le(LARGEST) | ~used).flatten(1).all(-1) & (budget >= 0)
    if at_least is not None:
        solvable &= (at_least >= 0) & (at_least <= budget)
    for holds, _ in _conditions(row_mask, column_mask, budget, rows_exact, columns_exact, total_exact):
        solvable &= holds
    return solvable


def _require_feasible(
    row_mask: Tensor, column_mask: Tensor, budget: Tensor, rows_exact: bool, columns_exact: bool, total_exact: bool
) -> None:
    _inputs.require_budget(budget)
    for holds, condition in _conditions(row_mask, column_mask, budget, rows_exact, columns_exact, total_exact):
        if not holds.all():
            i = _inputs.first_index(~holds)[0]
            limit = "no budget" if budget[i] == UNLIMITED else f"budget {int(budget[i])}"
            size = f"{int(row_mask[i].sum())} rows, {int(column_mask[i].sum())} columns, {limit}"
            raise InfeasibleError(f"{condition}; row {i} of the batch has {size}", i)


def _conditions(
    row_mask: Tensor, column_mask: Tensor, budget: Tensor, rows_exact: bool, columns_exact: bool, total_exact: bool
) -> Iterator[tuple[Tensor, str]]:
    """Yield what each matrix needs for a solution: whether it holds, and a sentence."""
    rows, columns = row_mask.sum(-1), column_mask.sum(-1)
    if total_exact:
        shorter = torch.minimum(rows, columns)
        yield budget <= shorter, "exactly=True needs a budget of at most the length of the shorter side"
    if rows_exact and columns_exact:
        yield rows == columns, "rows='exactly_one' with columns='exactly_one' needs as many columns as rows"
    if rows_exact:
        yield rows <= columns, "rows='exactly_one' needs at least as many columns as rows"
        yield budget >= rows, "rows='exactly_one' needs a budget of at least the number of rows"
    if columns_exact:
        yield columns <= rows, "columns='exactly_one' needs at least as many rows as columns"
        yield budget >= columns, "columns='exactly_one' needs a budget of at least the number of columns"
