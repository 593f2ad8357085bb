"""A moving average of the weights: on small training sets the scores of single epochs vary a lot."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class Average:
    """w̄ ← w̄ + (1 − a)(w − w̄) after every step, with a = min(decay, (1 + step)/(10 + step)), so that the first steps
    soon lose their weight. With decay 0 there is no average."""

    def __init__(self, model: nn.Module, decay: float, stored: Mapping[str, Tensor] | None = None) -> None:
        self.decay = decay
        trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.weights: dict[str, Tensor] = {}
        if decay:
            source = stored or trained
            self.weights = {name: source[name].detach().clone().to(weight.device) for name, weight in trained.items()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        rate = 1 - min(self.decay, (1 + step) / (10 + step))
        if not self.weights:
            return
        current = dict(model.named_parameters())
        self.weights = {name: average.to(current[name].device) for name, average in self.weights.items()}
        weights = [current[name].to(average.dtype) for name, average in self.weights.items()]
        torch._foreach_lerp_(list(self.weights.values()), weights, rate)

    @torch.no_grad()
    def swap(self, model: nn.Module) -> None:
        """Exchange the averaged weights and the model's: before a validation, and again after it."""
        current = dict(model.named_parameters())
        for name, average in self.weights.items():
            previous = current[name].to(average.dtype, copy=True)
            current[name].copy_(average)
            self.weights[name] = previous
