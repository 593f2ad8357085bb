"""Hard selections for methods whose training layer gives none: the k best tokens, or the best window of k."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.ops import _inputs


def top_k(scores: Tensor, k: int | Tensor, *, mask: Tensor | None = None) -> Tensor:
    """The k best real tokens, exactly 0/1: argmax scores·z s.t. z ∈ {0, 1}ⁿ, Σz = min(k, number of real tokens).

    Args:
        scores: (batch, n) token scores; any number of leading dimensions.
        k: how many; an int, or an int tensor (batch,).
        mask: (batch, n) bool, True on real tokens.

    Returns:
        (batch, n) in the dtype of `scores`. Ties go to earlier tokens. No gradient.
    """
    rows, count = _prepare(scores, k, mask)
    order = rows.scores.masked_fill(~rows.mask, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    rank = _ranks(order)
    return _restore((rank < count[:, None]) & rows.mask, rows, count)


def contiguous(scores: Tensor, k: int | Tensor, *, mask: Tensor | None = None) -> Tensor:
    """The best window of k neighbouring real tokens, exactly 0/1; all of them where the text is no longer than k.

    Args:
        scores: (batch, n) token scores; any number of leading dimensions.
        k: how long; an int, or an int tensor (batch,).
        mask: (batch, n) bool, True on real tokens; the others are closed up.

    Returns:
        (batch, n) in the dtype of `scores`. Ties go to earlier windows. No gradient. Sums are exact to about 1e-15 of
        the sum of |scores|, counted from their median: windows nearer to each other than that count as ties.
    """
    rows, count = _prepare(scores, k, mask)
    n = rows.scores.shape[1]
    length = rows.mask.sum(-1, keepdim=True)
    size = count[:, None].clamp(min=0).minimum(length)
    order = (~rows.mask).to(torch.uint8).argsort(dim=-1, stable=True)  # real tokens first, in their order
    place = _ranks(order)
    scores_alone = rows.scores - _middle(rows)  # all windows have the same length: what they share only costs digits
    total = scores_alone.masked_fill(~rows.mask, 0.0).gather(-1, order).cumsum(-1)
    total = torch.nn.functional.pad(total, (1, 0))
    start = torch.arange(n, device=scores.device).expand_as(order)
    end = (start + size).clamp(max=n)
    window = total.gather(-1, end) - total.gather(-1, start)
    fits = start + size <= length
    best = window.masked_fill(~fits, -torch.inf).argmax(-1, keepdim=True) if n else start
    return _restore((place >= best) & (place < best + size) & rows.mask, rows, count)


def _prepare(scores: Tensor, k: int | Tensor, mask: Tensor | None) -> tuple[_inputs.Rows, Tensor]:
    rows = _inputs.as_rows(scores.detach() if isinstance(scores, Tensor) else scores, mask, 1.0)
    count = _inputs.as_budget(k, rows.shape[:-1], scores.device, name="k")
    if _inputs.may_look_at(scores):
        _inputs.require_finite_scores(rows.scores, rows.mask)
        _inputs.require_budget(count, name="k")
    return rows, count


def _restore(chosen: Tensor, rows: _inputs.Rows, count: Tensor) -> Tensor:
    z = chosen.to(rows.scores.dtype)
    if not _inputs.may_look_at(z):
        z = _inputs.nan_without_answer(z, rows.scores, rows.mask, count)
    return rows.restore(z)


def _middle(rows: _inputs.Rows) -> Tensor:
    """(rows, 1): a score in the middle of the real ones."""
    if rows.scores.numel() == 0:
        return rows.scores.new_zeros(rows.scores.shape[0], 1)
    real = rows.scores.masked_fill(~rows.mask, torch.nan)
    return real.nanmedian(-1, keepdim=True).values.nan_to_num(0.0)


def _ranks(order: Tensor) -> Tensor:
    """The inverse of a permutation given as `order`."""
    positions = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(-1, order, positions)
