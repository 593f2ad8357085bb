"""The rationalizer of two texts: align their words, compare what is aligned, predict. After ESIM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rationalizer.nn.aligners import ALIGNERS, Alignment
from rationalizer.nn.encoder import ENCODERS
from rationalizer.nn.model import Model, Output
from rationalizer.nn.predictor import Head, Pooling, make_head, pool, pooled_size


class PairModel(Model):
    """Encode both texts, align their words by the states' dot products, compose each word with what it is aligned
    to, encode again, pool, and predict from [p, h, p − h, p ⊙ h].

    A word is composed as [s, a, s − a, s ⊙ a], s its state and a the weighted sum of its partners' states. In the
    faithful model the premise's words are composed as [a] alone, so no premise state reaches the prediction but
    through the alignment: a premise word without a partner is invisible, except in two ways that the encoder and
    the aligner have by nature. The state of an aligned word is a state *in context*, read by an LSTM from both
    sides, so it may know of its neighbours; and which words get aligned depends on all of them. The premise's
    length and the positions of its aligned words are seen as well.

    Args:
        vocabulary: how many words the table has; word 0 is padding.
        embedding: size of a word vector.
        frozen: pretrained vectors, not to be trained.
        method: name of the aligner, one of `ALIGNERS`.
        method_options: its keyword arguments.
        faithful: whether the premise is read through the alignment only.
        classes: how many classes; 0 for regression.
        target: for regression, the keyword arguments of `Regression`.
        encoder: name of the encoders, one of `ENCODERS`.
        hidden: units of the encoders in each direction.
        dropout: of word vectors, states, composed words and pooled features.
        pooling: how a text's states become one vector: "max", "mean", "max-mean" (both) or "last".
    """

    def __init__(
        self,
        *,
        vocabulary: int,
        embedding: int,
        frozen: bool = False,
        method: str = "at-most-one",
        method_options: Mapping[str, Any] | None = None,
        faithful: bool = True,
        classes: int = 3,
        target: Mapping[str, Any] | None = None,
        encoder: str = "bilstm",
        hidden: int = 200,
        dropout: float = 0.1,
        pooling: Pooling = "max-mean",
    ) -> None:
        super().__init__(vocabulary=vocabulary, embedding=embedding, frozen=frozen, dropout=dropout)
        self.pooling: Pooling = pooling
        self.encoder = ENCODERS[encoder](embedding, hidden)
        self.extractor = ALIGNERS[method](**(method_options or {}))
        size = self.encoder.size_out
        self.compose = nn.Linear(4 * size, hidden)
        # As in ESIM one layer serves both texts, unless the premise has less to show.
        self.compose_premise = nn.Linear(size, hidden) if faithful else None
        self.reader = ENCODERS[encoder](hidden, hidden)
        self.output = make_head(4 * pooled_size(self.reader.size_out, pooling), classes, target)

    @property
    def head(self) -> Head:
        return self.output

    def forward(
        self, premise: Tensor, premise_mask: Tensor, hypothesis: Tensor, hypothesis_mask: Tensor, budget: Tensor
    ) -> Output:
        """
        Args:
            premise: (batch, m) word ids.
            premise_mask: (batch, m) bool, True on real tokens, padding last.
            hypothesis: (batch, n) word ids.
            hypothesis_mask: (batch, n) bool.
            budget: (batch,) int64, pairs that may be aligned; see `token_budget`.
        """
        premise_states, hypothesis_states = (
            self.dropout(self.encoder(self.dropout(self.embedding(tokens)), mask))
            for tokens, mask in ((premise, premise_mask), (hypothesis, hypothesis_mask))
        )
        scores = premise_states @ hypothesis_states.mT
        align = self.extractor if self.training else self.extractor.decode
        alignment = align(scores, premise_mask, hypothesis_mask, budget)
        states = (premise_states, premise_mask, hypothesis_states, hypothesis_mask)
        return Output(alignment, self.predict_from(alignment, *states))

    def predict_from(
        self,
        alignment: Alignment,
        premise_states: Tensor,
        premise_mask: Tensor,
        hypothesis_states: Tensor,
        hypothesis_mask: Tensor,
    ) -> Tensor:
        """The head's raw outputs: the whole of what turns an alignment and the encoder's states into a prediction."""
        to_premise = alignment.rows.to(hypothesis_states.dtype) @ hypothesis_states
        to_hypothesis = alignment.columns.to(premise_states.dtype).mT @ premise_states
        if self.compose_premise is not None:
            composed = self.compose_premise(to_premise)
        else:
            composed = self.compose(_compared(premise_states, to_premise))
        p = self._read(composed, premise_mask)
        h = self._read(self.compose(_compared(hypothesis_states, to_hypothesis)), hypothesis_mask)
        return self.output(self.dropout(torch.cat([p, h, p - h, p * h], dim=-1)))

    def _read(self, composed: Tensor, mask: Tensor) -> Tensor:
        return pool(self.reader(self.dropout(composed.relu()), mask), mask, self.pooling)


def _compared(own: Tensor, aligned: Tensor) -> Tensor:
    return torch.cat([own, aligned, own - aligned, own * aligned], dim=-1)
