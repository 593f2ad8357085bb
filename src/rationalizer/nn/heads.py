"""Pooling of states, and prediction heads with their losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from rationalizer.nn.precision import at_least_float32

Pooling = Literal["max", "mean", "last", "max-mean"]


class Head(nn.Module):
    """Turns features into raw outputs, computes losses, and turns outputs into predictions.

    `text_weights` (batch,) are factors of the losses of the texts of a batch, while they are set.
    """

    text_weights: Tensor | None = None

    def forward(self, features: Tensor) -> Tensor:
        raise NotImplementedError

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """(batch,) one loss per text, times its weight."""
        losses = self.losses(outputs, labels)
        return losses if self.text_weights is None else losses * self.text_weights.to(losses)

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """(batch,) one loss per text."""
        raise NotImplementedError

    def divergence(self, outputs: Tensor, other: Tensor) -> Tensor:
        """(batch,) the distance between two predictions."""
        raise NotImplementedError

    def predict(self, outputs: Tensor) -> Tensor:
        """(batch, classes) probabilities, or (batch,) values."""
        raise NotImplementedError

    def agrees(self, predictions: Tensor, reference: Tensor, certainty: float) -> Tensor:
        """(batch,) bool: whether predictions say the same as the reference, with this certainty (see
        `Budget.enough`)."""
        raise NotImplementedError


class Classification(Head):
    """A linear layer and cross-entropy.

    `class_weights` (classes,) are factors of the losses by true class, while they are set.
    """

    class_weights: Tensor | None

    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, classes)
        self.register_buffer("class_weights", None, persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        return self.linear(features)

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        outputs = at_least_float32(outputs)
        weights = None if self.class_weights is None else self.class_weights.to(outputs.dtype)
        return functional.cross_entropy(outputs, labels, weights, reduction="none")

    def divergence(self, outputs: Tensor, other: Tensor) -> Tensor:
        """KL(p ‖ q), with q the other prediction."""
        own, theirs = at_least_float32(outputs).log_softmax(-1), at_least_float32(other).log_softmax(-1)
        return (own.exp() * (own - theirs)).sum(-1)

    def predict(self, outputs: Tensor) -> Tensor:
        return at_least_float32(outputs).softmax(-1)

    def agrees(self, predictions: Tensor, reference: Tensor, certainty: float) -> Tensor:
        label = reference.argmax(-1)
        probability = predictions.gather(-1, label[:, None]).squeeze(-1)
        return (predictions.argmax(-1) == label) & (probability >= certainty)


class Regression(Head):
    """A linear layer and squared error.

    For targets within [0, 1] the output is a sigmoid, as in the paper. Other targets are standardised: the layer learns
    (y − mean)/deviation, and predictions are converted back to the targets' units.
    """

    def __init__(self, size: int, *, sigmoid: bool, mean: float = 0.0, deviation: float = 1.0) -> None:
        super().__init__()
        self.linear = nn.Linear(size, 1)
        self.sigmoid = sigmoid
        self.mean = mean
        self.deviation = deviation

    def forward(self, features: Tensor) -> Tensor:
        outputs = self.linear(features).squeeze(-1)
        return outputs.sigmoid() if self.sigmoid else outputs

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return (at_least_float32(outputs) - (labels - self.mean) / self.deviation) ** 2

    def divergence(self, outputs: Tensor, other: Tensor) -> Tensor:
        return (at_least_float32(outputs) - at_least_float32(other)) ** 2

    def predict(self, outputs: Tensor) -> Tensor:
        return at_least_float32(outputs) * self.deviation + self.mean

    def agrees(self, predictions: Tensor, reference: Tensor, certainty: float) -> Tensor:
        return (predictions - reference).abs() <= (1 - certainty) * self.deviation


def make_head(size: int, classes: int, target: Mapping[str, Any] | None) -> Head:
    """A classification head; without classes a regression head with the arguments `target`."""
    return Classification(size, classes) if classes else Regression(size, **(target or {}))


def pool(states: Tensor, weights: Tensor, how: Pooling) -> Tensor:
    """One vector per text from its states (batch, k, size); positions with weight 0 are ignored.

    "max" is the elementwise maximum, "mean" is Σ w h / Σ w, "max-mean" is both, concatenated.
    """
    present = weights != 0
    if how == "max-mean":
        return torch.cat([pool(states, weights, "max"), pool(states, weights, "mean")], dim=-1)
    if how == "mean":
        shares = weights.to(states.dtype)[..., None]
        return (shares * states).sum(1) / torch.where(present.any(1, keepdim=True), shares.sum(1), 1.0)
    if how == "last":
        # The last state of each direction: at the last word left to right, at the first word right to left.
        half = states.shape[-1] // 2
        end = (present.sum(1) - 1).clamp(min=0)
        last = states[torch.arange(len(states), device=states.device), end, :half]
        return torch.cat([last, states[:, 0, half:]], dim=-1)
    pooled = states.masked_fill(~present[..., None], -torch.inf).amax(1)
    return torch.where(present.any(1, keepdim=True), pooled, pooled.new_zeros(()))


def pooled_size(size: int, how: Pooling) -> int:
    if how not in get_args(Pooling):
        raise ValueError(f"pooling must be one of {', '.join(get_args(Pooling))}, got {how!r}")
    return 2 * size if how == "max-mean" else size
