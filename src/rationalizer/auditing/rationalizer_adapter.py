"""A `Rationalizer` as a model under audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rationalizer import ops
from rationalizer.auditing.audited_model import AuditedModel, Weights
from rationalizer.constraints import (
    BatchItem,
    Constraints,
    ExactlyK,
    FactorConstraint,
    PairFactorConstraint,
    build_layer_constraints,
    build_pair_layer_constraints,
)
from rationalizer.inference.predict import predict, predict_from
from rationalizer.model import Rationalizer
from rationalizer.text import AnyExample


class RationalizerAdapter(AuditedModel):
    """Selects and predicts exactly as `Rationalizer.explain` does."""

    def __init__(self, model: Rationalizer, name: str = "model") -> None:
        model.trained.require_single("an audit")
        self._trained = model.trained
        self._config = model.trained.config
        self.name = name
        self.pairs = model.trained.pairs
        self.classes = getattr(model, "classes_", None)  # a regression has none
        self.ignores_gaps = self._trained.model.ignores_gaps

    def select(self, texts: Sequence[AnyExample]) -> list[Weights]:
        return predict(self._trained, texts).weights

    def predict_from(self, texts: Sequence[AnyExample], weights: Sequence[Weights]) -> NDArray[np.float32]:
        return predict_from(self._trained, texts, weights)

    def select_and_predict(self, texts: Sequence[AnyExample]) -> tuple[list[Weights], NDArray[np.float32]]:
        predictions = predict(self._trained, texts)
        return predictions.weights, predictions.outputs

    def predict(self, texts: Sequence[AnyExample]) -> NDArray[np.float32]:
        return predict(self._trained, texts).outputs

    def limits(self, texts: Sequence[AnyExample]) -> list[int] | None:
        method = self._trained.model.method
        if not (method.uses_budget and method.follows_budget):
            return None
        exactly = [constraint.k for constraint in self._config.constraints if isinstance(constraint, ExactlyK)]
        if exactly:  # replaces the budget
            return exactly[:1] * len(texts)
        return [int(self._config.budget.word_limit(*self._selectable(text))) for text in texts]

    def least(self, texts: Sequence[AnyExample]) -> list[int] | None:
        bounds = [self._config.budget.average_bounds(*self._selectable(text)) for text in texts]
        return None if None in bounds else [int(each.at_least) for each in bounds if each is not None]

    def counted(self, text: AnyExample) -> NDArray[np.bool_]:
        return self._trained.encoder.counted(text.texts[0].tokens)

    def _selectable(self, text: AnyExample) -> list[torch.Tensor]:
        return [torch.from_numpy(self._trained.encoder.counted(side.tokens))[None] for side in text.texts]

    def violations(self, texts: Sequence[AnyExample], weights: Sequence[Weights]) -> list[bool] | None:
        factors = FactorConstraint, PairFactorConstraint  # can be soft: there is nothing to violate
        constraints = tuple(each for each in self._config.constraints if not isinstance(each, factors))
        if not constraints:
            return None
        violates = self._violates_pair if self.pairs else self._violates
        rows = enumerate(zip(texts, weights, strict=True))
        return [violates(constraints, BatchItem(text, number, len(texts)), row) for number, (text, row) in rows]

    def _violates(self, constraints: Constraints, item: BatchItem, weights: Weights) -> bool:
        """Whether the selection is infeasible if every word is fixed to it."""
        config, encoder = self._config, self._trained.encoder
        (counted,) = self._selectable(item.example)
        layer = build_layer_constraints(constraints, [item], counted, config.budget, encoder.sentences, check=False)
        selected = torch.from_numpy(np.where(weights != 0, 1, -1).astype(np.int8))[None]
        if layer.fixed is not None and bool((layer.fixed * selected < 0)[counted].any()):
            return True
        arguments: dict[str, Any] = replace(layer, fixed=torch.where(counted, selected, 0).to(torch.int8)).arguments()
        limit = config.budget.word_limit(counted)
        try:
            ops.spans_map(torch.zeros(counted.shape), limit, mask=counted, **arguments)
        except ops.InfeasibleError:
            return True
        return False

    def _violates_pair(self, constraints: Constraints, item: BatchItem, weights: Weights) -> bool:
        layer, _ = build_pair_layer_constraints(constraints, [item], self._selectable(item.example))
        links = weights != 0
        wrong = False
        if layer.fixed is not None:
            fixed = layer.fixed[0].numpy()
            wrong = bool(((fixed == 1) & ~links).any() or ((fixed == -1) & links).any())
        if layer.exactly is not None:
            wrong |= int(links.sum()) != layer.exactly
        if layer.monotone:  # links in the order of the premise
            wrong |= bool((np.diff(np.nonzero(links)[1]) < 0).any())
        return wrong
