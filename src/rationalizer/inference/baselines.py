"""What a score is compared with, on the same texts: a constant prediction, a linear model of all words, and the
model's own predictor on whole texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.data.disk_examples import labels
from rationalizer.inference.bag_of_words import BagOfWords
from rationalizer.inference.predict import OnBatch, predict_from
from rationalizer.inference.several_targets import score_outputs
from rationalizer.metrics.task_scores import score_task
from rationalizer.models.class_weights import compute_class_weights
from rationalizer.models.trained_model import TrainedModel
from rationalizer.text import AnyExample, PairExample

LARGEST = 20_000  # training texts of the linear model; of more texts, a sample of this size
WHOLE_TEXT = "its predictor on whole texts"
Baselines = dict[str, dict[str, float]]  # by name: scores of the task


def compare_with_baselines(
    trained: TrainedModel,
    train: Sequence[AnyExample] | None,
    examples: Sequence[AnyExample],
    *,
    on_batch: OnBatch | None = None,
) -> Baselines:
    """Score the baselines on labelled examples.

    - The most frequent class of the training texts, or for a regression their mean; the labels of most texts.
    - TF-IDF of all words with logistic regression (for a regression, ridge regression), trained on the same texts with
      the same class weights as the model; of several labels or targets, one model for each.
    - For single texts the model's own predictor on whole texts, if it was trained on whole texts as well.

    Args:
        trained: the model.
        train: its training texts; None if they are not known, which leaves only the last baseline.
        examples: the texts on which the model was scored.
        on_batch: called with the size of each batch that the predictor reads.
    """
    if len(trained.classes) == 1 or not len(examples) or any(example.label is None for example in examples):
        return {}
    truth = [example.label for example in examples]
    outputs: dict[str, NDArray[Any]] = {}
    if train is not None and len(train):
        outputs |= _fit_and_predict(trained, train, examples)
    selects = not trained.pairs and trained.model.method.uses_generator
    if selects and trained.config.objective_options.get("full_text_weight"):
        whole = [np.ones(example.shape) for example in examples]
        outputs[WHOLE_TEXT] = predict_from(trained, examples, whole, on_batch=on_batch)
    return {name: _score(trained, truth, output, own=name == WHOLE_TEXT) for name, output in outputs.items()}


def _score(trained: TrainedModel, truth: list[Any], output: NDArray[Any], *, own: bool) -> dict[str, float]:
    if trained.description.labels.names:
        limits = trained.thresholds if own else 0.5
        return score_outputs(trained.description, np.array(truth, dtype=np.float64), output, limits)
    if not trained.classes:
        return score_task("regression", truth, output.tolist())
    return score_task("classification", truth, output.argmax(-1).tolist(), range(len(trained.classes)), output)


def _fit_and_predict(
    trained: TrainedModel, train: Sequence[AnyExample], examples: Sequence[AnyExample]
) -> dict[str, NDArray[Any]]:
    targets, classes = labels(train), len(trained.classes)
    texts = [_words(example) for example in examples]
    sample = np.unique(np.linspace(0, len(train) - 1, min(len(train), LARGEST)).astype(np.int64))
    read = [_words(train[i]) for i in sample.tolist()]
    if trained.description.labels.names:
        return _several(trained, targets, sample, read, texts)
    if not classes:
        ridge = BagOfWords(read, targets[sample].astype(np.float64), 0)
        return {
            "the mean of the training texts": np.full(len(texts), targets.mean()),
            "TF-IDF + ridge regression": ridge.read(texts),
        }
    targets = targets.astype(np.int64)
    counts = np.bincount(targets, minlength=classes)
    config = trained.config
    balanced = config.sampling == "balanced"
    setting = "balanced" if balanced and config.class_weight is None else config.class_weight
    weights = compute_class_weights(setting, trained.classes, counts)
    constant = np.tile(counts / counts.sum(), (len(texts), 1))
    return {
        "the most frequent class": constant,
        "TF-IDF + logistic regression": BagOfWords(read, targets[sample], classes, weights=weights).read(texts),
    }


def _several(
    trained: TrainedModel, targets: NDArray[Any], sample: NDArray[np.int64], read: list[list[str]], texts: list[Any]
) -> dict[str, NDArray[Any]]:
    """The outputs for several labels or targets, side by side as those of the model."""
    balanced = trained.config.class_weight == "balanced"
    if trained.task == "multi-label":
        counts = np.stack([(targets == value).sum(0) for value in (0, 1)])
        weights = counts.sum(0) / np.maximum(2 * counts, 1) if balanced else None
        shares = np.nanmean(targets, axis=0)
        linear = BagOfWords(read, targets[sample], len(trained.classes), weights=weights)
        return {
            "the labels that most texts have": np.tile(shares, (len(texts), 1)),
            "TF-IDF + logistic regression for each label": linear.read(texts),
        }
    constant, fitted = [], []
    for target, column in zip(trained.description.targets, targets.T, strict=True):
        known = ~np.isnan(column)
        rows = np.flatnonzero(known[sample])
        own, found = [read[k] for k in rows.tolist()], column[sample][rows]
        if target.classes:
            counts = np.bincount(column[known].astype(np.int64), minlength=len(target.classes))
            weights = compute_class_weights("balanced" if balanced else None, target.classes, counts)
            constant.append(np.tile(counts / max(counts.sum(), 1), (len(texts), 1)))
            linear = BagOfWords(own, found.astype(np.int64), len(target.classes), weights=weights)
            fitted.append(linear.read(texts))
        else:
            constant.append(np.full((len(texts), 1), column[known].mean()))
            fitted.append(BagOfWords(own, found, 0).read(texts)[:, None])
    return {
        "the most frequent class, or the mean": np.concatenate(constant, axis=1),
        "TF-IDF + a linear model for each target": np.concatenate(fitted, axis=1),
    }


def _words(example: AnyExample) -> list[str]:
    """The words of a text; those of the two texts of a pair are told apart."""
    if isinstance(example, PairExample):
        return [f"{side} {word}" for side, text in enumerate(example.texts) for word in text.tokens]
    return list(example.tokens)
