"""0/1 selections for methods whose training layer gives none: the k best words, or the best window of k words."""

from __future__ import annotations

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
        (batch, n), z in the dtype of `scores`. Ties go to earlier windows. No gradient. Sums are exact to about 1e-15
        of Σ|scores − median|: windows closer to each other than that count as ties.
    """
    rows, count = _prepare(scores, k, mask)
    n = rows.scores.shape[1]
    length = rows.mask.sum(-1, keepdim=True)
    size = count[:, None].clamp(min=0).minimum(length)
    order = (~rows.mask).to(torch.uint8).argsort(dim=-1, stable=True)  # words first, in their order
    position = _ranks(order)
    centred = rows.scores - _median(rows)  # all windows have the same length, so a constant would only cost digits
    total = centred.masked_fill(~rows.mask, 0.0).gather(-1, order).cumsum(-1)
    total = torch.nn.functional.pad(total, (1, 0))
    start = torch.arange(n, device=scores.device).expand_as(order)
    end = (start + size).clamp(max=n)
    window = total.gather(-1, end) - total.gather(-1, start)
    fits = start + size <= length
    best = window.masked_fill(~fits, -torch.inf).argmax(-1, keepdim=True) if n else start
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


def _median(rows: _inputs.Rows) -> Tensor:
    """(rows, 1): the median score of the words; 0 if there are none."""
    if rows.scores.numel() == 0:
        return rows.scores.new_zeros(rows.scores.shape[0], 1)
    present = rows.scores.masked_fill(~rows.mask, torch.nan)
    return present.nanmedian(-1, keepdim=True).values.nan_to_num(0.0)


def _ranks(order: Tensor) -> Tensor:
    """The inverse of the permutation `order`."""
    positions = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(-1, order, positions)
