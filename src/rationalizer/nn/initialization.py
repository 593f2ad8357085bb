"""Weights to start a training from."""

from __future__ import annotations

import torch
from torch import nn


@torch.no_grad()
def draw_xavier(network: nn.Module) -> None:
    """Weights uniform with variance 2/(inputs + outputs) (Glorot and Bengio, 2010), biases 0; embeddings stay.

    The four gates of an LSTM lie in one matrix and are drawn as the four matrices that they are.
    """
    for module in network.modules():
        if not isinstance(module, nn.Linear | nn.LSTM):
            continue
        gates = 4 if isinstance(module, nn.LSTM) else 1
        for parameter in module.parameters(recurse=False):
            if parameter.dim() == 1:
                parameter.zero_()
                continue
            for matrix in parameter.chunk(gates):
                nn.init.xavier_uniform_(matrix)
