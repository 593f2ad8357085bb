"""Initial weights."""

from __future__ import annotations

import torch
from torch import nn


@torch.no_grad()
def draw_xavier(network: nn.Module) -> None:
    """Draw uniform weights of variance 2/(inputs + outputs) (Glorot and Bengio, 2010); biases become 0.

    Embeddings are kept. The four gates of an LSTM share one matrix; each is drawn as a matrix of its own.
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
