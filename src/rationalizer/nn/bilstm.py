"""A bidirectional LSTM in which padding never affects the states of real words."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rationalizer.text.word_batch import gather_words


class BiLSTM(nn.Module):
    """(batch, n, size_in) vectors and a (batch, n) mask -> (batch, n, 2 · hidden) states, 0 on padding.

    Padding comes last in a row. The states of a text depend on neither padding nor the rest of the batch: the
    right-to-left LSTM gets every text reversed within its own length, so that both see padding only after the text.
    That is up to 3.5 times faster than packed sequences on CPU and needs no lengths on the host.
    """

    def __init__(self, size_in: int, hidden: int) -> None:
        super().__init__()
        self.size_out = 2 * hidden
        self.forwards = nn.LSTM(size_in, hidden, batch_first=True)
        self.backwards = nn.LSTM(size_in, hidden, batch_first=True)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        n = mask.shape[1]
        position = torch.arange(n, device=mask.device)
        mirror = torch.where(mask, mask.sum(1, keepdim=True) - 1 - position, position)
        left, _ = self.forwards(vectors)
        right, _ = self.backwards(gather_words(vectors, mirror))
        states = torch.cat([left, gather_words(right, mirror)], dim=-1)
        return torch.where(mask[..., None], states, states.new_zeros(()))
