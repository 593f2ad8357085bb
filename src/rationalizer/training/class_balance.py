"""Training on classes of different frequency: the weights of losses, and a note about rare classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rationalizer.data import Corpus
from rationalizer.data.disk_examples import labels
from rationalizer.metrics.degeneration import list_classes
from rationalizer.models.class_weights import compute_class_weights
from rationalizer.models.config import Config
from rationalizer.text import AnyExample

FEW_TEXTS = 10  # training texts of a class; with fewer there is a note


def count_classes(examples: Sequence[AnyExample], classes: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of examples of each class, or with each of several labels."""
    found = labels(examples)
    if found.ndim == 2:
        return np.asarray((found == 1).sum(0))
    return np.bincount(found.astype(np.int64), minlength=len(classes))


def training_weights(corpus: Corpus, config: Config) -> Tensor | None:
    """Return the factor of each class in the training loss; None if all are 1."""
    if corpus.task != "classification":
        return None
    counts: NDArray[Any] = count_classes(corpus.train, corpus.classes)
    if config.sampling == "balanced":  # the classes that occur are drawn equally often
        counts = (counts > 0).astype(np.float64)
    return _as_tensor(compute_class_weights(config.class_weight, corpus.classes, counts))


def dev_weights(corpus: Corpus, config: Config) -> Tensor | None:
    """Return the factor of each class in the dev loss, which then measures what the training minimises.

    With the plain mean on unbalanced data, early stopping would prefer a model that always predicts the largest class.
    """
    if corpus.task != "classification" or not len(corpus.dev):
        return None
    counts = count_classes(corpus.dev, corpus.classes)
    sampled = config.sampling == "balanced"
    return _as_tensor(compute_class_weights(config.class_weight, corpus.classes, counts, sampled=sampled))


def _as_tensor(weights: NDArray[Any] | None) -> Tensor | None:
    return None if weights is None else torch.from_numpy(weights)


def rare_classes_note(corpus: Corpus) -> str:
    """A note that names classes with few training texts and says what to do; empty if there are none."""
    if len(corpus.classes) < 2 or not len(corpus.train):
        return ""
    counts = dict(zip(corpus.classes, count_classes(corpus.train, corpus.classes).tolist(), strict=True))
    rare = sorted((name for name in counts if counts[name] < FEW_TEXTS), key=counts.__getitem__)
    if not rare:
        return ""
    listed = list_classes({name: counts[name] for name in rare})
    return (
        f"note: fewer than {FEW_TEXTS} training texts for {listed}; the model will hardly learn to predict these "
        "classes: add texts, merge classes, or leave them out"
    )
