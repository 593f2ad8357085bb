"""What the models of one text and of two have in common."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rationalizer.nn.method import Method
from rationalizer.nn.predictor import Head


class Output(NamedTuple):
    extraction: Any  # Extraction or Alignment: has `z`, what was selected, and `scores`, what it was selected by
    outputs: Tensor  # the head's raw outputs, (batch, classes) or (batch,)


class Model(nn.Module):
    """A table of word vectors, a method that selects (`extractor`), and a head that speaks for the rest.

    `forward(*inputs, budget)` gives an `Output`, where `inputs` are word ids and mask of each text. In training
    mode the extractor relaxes or samples, in evaluation mode it decodes.
    """

    extractor: Method

    def __init__(self, *, vocabulary: int, embedding: int, frozen: bool, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding, padding_idx=0)
        self.embedding.weight.requires_grad_(not frozen)
        self.dropout = nn.Dropout(dropout)

    @property
    def head(self) -> Head:
        raise NotImplementedError

    @torch.no_grad()
    def set_vectors(self, vectors: Tensor) -> None:
        if vectors.shape != self.embedding.weight.shape:
            raise ValueError(
                f"vectors must have shape {tuple(self.embedding.weight.shape)}, got {tuple(vectors.shape)}"
            )
        self.embedding.weight.copy_(vectors)

    def full_text_outputs(self, *inputs: Tensor) -> Tensor | None:
        """The head's outputs where nothing is left out; None where that is the same, or not defined."""
        return None
