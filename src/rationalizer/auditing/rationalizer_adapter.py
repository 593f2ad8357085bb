"""A `Rationalizer` as a model under audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from rationalizer import ops
from rationalizer.auditing.audited_model import AuditedModel, Weights
from rationalizer.constraints import BatchItem, build_layer_constraints
from rationalizer.inference.predict import predict, predict_from
from rationalizer.model import Rationalizer
from rationalizer.text import AnyExample, Example


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
        encoder = self._trained.encoder
        masks = [[torch.from_numpy(encoder.counted(side.tokens))[None] for side in text.texts] for text in texts]
        return [int(self._config.budget.word_limit(*sides)) for sides in masks]

    def counted(self, text: AnyExample) -> NDArray[np.bool_]:
        return self._trained.encoder.counted(text.texts[0].tokens)

    def violations(self, texts: Sequence[AnyExample], weights: Sequence[Weights]) -> list[bool] | None:
        if not self._config.constraints or self.pairs:
            return None
        return [
            self._violates(cast("Example", text), row, number, len(texts))
            for number, (text, row) in enumerate(zip(texts, weights, strict=True))
        ]

    def _violates(self, text: Example, weights: Weights, number: int, total: int) -> bool:
        """Whether the selection is infeasible if every word is fixed to it."""
        config, encoder = self._config, self._trained.encoder
        counted = torch.from_numpy(encoder.counted(text.tokens))[None]
        items = [BatchItem(text, number, total)]
        layer = build_layer_constraints(
            config.constraints, items, counted, config.budget, encoder.sentences, check=False
        )
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
