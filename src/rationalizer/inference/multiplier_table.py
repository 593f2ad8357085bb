"""The table of multipliers of an average budget, made once after training and stored with the model.

With it the selection in a text does not depend on the texts beside it, and any other average can be asked for. There
are two tables: under the bounds of the training, for any average, and for averages with their default bounds.
`Budget.calibrated` reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rationalizer.models.batch_constraints import BatchConstraints
from rationalizer.models.batches import batch_loader
from rationalizer.models.config import Config
from rationalizer.nn import Model
from rationalizer.nn.average_budget import AverageMethod, ScoredTexts, find_multiplier, mean_share, multiplier_table
from rationalizer.text import AnyExample, Budget

MOST_TEXTS = 5000
MOST_CONSTRAINED_TEXTS = 500  # constraints take much longer to satisfy
BATCH = 128
DEFAULT_BOUNDS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 0.85, 0.95, 0.99, 1.0)  # averages
DEFAULT_BATCHES = 4  # of texts, for these
FAR = 0.1  # relative distance from an average that short texts do not allow


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
    table = {"shares": shares, "multipliers": multipliers, "least": budget.least, "most": budget.most}
    usual = _default_bounds(method, rows[:DEFAULT_BATCHES])
    return table | ({"default_bounds": usual} if usual["shares"] else {})


def _default_bounds(method: AverageMethod, rows: Sequence[ScoredTexts]) -> dict[str, list[float]]:
    """The multipliers of some averages, each with its own default bounds."""
    table: dict[str, list[float]] = {"shares": [], "multipliers": []}
    for share in DEFAULT_BOUNDS:
        budget = Budget.average(share)
        own = [ScoredTexts.of(method, budget, each.scores, each.masks, each.constraints) for each in rows]
        multiplier = find_multiplier(method, share, own)
        if abs(mean_share(method, own, multiplier) - share) <= FAR * share:
            table["shares"].append(share)
            table["multipliers"].append(multiplier)
    return table
