"""The table of multipliers of an average budget, made once after training and stored with the model.

With it the selection in a text does not depend on the texts beside it, and any other average can be asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from rationalizer.models.batches import batch_loader
from rationalizer.nn import HighlightModel, Model
from rationalizer.nn.extractors.average_budget import multiplier_table
from rationalizer.nn.extractors.structured_selection import StructuredExtractor
from rationalizer.text import AnyExample, Budget

MOST_TEXTS = 5000
BATCH = 128


@torch.inference_mode()
def calibrate(model: Model, examples: Sequence[AnyExample], budget: Budget) -> dict[str, Any]:
    """Return the table for a model and an average budget, from texts that it was not trained on."""
    method = model.eval().method
    assert isinstance(model, HighlightModel)
    assert isinstance(method, StructuredExtractor)
    device = next(model.parameters()).device
    rows = []
    loader = batch_loader(examples[:MOST_TEXTS], model.encoder, batch_size=BATCH, shuffle=False, seed=0)
    for batch in loader:
        (words,) = batch.to(device).texts
        rows.append((method.score(model.encoder.states(words)).float().cpu(), words.counted.cpu()))
    shares, multipliers = multiplier_table(method, budget, rows)
    return {"shares": shares, "multipliers": multipliers, "least": budget.least, "most": budget.most}


def with_multiplier(budget: Budget, calibration: Mapping[str, Any]) -> Budget:
    """Return an average budget with its multiplier, interpolated in the table."""
    multiplier = np.interp(budget.amount, calibration["shares"], calibration["multipliers"])
    return replace(budget, multiplier=float(multiplier))
