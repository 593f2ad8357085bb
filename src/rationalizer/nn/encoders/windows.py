"""Texts of any length in rows that an encoder can take, cut between words."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Windows(NamedTuple):
    """Where the tokens of a batch of texts stand. Every word has one home, a row in which it stands with context on
    both sides; it may stand in neighbouring rows too, as their context."""

    text: Tensor  # (rows,) the text that a row is of
    word: Tensor  # (rows, length) the word that a token is of
    part: Tensor  # (rows, length) and which of the word's tokens it is
    real: Tensor  # (rows, length) bool, False on padding, which comes last
    home: Tensor  # (batch, n) where a word's first token is at home: row · length + position


def lay_out(counts: Tensor, capacity: int, margin: int) -> Windows:
    """Rows of at most `capacity` tokens for texts whose words have `counts` (batch, n) tokens; 0: not there.

    A text that fits has one row. Of a longer one, row w is home to the words that begin at tokens
    [w·core, (w + 1)·core), core = capacity − 2·margin, and holds as context the words around them that fit in whole.
    The rows' number, and with it memory and time, grows like the text; a text's rows do not depend on the other texts.
    No word may have more than `margin` tokens.
    """
    batch, n = counts.shape
    device = counts.device
    ends = counts.cumsum(1)
    starts = ends - counts
    total = ends[:, -1]
    length = min(max(1, int(total.max())), capacity)
    core = torch.where(total <= capacity, total.clamp(min=1), capacity - 2 * margin)[:, None]
    rows = (-(-total // core[:, 0])).clamp(min=1)
    number = torch.arange(int(rows.max()), device=device)
    text, window = (number < rows[:, None]).nonzero(as_tuple=True)
    # A row begins with the first word that begins in its margin or after.
    first = torch.searchsorted(starts, (number * core - margin).clamp(min=0))
    begins = starts.gather(1, first.clamp(max=n - 1))
    token = begins[text, window][:, None] + torch.arange(length, device=device)
    real = token < total[text][:, None]
    # The words of all texts one after the other: the token's is the first that ends behind it.
    before = (total.cumsum(0) - total)[:, None]
    flat = torch.searchsorted((before + ends).flatten(), before[text] + torch.where(real, token, 0), right=True)
    flat = flat.clamp(max=batch * n - 1)
    real &= ends.flatten()[flat] <= token[:, :1] + length
    own = torch.minimum(starts // core, rows[:, None] - 1)
    row = (rows.cumsum(0) - rows)[:, None] + own
    return Windows(
        text,
        (flat - n * text[:, None]).clamp(0, n - 1),  # a text without tokens would point to its neighbour's
        token - starts.flatten()[flat],
        real,
        row * length + starts - begins.gather(1, own),
    )
