"""The model for two texts, after ESIM: align their words, compare aligned words, predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from rationalizer.constraints import PairLayerConstraints
from rationalizer.nn.aligners import ALIGNERS, Alignment
from rationalizer.nn.average_budget import AverageMethod
from rationalizer.nn.base_model import Model, Output
from rationalizer.nn.bilstm import BiLSTM
from rationalizer.nn.dropout import Dropout
from rationalizer.nn.encoders import Encoder
from rationalizer.nn.heads import Pooling, make_head, pool, pooled_size
from rationalizer.text import Budget, WordBatch
from rationalizer.text.word_batch import closing_order, gather_words

PremiseContext = Literal["whole", "aligned"]


class PairModel(Model):
    """Encode both texts, align their words by the dot products of states, compose each word with its partners, encode
    again, pool, and predict from [p, h, p − h, p ⊙ h].

    A word is composed as [s, a, s − a, s ⊙ a], s its state and a the weighted sum of its partners' states. In the
    faithful model premise words are composed as [a] alone, so that premise states reach the prediction only through
    the alignment. With `premise_context="aligned"` the premise is encoded once more for the prediction, without its
    unaligned words: these are invisible, and so are the premise's length and the gaps between aligned words. With
    "whole", as published, the state of an aligned word is a state *in context*, encoded by an LSTM from both sides,
    and may carry information on words that are not aligned. In both cases all words determine which ones are aligned.

    Args:
        encoder: makes the states that are aligned and compared.
        method: name of the aligner, one of `ALIGNERS`.
        method_options: its keyword arguments.
        faithful: whether the premise is read only through the alignment.
        premise_context: what the states of aligned premise words depend on: the "aligned" words, or the "whole"
            premise. Without effect if not faithful.
        threshold: whether to learn the score above which a pair is aligned; otherwise it is 0. The mean product of
            states is hardly ever negative, so without it a word that has no partner is mostly given one.
        classes: the number of classes; 0 for regression.
        target: for regression, the keyword arguments of `Regression`.
        dropout: of composed words and pooled features.
        pooling: how a text's states become one vector: "max", "mean", "max-mean" (both) or "last".
    """

    pairs = True

    def __init__(
        self,
        encoder: Encoder,
        *,
        method: str = "at-most-one",
        method_options: Mapping[str, Any] | None = None,
        faithful: bool = True,
        premise_context: PremiseContext = "aligned",
        threshold: bool = False,
        classes: int = 3,
        target: Mapping[str, Any] | None = None,
        dropout: float = 0.1,
        pooling: Pooling = "max-mean",
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.method = ALIGNERS[method](**(method_options or {}))
        self.threshold = nn.Parameter(torch.zeros(())) if threshold else None
        self.pooling: Pooling = pooling
        self.closes_premise = faithful and premise_context == "aligned"
        self.dropout = Dropout(dropout)
        size, hidden = encoder.size, encoder.selection_size // 2
        self.compose = nn.Linear(4 * size, hidden)
        # As in ESIM one layer serves both texts, unless the premise has fewer features.
        self.compose_premise = nn.Linear(size, hidden) if faithful else None
        self.composed = BiLSTM(hidden, hidden)
        self.head = make_head(4 * pooled_size(self.composed.size_out, pooling), classes, target)

    @property
    def ignores_gaps(self) -> bool:
        return self.closes_premise

    @torch.no_grad()
    def initialize(self, *texts: WordBatch) -> None:
        assert isinstance(self.method, AverageMethod)
        scores, masks = self.score(*texts)
        self.method.initialize_multiplier(scores, *masks)

    def score(self, *texts: WordBatch) -> tuple[Tensor, tuple[Tensor, ...]]:
        return self._score([self.encoder.states(words) for words in texts]), tuple(words.counted for words in texts)

    def _score(self, states: Sequence[Tensor]) -> Tensor:
        scores = self.encoder.score_scale * states[0] @ states[1].mT
        return scores if self.threshold is None else scores - self.threshold

    def forward(self, *texts: WordBatch, budget: Budget, constraints: PairLayerConstraints | None = None) -> Output:
        premise, hypothesis = texts
        states = [self.encoder.states(words) for words in texts]
        scores = self._score(states)
        masks = (premise.counted, hypothesis.counted)
        allowed, average = budget.word_limit(*masks), budget.average_bounds(*masks)
        alignment = self.select(scores, *masks, allowed, constraints=constraints, average=average)
        outputs = self._predict(alignment, premise, states[0], states[1], hypothesis.mask)
        return Output(outputs, alignment.z, alignment.scores, alignment, masks, allowed)

    def predict_from(self, z: Tensor, *texts: WordBatch) -> Tensor:
        """The head's raw outputs for any alignment z (batch, m, n)."""
        premise, hypothesis = texts
        states = None if self.closes_premise else self.encoder.states(premise)
        return self._predict(Alignment(z, z, z), premise, states, self.encoder.states(hypothesis), hypothesis.mask)

    def _predict(
        self,
        alignment: Alignment,
        premise: WordBatch,
        premise_states: Tensor | None,
        hypothesis_states: Tensor,
        hypothesis_mask: Tensor,
    ) -> Tensor:
        """The outputs from an alignment. `premise_states`, of the whole premise, are unused if the model closes it."""
        if self.closes_premise:
            aligned = premise.mask & ((alignment.rows != 0) | (alignment.columns != 0)).any(-1)
            order = closing_order(aligned)
            rows = gather_words(alignment.rows, order)
            columns = rows if alignment.columns is alignment.rows else gather_words(alignment.columns, order)
            premise = premise.only(aligned)
            alignment = Alignment(rows, columns, rows)
            premise_states = self.encoder.states(premise)
        assert premise_states is not None
        return self.predict_from_states(alignment, premise_states, premise.mask, hypothesis_states, hypothesis_mask)

    def predict_from_states(
        self,
        alignment: Alignment,
        premise_states: Tensor,
        premise_mask: Tensor,
        hypothesis_states: Tensor,
        hypothesis_mask: Tensor,
    ) -> Tensor:
        """The head's raw outputs, from an alignment and the encoder's states alone."""
        to_premise = alignment.rows.to(hypothesis_states.dtype) @ hypothesis_states
        to_hypothesis = alignment.columns.to(premise_states.dtype).mT @ premise_states
        if self.compose_premise is not None:
            composed = self.compose_premise(to_premise)
        else:
            composed = self.compose(_compare(premise_states, to_premise))
        p = self._encode_and_pool(composed, premise_mask)
        h = self._encode_and_pool(self.compose(_compare(hypothesis_states, to_hypothesis)), hypothesis_mask)
        return self.head(self.dropout(torch.cat([p, h, p - h, p * h], dim=-1)))

    def _encode_and_pool(self, composed: Tensor, mask: Tensor) -> Tensor:
        return pool(self.composed(self.dropout(composed.relu()), mask), mask, self.pooling)


def _compare(own: Tensor, aligned: Tensor) -> Tensor:
    return torch.cat([own, aligned, own - aligned, own * aligned], dim=-1)
