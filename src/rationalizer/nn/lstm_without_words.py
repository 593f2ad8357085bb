"""What the predictor's BiLSTM makes of a selection, and of the selection without each word, faster than by itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rationalizer.nn.bilstm import BiLSTM
from rationalizer.nn.kernels.lstm_without_words_cpu import max_states_without
from rationalizer.ops.kernels.numba_runtime import for_rows

STEP_NANOSECONDS = 350  # of one row, with 64 hidden units


def leave_out(
    network: BiLSTM, vectors: Tensor, z: Tensor, lengths: Tensor, places: Sequence[Sequence[int]]
) -> tuple[Tensor, Tensor]:
    """Max-pooled states and Σ z x / √(Σ z) of the selection z of each text, followed by z with a 0 at each place.

    Args:
        network: of the predictor, on a CPU, in single precision.
        vectors: (words, vector size) the vectors of the words with z ≠ 0, text by text.
        z: (texts, n).
        lengths: (texts,) the number of words of each text.
        places: for each text, selected words in ascending order.
    """
    text, word = (z != 0).nonzero(as_tuple=True)
    weights = z[text, word]
    visible = weights[:, None] * vectors
    row_of = torch.full(z.shape, len(visible))  # words with z = 0 have the last row, of an empty word
    row_of[text, word] = torch.arange(len(visible))
    starts = np.array([0, *accumulate(map(len, places))])
    left_out = np.fromiter(chain.from_iterable(places), np.int64, starts[-1])
    states = [
        _one_direction(lstm, backwards, visible, row_of, lengths, left_out, starts)
        for lstm, backwards in ((network.forwards, False), (network.backwards, True))
    ]
    owner = torch.repeat_interleave(torch.arange(len(z)), torch.from_numpy(1 + np.diff(starts)))
    missing = torch.full((len(owner),), len(visible))
    is_variant = torch.ones(len(owner), dtype=torch.bool)
    is_variant[torch.from_numpy(starts[:-1]) + torch.arange(len(z))] = False
    missing[is_variant] = row_of[owner[is_variant], torch.from_numpy(left_out)]
    # In double precision, in which a sum minus a word is as exact as the sum of the others.
    total = z.new_zeros(z.shape[0], 1 + visible.shape[1], dtype=torch.float64)
    parts = torch.cat([weights[:, None], visible], dim=1).double()
    total.index_add_(0, text, parts)
    rest = total[owner] - torch.cat([parts, parts.new_zeros(1, parts.shape[1])])[missing]
    global_state = (rest[:, 1:] / rest[:, :1].clamp(min=1e-6).sqrt()).to(visible.dtype)
    return torch.cat(states, dim=-1), global_state


def _one_direction(
    lstm: nn.LSTM,
    backwards: bool,
    visible: Tensor,
    row_of: Tensor,
    lengths: Tensor,
    left_out: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> Tensor:
    input_weights, weights, *biases = lstm.all_weights[0]
    bias = biases[0] + biases[1]
    inputs = torch.cat([torch.addmm(bias, visible, input_weights.T), bias[None]])
    out = bias.new_empty(len(row_of) + len(left_out), lstm.hidden_size)
    steps = int((lengths * torch.from_numpy(1 + np.diff(starts) // 2)).sum())
    arrays = (lengths, inputs, row_of, weights.T, left_out, starts, out)
    for_rows(max_states_without, len(row_of), steps * STEP_NANOSECONDS, backwards, *arrays)
    return out
