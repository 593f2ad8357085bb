"""Split texts of any length between words into rows that fit a transformer."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Windows(NamedTuple):
    """The positions of the tokens of a batch of texts. Every word has one home, a row that has context on both sides of
    it; it may also occur in neighbouring rows, as context."""

    text: Tensor  # (rows,) the text of each row
    word: Tensor  # (rows, length) the word of each token
    part: Tensor  # (rows, length) the index of the token within its word
    real: Tensor  # (rows, length) bool, False on padding, which comes last
    home: Tensor  # (batch, n) the home of each word's first token: row · length + position


def lay_out(counts: Tensor, capacity: int, margin: int) -> Windows:
    """Rows of at most `capacity` tokens for texts whose words have `counts` (batch, n) tokens; 0 for absent words.

    A text that fits has one row. In a longer one, row w is the home of the words that begin at tokens
    [w·core, (w + 1)·core), core = capacity − 2·margin; its context is the words around them that fit completely.
    Memory and time grow linearly with the text, and a text's rows do not depend on other texts. No word may have more
    than `margin` tokens.
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
    # A row begins with the first word that begins within its margin or later.
    first = torch.searchsorted(starts, (number * core - margin).clamp(min=0))
    begins = starts.gather(1, first.clamp(max=n - 1))
    token = begins[text, window][:, None] + torch.arange(length, device=device)
    real = token < total[text][:, None]
    # With the words of all texts in sequence, a token belongs to the first word that ends after it.
    before = (total.cumsum(0) - total)[:, None]
    flat = torch.searchsorted((before + ends).flatten(), before[text] + torch.where(real, token, 0), right=True)
    flat = flat.clamp(max=batch * n - 1)
    real &= ends.flatten()[flat] <= token[:, :1] + length
    own = torch.minimum(starts // core, rows[:, None] - 1)
    row = (rows.cumsum(0) - rows)[:, None] + own
    return Windows(
        text,
        (flat - n * text[:, None]).clamp(0, n - 1),  # a text without tokens would point to the next text's words
        token - starts.flatten()[flat],
        real,
        row * length + starts - begins.gather(1, own),
    )
