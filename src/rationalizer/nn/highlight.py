"""The rationalizer of one text: score the words, select some, predict from these alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rationalizer.nn.encoder import ENCODERS
from rationalizer.nn.extractors import EXTRACTORS, Extraction
from rationalizer.nn.predictor import Classification, Pooling, Predictor, Regression


class Output(NamedTuple):
    extraction: Extraction
    outputs: Tensor  # the head's raw outputs, (batch, classes) or (batch,)


class HighlightModel(nn.Module):
    """Generator (encoder, scorer, extractor) and predictor over one table of word vectors.

    In training mode the extractor relaxes or samples, in evaluation mode it decodes. `predict_from` is the
    whole of what turns a mask into a prediction: it sees the words with z ≠ 0 and no others.

    Args:
        vocabulary: how many words the table has; word 0 is padding.
        embedding: size of a word vector.
        frozen: pretrained vectors, not to be trained.
        method: name of the extractor, one of `EXTRACTORS`.
        method_options: its keyword arguments.
        classes: how many classes; 0 for regression.
        target: for regression, the keyword arguments of `Regression`.
        encoder: name of the encoder, one of `ENCODERS`.
        hidden: units of the encoders in each direction.
        dropout: of word vectors, generator states and pooled features.
        pooling: how the predictor's states become one vector: "max", "mean" or "last".
    """

    def __init__(
        self,
        *,
        vocabulary: int,
        embedding: int,
        frozen: bool = False,
        method: str = "spectra",
        method_options: Mapping[str, Any] | None = None,
        classes: int = 2,
        target: Mapping[str, Any] | None = None,
        encoder: str = "bilstm",
        hidden: int = 200,
        dropout: float = 0.1,
        pooling: Pooling = "max",
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding, padding_idx=0)
        self.embedding.weight.requires_grad_(not frozen)
        self.dropout = nn.Dropout(dropout)
        extractor = EXTRACTORS[method]
        self.generator = ENCODERS[encoder](embedding, hidden) if extractor.reads_text else None
        size = self.generator.size_out if self.generator is not None else 0
        self.extractor = extractor(size, **(method_options or {}))
        reader = ENCODERS[encoder](embedding, hidden)
        size = reader.size_out
        head = Classification(size, classes) if classes else Regression(size, **(target or {}))
        self.predictor = Predictor(reader, head, pooling=pooling, dropout=dropout)

    @torch.no_grad()
    def set_vectors(self, vectors: Tensor) -> None:
        if vectors.shape != self.embedding.weight.shape:
            raise ValueError(
                f"vectors must have shape {tuple(self.embedding.weight.shape)}, got {tuple(vectors.shape)}"
            )
        self.embedding.weight.copy_(vectors)

    def forward(self, tokens: Tensor, mask: Tensor, budget: Tensor) -> Output:
        extraction = self.extract(tokens, mask, budget)
        return Output(extraction, self.predict_from(extraction.z, tokens, mask))

    def extract(self, tokens: Tensor, mask: Tensor, budget: Tensor) -> Extraction:
        """The selection: sampled or relaxed in training mode, decoded in evaluation mode.

        Args:
            tokens: (batch, n) word ids.
            mask: (batch, n) bool, True on real tokens, padding last.
            budget: (batch,) int64, tokens that may be selected; see `token_budget`.
        """
        if self.generator is None:
            states = mask.new_zeros((*mask.shape, 0), dtype=self.embedding.weight.dtype)
        else:
            states = self.dropout(self.generator(self.dropout(self.embedding(tokens)), mask))
        select = self.extractor if self.training else self.extractor.decode
        return select(states, mask, budget)

    def predict_from(self, z: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
        """The head's raw outputs for the selection z (batch, n), however it came about."""
        return self.predictor(self.dropout(self.embedding(tokens)), z, mask)
