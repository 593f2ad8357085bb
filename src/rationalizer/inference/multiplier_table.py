"""The table of multipliers of an average budget, made once after training and stored with the model.

With it the selection in a text does not depend on the texts beside it, and any other average can be asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from rationalizer.models.batch_constraints import BatchConstraints
from rationalizer.models.batches import batch_loader
from rationalizer.models.config import Config
from rationalizer.nn import Model
from rationalizer.nn.average_budget import AverageMethod, ScoredTexts, multiplier_table
from rationalizer.text import AnyExample, Budget

MOST_TEXTS = 5000
MOST_CONSTRAINED_TEXTS = 500  # constraints take much longer to satisfy
BATCH = 128


@torch.inference_mode()
def calibrate(model: Model, examples: Sequence[AnyExample], config: Config) -> dict[str, Any]:
    """Return the table for a model, its average budget and its constraints, from texts that it was not trained on."""
    method, budget = model.eval().method, config.budget
    assert isinstance(method, AverageMethod)
    device = next(model.parameters()).device
    examples = examples[: MOST_CONSTRAINED_TEXTS if config.constraints else MOST_TEXTS]
    constraints = BatchConstraints(config, model.encoder, len(examples))
    rows = []
    how: dict[str, Any] = {"batch_size": BATCH, "shuffle": False, "seed": 0, "constraints": constraints}
    for batch in batch_loader(examples, model.encoder, **how):
        scores, masks = model.score(*batch.to(device).texts)
        on_host = tuple(mask.cpu() for mask in masks)
        rows.append(ScoredTexts.of(method, budget, scores.float().cpu(), on_host, batch.constraints))
    shares, multipliers = multiplier_table(method, float(budget.amount), rows)
    return {"shares": shares, "multipliers": multipliers, "least": budget.least, "most": budget.most}


def with_multiplier(budget: Budget, calibration: Mapping[str, Any]) -> Budget:
    """Return an average budget with its multiplier, interpolated in the table."""
    multiplier = np.interp(budget.amount, calibration["shares"], calibration["multipliers"])
    return replace(budget, multiplier=float(multiplier))
