"""The model for one text: score the words, select some, predict from these alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from rationalizer.constraints import LayerConstraints
from rationalizer.nn.base_model import Model, Output
from rationalizer.nn.dropout import Dropout
from rationalizer.nn.encoders import Encoder
from rationalizer.nn.encoders.base import EncodedSelection
from rationalizer.nn.extractors import EXTRACTORS, Extractor
from rationalizer.nn.extractors.base import Extraction, LinearExtractor
from rationalizer.nn.extractors.disjoint import select_disjoint
from rationalizer.nn.extractors.structured_selection import StructuredExtractor
from rationalizer.nn.heads import Head, MultiLabel, MultiTarget, Pooling, make_head, pool, pooled_size
from rationalizer.nn.method import MethodLoss
from rationalizer.text import Budget, WordBatch

# One rationale for everything that is predicted about a text, or one for each class, label or target.
Rationales = Literal["shared", "per-label", "disjoint"]


class HighlightModel(Model):
    """The encoder encodes the whole text, the method selects words by these states, and the encoder encodes the
    selection alone, from which the head predicts.

    If every label has its own rationale, the encoder encodes a text once, the method scores every word for each label
    and selects for each, and each label is predicted from its own selection.

    `predict_from` is everything between a selection and its prediction: it sees the words with z ≠ 0 and no others.

    Args:
        encoder: encodes words, for the generator and for the predictor.
        method: name of the extractor, one of `EXTRACTORS`.
        method_options: its keyword arguments.
        classes: the number of classes; 0 for regression.
        target: for regression, the keyword arguments of `Regression`.
        labels: the number of labels of which a text may have several, instead of classes.
        targets: of several targets, the number of classes and the `target` of each.
        rationales: one for all classes, labels or targets; or one for each, which may share words or not.
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
        labels: int = 0,
        targets: Sequence[tuple[int, Mapping[str, Any] | None]] = (),
        rationales: Rationales = "shared",
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.method = EXTRACTORS[method](encoder.size, **(method_options or {}))
        size = pooled_size(encoder.selection_size, pooling) + encoder.global_size
        self.head: Head
        if labels:
            self.head = MultiLabel(size, labels)
        elif targets:
            self.head = MultiTarget([make_head(size, *each) for each in targets])
        else:
            self.head = make_head(size, classes, target)
        self.rationales: Rationales = rationales
        self.labels = self.head.rationales if rationales != "shared" else 1  # rationales of a text
        if self.labels > 1:
            assert isinstance(self.method, LinearExtractor)
            self.method.score_labels(self.labels)
        self.pooling: Pooling = pooling
        self.dropout = Dropout(dropout)

    @torch.no_grad()
    def initialize(self, *texts: WordBatch) -> None:
        (words,) = texts
        self.method.initialize(self.encoder.states(words), words.counted.repeat_interleave(self.labels, dim=0))

    def score(self, *texts: WordBatch) -> tuple[Tensor, tuple[Tensor, ...]]:
        (words,) = texts
        assert isinstance(self.method, LinearExtractor)
        return self.method.score(self.encoder.states(words)), (words.counted,)

    def forward(self, *texts: WordBatch, budget: Budget, constraints: LayerConstraints | None = None) -> Output:
        (words,) = texts
        rows = words if self.labels == 1 else words.masks.repeat(self.labels)  # of the selections
        if self.method.uses_generator:
            mask, states = rows.counted, self.encoder.states(words)
        else:
            mask = rows.mask
            states = mask.new_zeros((*mask.shape, 0), dtype=self.dtype)
        if constraints is not None and self.labels > 1:
            constraints = constraints.repeat(self.labels)
        allowed = budget.word_limit(rows.counted)
        average = budget.average_bounds(rows.counted)
        if self.rationales == "disjoint" and not self.training:
            selection = self._select_disjoint(states, mask, allowed)
        else:
            selection = self.select(states, mask, allowed, constraints=constraints, average=average)
        z, scores = self.shown(selection.z, (rows,), constraints), selection.scores
        if self._adds_punctuation:
            scores = rows.ranked(scores)
        z = z.view_as(z)  # a tensor of its own: objectives replace its gradient, while penalties act on the selection
        if self.labels > 1:
            z, scores = (part.view(len(words), self.labels, -1) for part in (z, scores))
        return Output(self.predict_from(z, words), z, scores, selection, (mask,), allowed)

    def _select_disjoint(self, states: Tensor, mask: Tensor, budget: Tensor) -> Extraction:
        assert isinstance(self.method, StructuredExtractor)
        scores = self.method.score(states)
        shape = (-1, self.labels, mask.shape[-1])
        z = select_disjoint(scores.view(shape), mask.view(shape)[:, 0], budget.view(-1, self.labels), self.method)
        return Extraction(z.flatten(0, 1), scores)

    def method_loss(self, output: Output, task_loss: Tensor) -> MethodLoss:
        """Disjoint rationales also pay for words that several labels share: the mean of Σ max(0, Σ z − 1) / budget."""
        loss, state = super().method_loss(output, task_loss)
        if self.rationales == "disjoint":
            z = output.selection.z.view(-1, self.labels, output.selection.z.shape[-1])
            budget = output.budget.view(-1, self.labels).sum(1).clamp(min=1)
            loss = loss + ((z.sum(1) - 1).clamp(min=0).sum(-1) / budget).mean()
        return MethodLoss(loss, state)

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
        """The head's raw outputs for any selection z (batch, n), or (batch, labels, n) with one for each label.

        In evaluation mode each label's selections are encoded by themselves. Then even the shapes of the tensors from
        which a label is predicted depend on its own words only.
        """
        (words,) = texts
        if z.dim() == 2:
            features = self._features(self.encoder.encode_selection(words, z))
        elif self.training:
            features = self._features(self.encoder.encode_selections(words, z)).view(*z.shape[:2], -1)
        else:
            own = [self._features(self.encoder.encode_selection(words, part)) for part in z.unbind(1)]
            features = torch.stack(own, dim=1)
        return self.head(self.dropout(features))

    @property
    def can_leave_out(self) -> bool:
        return self.pooling == "max" and self.encoder.can_leave_out

    def predict_without(self, z: Tensor, places: Sequence[Sequence[int]], words: WordBatch) -> Tensor:
        output: Tensor = self.head(torch.cat(self.encoder.max_states_without(words, z, places), dim=-1))
        return output

    def _features(self, encoded: EncodedSelection) -> Tensor:
        return torch.cat([pool(encoded.states, encoded.weights, self.pooling), encoded.global_state], dim=-1)

    def full_text_outputs(self, *texts: WordBatch) -> Tensor | None:
        if not self.method.uses_generator:
            return None
        (words,) = texts
        return self.predict_from(words.mask.to(self.dtype), words)
