"""A bidirectional LSTM in which padding never affects the states of real words."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from rationalizer.text.word_batch import gather_words

ROWS = 64  # that `read_by_length` reads together


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


def read_by_length(network: Callable[[Tensor, Tensor], Tensor], vectors: Tensor, mask: Tensor) -> Tensor:
    """`network(vectors, mask)`, applied to rows of similar lengths at a time, so that it reads little padding."""
    lengths, order = mask.sum(1).sort(stable=True)
    states = []
    for rows, own in zip(torch.split(order, ROWS), torch.split(lengths, ROWS), strict=True):
        width = max(1, int(own[-1]))
        part = network(vectors.index_select(0, rows)[:, :width], mask.index_select(0, rows)[:, :width])
        states.append(functional.pad(part, (0, 0, 0, mask.shape[1] - width)))
    return torch.cat(states).index_select(0, order.argsort())
