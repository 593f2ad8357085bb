"""The rationalizer of one text: score the words, select some, predict from these alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from rationalizer.nn.encoder import ENCODERS
from rationalizer.nn.extractors import EXTRACTORS, Extraction
from rationalizer.nn.model import Model, Output
from rationalizer.nn.predictor import Head, Pooling, Predictor, make_head, pooled_size


class HighlightModel(Model):
    """Generator (encoder, scorer, extractor) and predictor over one table of word vectors.

    `predict_from` is the whole of what turns a mask into a prediction: it sees the words with z ≠ 0 and no
    others.

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
        pooling: how the predictor's states become one vector: "max", "mean", "max-mean" (both) or "last".
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
        super().__init__(vocabulary=vocabulary, embedding=embedding, frozen=frozen, dropout=dropout)
        extractor = EXTRACTORS[method]
        self.generator = ENCODERS[encoder](embedding, hidden) if extractor.reads_text else None
        size = self.generator.size_out if self.generator is not None else 0
        self.extractor = extractor(size, **(method_options or {}))
        reader = ENCODERS[encoder](embedding, hidden)
        head = make_head(pooled_size(reader.size_out, pooling), classes, target)
        self.predictor = Predictor(reader, head, pooling=pooling, dropout=dropout)

    @property
    def head(self) -> Head:
        return self.predictor.head

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

    def full_text_outputs(self, *inputs: Tensor) -> Tensor | None:
        if self.generator is None:
            return None
        tokens, mask = inputs
        return self.predict_from(mask.float(), tokens, mask)
