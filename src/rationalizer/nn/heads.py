"""Pooling of states, and prediction heads with their losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from rationalizer.nn.precision import at_least_float32

Pooling = Literal["max", "mean", "last", "max-mean"]


class Head(nn.Module):
    """Turns features into raw outputs, computes losses, and turns outputs into predictions.

    Features are (batch, size), or (batch, rationales, size) with those of one rationale for each class, label or
    target: each output is then computed from the features of its own rationale alone.

    `text_weights` (batch,) are factors of the losses of the texts of a batch, while they are set.
    """

    text_weights: Tensor | None = None
    rationales: int = 1  # how many rationales a text has, if each class, label or target has its own

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


def _outputs(linear: nn.Linear, features: Tensor) -> Tensor:
    """(batch, outputs) from the same features for all outputs, or from features of its own for each."""
    if features.dim() == 2:
        return linear(features)
    return torch.einsum("bks,ks->bk", features, linear.weight) + linear.bias


class Classification(Head):
    """A linear layer and cross-entropy.

    `class_weights` (classes,) are factors of the losses by true class, while they are set.
    """

    class_weights: Tensor | None

    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, classes)
        self.rationales = classes
        self.register_buffer("class_weights", None, persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        return _outputs(self.linear, features)

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


class MultiLabel(Head):
    """A linear layer and binary cross-entropy for each label. Labels are 1, 0, or NaN where none is given, and the loss
    of a text is the mean over those that are."""

    def __init__(self, size: int, labels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, labels)
        self.rationales = labels

    def forward(self, features: Tensor) -> Tensor:
        return _outputs(self.linear, features)

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        outputs = at_least_float32(outputs)
        truth = labels.nan_to_num().to(outputs.dtype)
        losses = functional.binary_cross_entropy_with_logits(outputs, truth, reduction="none")
        return _mean_of_given(losses, labels)

    def divergence(self, outputs: Tensor, other: Tensor) -> Tensor:
        """The mean over labels of KL(p ‖ q), with q the other prediction."""
        own, theirs = at_least_float32(outputs), at_least_float32(other)
        log_ratios = [functional.logsigmoid(sign * own) - functional.logsigmoid(sign * theirs) for sign in (1, -1)]
        return (own.sigmoid() * log_ratios[0] + (-own).sigmoid() * log_ratios[1]).mean(-1)

    def predict(self, outputs: Tensor) -> Tensor:
        """(batch, labels) probabilities, which need not sum to 1."""
        return at_least_float32(outputs).sigmoid()


class MultiTarget(Head):
    """A head for each of several targets. Their outputs are concatenated: one per class, or one value."""

    def __init__(self, heads: Sequence[Head]) -> None:
        super().__init__()
        self.heads = nn.ModuleList(heads)
        self.rationales = len(heads)
        self.widths = [head.rationales if isinstance(head, Classification) else 1 for head in heads]

    def forward(self, features: Tensor) -> Tensor:
        own = features.unbind(1) if features.dim() == 3 else [features] * len(self.heads)
        outputs = [head(part) for head, part in zip(self.heads, own, strict=True)]
        return torch.cat([part if part.dim() == 2 else part[:, None] for part in outputs], dim=-1)

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """(batch,) the mean of the losses of the targets that are given."""
        losses = []
        for head, part, truth in zip(self._heads(), self._split(outputs), labels.unbind(1), strict=True):
            known = truth.nan_to_num()
            losses.append(head.losses(part, known.long() if isinstance(head, Classification) else known))
        return _mean_of_given(torch.stack(losses, dim=1), labels)

    def divergence(self, outputs: Tensor, other: Tensor) -> Tensor:
        parts = zip(self._heads(), self._split(outputs), self._split(other), strict=True)
        return torch.stack([head.divergence(own, theirs) for head, own, theirs in parts]).mean(0)

    def predict(self, outputs: Tensor) -> Tensor:
        """(batch, outputs) the probabilities of classes, and values, side by side."""
        found = [head.predict(part) for head, part in zip(self._heads(), self._split(outputs), strict=True)]
        return torch.cat([part if part.dim() == 2 else part[:, None] for part in found], dim=-1)

    def _heads(self) -> list[Any]:
        return list(self.heads)

    def _split(self, outputs: Tensor) -> list[Tensor]:
        parts = zip(self.heads, torch.split(outputs, self.widths, dim=-1), strict=True)
        return [part if isinstance(head, Classification) else part.squeeze(-1) for head, part in parts]


def _mean_of_given(losses: Tensor, labels: Tensor) -> Tensor:
    given = ~labels.isnan()
    return losses.masked_fill(~given, 0).sum(-1) / given.sum(-1).clamp(min=1)


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
