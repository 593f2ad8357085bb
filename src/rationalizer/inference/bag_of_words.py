"""A linear model on bags of words: TF-IDF with logistic or ridge regression, as scikit-learn fits it, in PyTorch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rationalizer.text import is_punctuation

ITERATIONS = 100
TOLERANCE = 1e-4  # of the gradient's norm, relative to that at the start
HISTORY = 10  # gradients that L-BFGS keeps
Texts = Sequence[Sequence[str]]
Features = tuple[Tensor, Tensor, Tensor]


class BagOfWords:
    """argmin Σ wᵢ·ℓ(yᵢ, xᵢW + b) + ½‖W‖², xᵢ the TF-IDF of a text's words with ‖xᵢ‖ = 1; ℓ is the cross-entropy of
    classes, half the squared error of numbers, or the sum of the binary cross-entropies of labels (one-vs-rest).

    Args:
        texts: lists of words; case and punctuation are ignored.
        targets: their classes, 0 … classes − 1, or numbers; or a (texts, classes) table of labels, of which a text may
            have several: 1, 0, or NaN where it is not known.
        classes: the number of classes, or labels; 0 for numbers.
        weights: (classes,) the factor of each class in the loss, or (2, classes) those of the texts without and with
            each label; all 1 by default.
        min_texts: words of fewer texts are ignored.
    """

    def __init__(
        self,
        texts: Texts,
        targets: NDArray[np.int64] | NDArray[np.float64],
        classes: int,
        *,
        weights: NDArray[np.float64] | None = None,
        min_texts: int = 1,
    ) -> None:
        seen = Counter(word for text in texts for word in set(_words(text)))
        self.words = sorted(word for word, count in seen.items() if count >= min_texts)
        self.rows = {word: row for row, word in enumerate(self.words)}
        self.texts_with = np.array([seen[word] for word in self.words], dtype=np.int64)
        self._idf = (np.log((1 + len(texts)) / (1 + self.texts_with)) + 1).astype(np.float32)
        self.classes = classes
        self.several = targets.ndim == 2
        self.weights = torch.zeros(max(len(self.words), 1), max(classes, 1), dtype=torch.float64)
        self.bias = torch.zeros(max(classes, 1), dtype=torch.float64)
        if not classes:
            self.bias += float(np.mean(targets))
        if weights is None or not classes:
            of_text = np.ones(len(targets))
        else:
            of_text = np.where(targets == 1, weights[1], weights[0]) if self.several else weights[targets]
        if self.several:
            of_text = np.broadcast_to(of_text.reshape(len(targets), -1), targets.shape) * ~np.isnan(targets)
        self._fit(self._features(texts), torch.from_numpy(targets).nan_to_num(), torch.from_numpy(of_text))

    def _fit(self, features: Features, targets: Tensor, factors: Tensor) -> None:
        shape, split = self.weights.shape, self.weights.numel()

        def loss(point: Tensor) -> tuple[float, Tensor]:
            point = point.detach().requires_grad_()
            self.weights, self.bias = point[:split].view(shape), point[split:]
            outputs = self._outputs(features)
            if self.several:
                errors = functional.binary_cross_entropy_with_logits(outputs, targets, reduction="none")
            elif self.classes:
                errors = functional.cross_entropy(outputs, targets, reduction="none")
            else:
                errors = (outputs.squeeze(-1) - targets).square() / 2
            total = (factors * errors).sum() + self.weights.square().sum() / 2
            (gradient,) = torch.autograd.grad(total, point)
            return float(total.detach()), gradient

        with torch.inference_mode(False), torch.enable_grad():
            best = minimise(loss, torch.cat([self.weights.flatten(), self.bias]))
        self.weights, self.bias = best[:split].view(shape), best[split:]

    def read(self, texts: Texts) -> NDArray[np.float64]:
        """(texts, classes) probabilities, of classes or labels; or (texts,) numbers."""
        with torch.no_grad():
            outputs = self._outputs(self._features(texts))
            if self.several:
                return outputs.sigmoid().numpy()
            return (outputs.softmax(-1) if self.classes else outputs.squeeze(-1)).numpy()

    def importance(self, text: Sequence[str]) -> NDArray[np.float64]:
        """How far each word can move the classes apart; 0 for words it does not know."""
        spread = (self.weights.amax(1) - self.weights.amin(1)).numpy()
        rows = [self.rows.get(word.lower()) for word in text]
        return np.array([0.0 if row is None else float(spread[row] * self._idf[row]) for row in rows])

    def _outputs(self, features: Features) -> Tensor:
        rows, offsets, values = features
        pooled = functional.embedding_bag(rows, self.weights, offsets, mode="sum", per_sample_weights=values)
        return pooled + self.bias

    def _features(self, texts: Texts) -> Features:
        rows: list[int] = []
        values: list[NDArray[np.float64]] = []
        offsets = []
        for text in texts:
            offsets.append(len(rows))
            found = Counter(row for word in _words(text) if (row := self.rows.get(word)) is not None)
            tf_idf = np.array(list(found.values()), dtype=np.float64) * self._idf[list(found)]
            rows += found
            values.append(tf_idf / max(float(np.linalg.norm(tf_idf)), 1e-12))
        flat = np.concatenate(values) if values else np.zeros(0)
        return torch.tensor(rows, dtype=torch.int64), torch.tensor(offsets), torch.from_numpy(flat)


def minimise(loss: Callable[[Tensor], tuple[float, Tensor]], point: Tensor) -> Tensor:
    """The minimum of a convex function, by L-BFGS with halved steps.

    PyTorch's optimizers take seconds to import (its compiler), which an evaluation would not need otherwise.
    """
    value, gradient = loss(point)
    past: list[tuple[Tensor, Tensor]] = []  # changes of the point and of the gradient
    first = float(gradient.norm())
    for _ in range(ITERATIONS):
        if float(gradient.norm()) <= TOLERANCE * first:
            break
        direction, factors = gradient.clone(), []
        for step, change in reversed(past):
            factors.append(step.dot(direction) / step.dot(change))
            direction -= factors[-1] * change
        if past:
            step, change = past[-1]
            direction *= step.dot(change) / change.dot(change)
        for (step, change), factor in zip(past, reversed(factors), strict=True):
            direction += (factor - change.dot(direction) / step.dot(change)) * step
        slope, rate = float(gradient.dot(direction)), 1.0 if past else min(1.0, 1 / first)
        new, (new_value, new_gradient) = point - rate * direction, loss(point - rate * direction)
        while new_value > value - 1e-4 * rate * slope and rate > 1e-10:
            rate /= 2
            new, (new_value, new_gradient) = point - rate * direction, loss(point - rate * direction)
        step, change = new - point, new_gradient - gradient
        if float(step.dot(change)) > 0:
            past = [*past, (step, change)][-HISTORY:]
        point, value, gradient = new, new_value, new_gradient
    return point


def _words(text: Sequence[str]) -> list[str]:
    return [word.lower() for word in text if not is_punctuation(word)]
