"""The rationalizer of one text: score the words, select some, predict from these alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rationalizer.constraints import LayerConstraints
from rationalizer.nn.base_model import Model, Output
from rationalizer.nn.encoders import Encoder
from rationalizer.nn.extractors import EXTRACTORS, Extractor
from rationalizer.nn.heads import Pooling, make_head, pool, pooled_size
from rationalizer.text import Budget, WordBatch


class HighlightModel(Model):
    """The encoder's states of the whole text are scored, the method selects words, the encoder reads these alone.

    `predict_from` is the whole of what turns a mask into a prediction: it sees the words with z ≠ 0 and no others.

    Args:
        encoder: makes states of words, for the generator and for the predictor.
        method: name of the extractor, one of `EXTRACTORS`.
        method_options: its keyword arguments.
        classes: how many classes; 0 for regression.
        target: for regression, the keyword arguments of `Regression`.
        dropout: of pooled features.
        pooling: how the predictor's states become one vector: "max", "mean", "max-mean" (both) or "last".
    """

    pairs = False
    method: Extractor

    def __init__(
        self,
        encoder: Encoder,
        *,
        method: str = "spectra",
        method_options: Mapping[str, Any] | None = None,
        classes: int = 2,
        target: Mapping[str, Any] | None = None,
        dropout: float = 0.1,
        pooling: Pooling = "max",
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.method = EXTRACTORS[method](encoder.size, **(method_options or {}))
        self.head = make_head(pooled_size(encoder.read_size, pooling) + encoder.whole_size, classes, target)
        self.pooling: Pooling = pooling
        self.dropout = nn.Dropout(dropout)

    @torch.no_grad()
    def start(self, *texts: WordBatch) -> None:
        (words,) = texts
        self.method.start(self.encoder.states(words), words.counted)

    def forward(self, *texts: WordBatch, budget: Budget, limits: LayerConstraints | None = None) -> Output:
        (words,) = texts
        allowed = budget.words(words.counted)
        select = self.method if self.training else self.method.decode
        if not self.method.reads_text:
            mask = words.mask
            states = mask.new_zeros((*mask.shape, 0), dtype=self.dtype)
        else:
            mask = words.counted
            states = self.encoder.states(words)
        selection = select(states, mask, allowed, **self.limited(limits))
        z, scores = selection.z, selection.scores
        if self.method.reads_text and self.encoder.punctuation == "free":
            z, scores = words.with_punctuation(z, None if limits is None else limits.unit), words.ranked(scores)
        z = z.view_as(z)  # what is read; penalties see the selection itself
        return Output(self.predict_from(z, words), z, scores, selection, (mask, allowed), limits)

    @property
    def dtype(self) -> Any:
        return next(self.parameters()).dtype

    def predict_from(self, z: Tensor, words: WordBatch) -> Tensor:
        """The head's raw outputs for the selection z (batch, n), however it came about."""
        states, weights, whole = self.encoder.read(words, z)
        return self.head(self.dropout(torch.cat([pool(states, weights, self.pooling), whole], dim=-1)))

    def full_text_outputs(self, *texts: WordBatch) -> Tensor | None:
        if not self.method.reads_text:
            return None
        (words,) = texts
        return self.predict_from(words.mask.to(self.dtype), words)
