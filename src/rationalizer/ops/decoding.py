"""0/1 selections for methods whose training layer gives none: the k best words, or the best window of k words."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rationalizer.ops import _inputs


def top_k(scores: Tensor, k: int | Tensor, *, mask: Tensor | None = None) -> Tensor:
    """The k best words: argmax scores·z s.t. z ∈ {0, 1}ⁿ, Σz = min(k, number of words).

    Args:
        scores: (batch, n) word scores; any number of leading dimensions.
        k: the number of selected words; an int, or an int tensor (batch,).
        mask: (batch, n) bool, True on words. Masked positions get exactly 0.

    Returns:
        (batch, n), z in the dtype of `scores`. Ties go to earlier words. No gradient.
    """
    rows, count = _prepare(scores, k, mask)
    order = rows.scores.masked_fill(~rows.mask, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    rank = _ranks(order)
    return _restore((rank < count[:, None]) & rows.mask, rows, count)


def contiguous(scores: Tensor, k: int | Tensor, *, mask: Tensor | None = None) -> Tensor:
    """The best window: argmax scores·z s.t. z ∈ {0, 1}ⁿ is one run of min(k, number of words) neighbouring words.

    Args:
        scores: (batch, n) word scores; any number of leading dimensions.
        k: the length of the window; an int, or an int tensor (batch,).
        mask: (batch, n) bool, True on words; the words around masked positions are neighbours.

    Returns:
        (batch, n), z in the dtype of `scores`. Ties go to earlier windows. No gradient. The sum of a window is
        exact to about 1e-30 of the largest score in it, and independent of the scores outside it.
    """
    rows, count = _prepare(scores, k, mask)
    n = rows.scores.shape[1]
    length = rows.mask.sum(-1, keepdim=True)
    size = count[:, None].clamp(min=0).minimum(length)
    order = (~rows.mask).to(torch.uint8).argsort(dim=-1, stable=True)  # words first, in their order
    position = _ranks(order)
    start = torch.arange(n, device=scores.device).expand_as(order)
    longest = n if isinstance(k, Tensor) else min(int(k), n)
    high, low = _window_sums(_avoid_overflow(rows).gather(-1, order), start, size, longest)
    fits = start + size <= length
    high = high.masked_fill(~fits, -torch.inf)
    largest = fits & (high == high.amax(-1, keepdim=True)) if n else fits
    best = low.masked_fill(~largest, -torch.inf).argmax(-1, keepdim=True) if n else start
    return _restore((position >= best) & (position < best + size) & rows.mask, rows, count)


def _prepare(scores: Tensor, k: int | Tensor, mask: Tensor | None) -> tuple[_inputs.Rows, Tensor]:
    rows = _inputs.as_rows(scores.detach() if isinstance(scores, Tensor) else scores, mask, 1.0)
    count = _inputs.as_budget(k, rows.shape[:-1], scores.device, name="k")
    if _inputs.can_inspect(scores):
        _inputs.require_finite_scores(rows.scores, rows.mask)
        _inputs.require_budget(count, name="k")
    return rows, count


def _restore(selected: Tensor, rows: _inputs.Rows, count: Tensor) -> Tensor:
    z = selected.to(rows.scores.dtype)
    if not _inputs.can_inspect(z):
        z = _inputs.nan_if_unsolvable(z, rows.scores, rows.mask, count)
    return rows.restore(z)


def _avoid_overflow(rows: _inputs.Rows) -> Tensor:
    """The scores of the words, 0 at masked positions; rows with huge scores are divided by 2⁶⁴, which is exact."""
    values = rows.scores.masked_fill(~rows.mask, 0.0)
    huge = (values.abs() > torch.finfo(values.dtype).max * 2.0**-64).any(-1, keepdim=True)
    return torch.where(huge, values * 2.0**-64, values)


def _window_sums(values: Tensor, start: Tensor, size: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """The sum of the `size` (at most `longest`) values from each start on, 0 beyond the end: a high and a low part.

    Sums of 1, 2, 4, ... values are combined by the binary digits of `size`. Differences of prefix sums would be
    cheaper, but one large score destroys the sums of all windows behind it.
    """
    pad = torch.nn.functional.pad
    n, width, offset = values.shape[1], 1, start
    part, total = (values, torch.zeros_like(values)), (torch.zeros_like(values), torch.zeros_like(values))
    while width <= longest:
        is_digit = (size & width) != 0
        at = offset.clamp(max=n)
        total = _add(total, [pad(one, (0, 1)).gather(-1, at).masked_fill(~is_digit, 0.0) for one in part])
        offset = torch.where(is_digit, offset + width, offset)
        part = _add(part, [pad(one[:, width:], (0, width)) for one in part])
        width *= 2
    return total


def _add(a: Sequence[Tensor], b: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Add numbers that are pairs of floats, high and low part, with twice the digits (Dekker, 1971)."""
    total = a[0] + b[0]
    grown = total - a[0]
    error = (a[0] - (total - grown)) + (b[0] - grown) + (a[1] + b[1])
    high = total + error
    return high, error - (high - total)


def _ranks(order: Tensor) -> Tensor:
    """The inverse of the permutation `order`."""
    positions = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(-1, order, positions)
