"""The optimizer, and the learning rate of each part of a model at each step."""

from __future__ import annotations

import re

import torch

from rationalizer.models.config import Config
from rationalizer.nn import Model, Objective
from rationalizer.nn.objectives.base import ModelPart
from rationalizer.training.checkpoint import trained_parameters

# By the beginning of a parameter's name; all others belong to both.
PARTS: dict[str, ModelPart] = {
    "encoder.generator.": "generator",
    "method.": "generator",
    "encoder.predictor.": "predictor",
    "head.": "predictor",
}
FURTHER_GENERATOR = re.compile(r"objective\.generators\.(\d+)\.")  # a prefix of the names of `Objective.generators`


def build_optimizer(model: Model, objective: Objective, config: Config) -> torch.optim.Optimizer:
    """Return Adam(W) with parameters grouped by part and rate: encoders may have their own, others `learning_rate`."""
    rates = model.encoder.rates()
    groups: dict[tuple[ModelPart, int, float], list[torch.nn.Parameter]] = {}
    for name, parameter in trained_parameters(model, objective):
        further = FURTHER_GENERATOR.match(name)
        generator = int(further[1]) + 2 if further else 1
        name = name[further.end() :] if further else name
        part: ModelPart = next((part for prefix, part in PARTS.items() if name.startswith(prefix)), "both")
        rate = rates.get(part, config.learning_rate) if name.startswith("encoder.") else config.learning_rate
        groups.setdefault((part, generator, rate), []).append(parameter)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config.optimizer]
    made = [
        {"params": members, "lr": rate, "full": rate, "part": part, "generator": generator}
        for (part, generator, rate), members in groups.items()
    ]
    # One call for all parameters instead of ten for each. On other devices PyTorch does this by itself.
    fused = True if all(p.device.type == "cpu" for members in groups.values() for p in members) else None
    return kind(made, weight_decay=config.weight_decay, fused=fused)


def set_rates(
    optimizer: torch.optim.Optimizer, objective: Objective, config: Config, progress: float, selected: float
) -> None:
    """Set the learning rates of the next step.

    Args:
        progress: the share of the training's steps that are finished.
        selected: the share of words selected in the last batch.
    """
    factor = _factor(config, progress)
    for group in optimizer.param_groups:
        own = objective.rate_factor(group["part"], group["generator"], selected)
        group["lr"] = group["full"] * factor * own


def _factor(config: Config, progress: float) -> float:
    """Return the factor on all rates. It grows from 0 in the first `warmup` of the steps; with `decay` it then falls
    linearly to 0."""
    if progress < config.warmup:
        return progress / config.warmup
    return (1 - progress) / (1 - config.warmup) if config.decay else 1.0
