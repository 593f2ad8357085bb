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
    The rows' number, and with it memory and time, grows like the text. No word may have more than `margin` tokens.
    """
    batch, n = counts.shape
    device = counts.device
    ends = counts.cumsum(1)
    starts = ends - counts
    total = ends[:, -1]
    longest = max(1, int(total.max()))
    length = min(longest, capacity)
    core = longest if longest <= capacity else capacity - 2 * margin
    rows = (-(-total // core)).clamp(min=1)
    number = torch.arange(int(rows.max()), device=device)
    text, window = (number < rows[:, None]).nonzero(as_tuple=True)
    # A row begins with the first word that begins in its margin or after.
    first = torch.searchsorted(starts, (number * core - margin).clamp(min=0).expand(batch, -1).contiguous())
    begins = starts.gather(1, first.clamp(max=n - 1))
    token = begins[text, window][:, None] + torch.arange(length, device=device)
    word = torch.searchsorted(ends[text], token, right=True).clamp(max=n - 1)
    stops = ends[text].gather(1, word)
    real = (token < total[text][:, None]) & (stops <= token[:, :1] + length)
    part = token - starts[text].gather(1, word)
    own = torch.minimum(starts // core, rows[:, None] - 1)
    row = (rows.cumsum(0) - rows)[:, None] + own
    return Windows(text, word, part, real, row * length + starts - begins.gather(1, own))
