"""The model for one text: score the words, select some, predict from these alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rationalizer.constraints import LayerConstraints
from rationalizer.nn.base_model import Model, Output
from rationalizer.nn.encoders import Encoder
from rationalizer.nn.extractors import EXTRACTORS, Extractor
from rationalizer.nn.extractors.base import LinearExtractor
from rationalizer.nn.heads import Pooling, make_head, pool, pooled_size
from rationalizer.text import Budget, WordBatch


class HighlightModel(Model):
    """The encoder encodes the whole text, the method selects words by these states, and the encoder encodes the
    selection alone, from which the head predicts.

    `predict_from` is everything between a selection and its prediction: it sees the words with z ≠ 0 and no others.

    Args:
        encoder: encodes words, for the generator and for the predictor.
        method: name of the extractor, one of `EXTRACTORS`.
        method_options: its keyword arguments.
        classes: the number of classes; 0 for regression.
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
        self.head = make_head(pooled_size(encoder.selection_size, pooling) + encoder.global_size, classes, target)
        self.pooling: Pooling = pooling
        self.dropout = nn.Dropout(dropout)

    @torch.no_grad()
    def initialize(self, *texts: WordBatch) -> None:
        (words,) = texts
        self.method.initialize(self.encoder.states(words), words.counted)

    def score(self, *texts: WordBatch) -> tuple[Tensor, tuple[Tensor, ...]]:
        (words,) = texts
        assert isinstance(self.method, LinearExtractor)
        return self.method.score(self.encoder.states(words)), (words.counted,)

    def forward(self, *texts: WordBatch, budget: Budget, constraints: LayerConstraints | None = None) -> Output:
        (words,) = texts
        if self.method.uses_generator:
            mask, states = words.counted, self.encoder.states(words)
        else:
            mask = words.mask
            states = mask.new_zeros((*mask.shape, 0), dtype=self.dtype)
        allowed = budget.word_limit(words.counted)
        average = budget.average_bounds(words.counted)
        selection = self.select(states, mask, allowed, constraints=constraints, average=average)
        z, scores = self.shown(selection.z, texts, constraints), selection.scores
        if self._adds_punctuation:
            scores = words.ranked(scores)
        z = z.view_as(z)  # a tensor of its own: objectives replace its gradient, while penalties act on the selection
        return Output(self.predict_from(z, words), z, scores, selection, (mask,), allowed)

    @property
    def ignores_gaps(self) -> bool:
        return self.encoder.ignores_gaps

    @property
    def _adds_punctuation(self) -> bool:
        return self.method.uses_generator and self.encoder.punctuation == "free"

    def shown(self, z: Tensor, texts: Sequence[WordBatch], constraints: LayerConstraints | None = None) -> Tensor:
        if not self._adds_punctuation:
            return z
        return texts[0].with_punctuation(z, None if constraints is None else constraints.unit)

    @property
    def dtype(self) -> Any:
        return next(self.parameters()).dtype

    def predict_from(self, z: Tensor, *texts: WordBatch) -> Tensor:
        """The head's raw outputs for any selection z (batch, n)."""
        (words,) = texts
        states, weights, global_state = self.encoder.encode_selection(words, z)
        return self.head(self.dropout(torch.cat([pool(states, weights, self.pooling), global_state], dim=-1)))

    def full_text_outputs(self, *texts: WordBatch) -> Tensor | None:
        if not self.method.uses_generator:
            return None
        (words,) = texts
        return self.predict_from(words.mask.to(self.dtype), words)
