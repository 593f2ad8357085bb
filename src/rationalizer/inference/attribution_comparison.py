"""Comparison of a model's rationales with post-hoc attributions of its predictor, at the same size.

Both use one predictor, so that only the selections differ: the model's rationales, the words with the largest
attributions (as many as the model selected), and as many random words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rationalizer.inference.attributions import attribute
from rationalizer.inference.predict import OnBatch, Predictions, predict, predict_from
from rationalizer.metrics import faithfulness
from rationalizer.models.trained_model import TrainedModel
from rationalizer.text import Example

PASSES = 1 + 2 * 3  # over all texts, without the attribution: the whole texts, each selection and its complement
OWN, CHANCE = "the model's rationale", "random words"
Masks = list[NDArray[np.bool_]]


@dataclass(frozen=True)
class SelectionScores:
    """One way to select words of each text, and its faithfulness."""

    name: str
    masks: Masks  # per text, one flag per token
    comprehensiveness: float
    sufficiency: float
    overlap: float  # mean share of the model's rationale that this method selects as well


@dataclass(frozen=True)
class AttributionComparison:
    """The model's rationale, the attribution's words and random words, equally many in each text."""

    own: SelectionScores
    attributed: SelectionScores
    chance: SelectionScores
    attributions: list[NDArray[np.float32]]  # per text, one number per token
    full: NDArray[np.float32]  # (texts, classes) predictions from the whole texts

    def as_predictions(self) -> Predictions:
        """The attribution's words as predictions, to be drawn like rationales."""
        weights = [
            np.where(mask, np.clip(values / max(float(values.max(initial=0.0)), 1e-12), 0.01, 1.0), 0.0)
            for mask, values in zip(self.attributed.masks, self.attributions, strict=True)
        ]
        return Predictions(self.full, [each.astype(np.float32) for each in weights], self.attributions)


def compare_with_attributions(
    trained: TrainedModel,
    examples: Sequence[Example],
    method: str = "integrated-gradients",
    *,
    predictions: Predictions | None = None,
    seed: int = 0,
    on_batch: OnBatch | None = None,
) -> AttributionComparison:
    """Compare comprehensiveness and sufficiency of the model's rationales with those of attributions.

    Args:
        trained: a classifier of single texts.
        examples: texts; labels are not needed.
        method: one of `ATTRIBUTIONS`.
        predictions: the result of `predict` for these examples, if available.
        seed: of the random words.
        on_batch: called with the size of each batch; every example counts `1 + PASSES` times.
    """
    attributions = attribute(trained, examples, method, on_batch=on_batch)
    selected = (predictions or predict(trained, examples)).selected
    full = predict_from(trained, examples, [np.ones(len(one.tokens)) for one in examples], on_batch=on_batch)
    random = np.random.default_rng(seed)
    random_scores = [random.random(len(one.tokens)) for one in examples]
    selections = {
        OWN: selected,
        method: _select_top(trained, examples, attributions, selected),
        CHANCE: _select_top(trained, examples, random_scores, selected),
    }
    rows = [
        _score(name, masks, selected, full, lambda masks: predict_from(trained, examples, masks, on_batch=on_batch))
        for name, masks in selections.items()
    ]
    return AttributionComparison(rows[0], rows[1], rows[2], attributions, full)


def _score(name: str, masks: Masks, own: Masks, full: Any, probabilities: Callable[[Any], Any]) -> SelectionScores:
    scores = faithfulness(probabilities, masks, full=full)
    shared = [(mask & other).sum() / other.sum() for mask, other in zip(masks, own, strict=True) if other.any()]
    overlap = float(np.mean(shared)) if shared else 0.0
    return SelectionScores(name, masks, scores.comprehensiveness, scores.sufficiency, overlap)


def _select_top(trained: TrainedModel, examples: Sequence[Example], scores: Sequence[Any], selected: Masks) -> Masks:
    """Select the words with the largest scores, as many as `selected` has, and the punctuation that goes with them."""
    masks = []
    for example, values, own in zip(examples, scores, selected, strict=True):
        words = trained.encoder.collate([example])
        counted = words.counted[0].numpy()
        order = np.argsort(-np.where(counted, values, -np.inf), kind="stable")
        z = torch.zeros(words.mask.shape)
        z[0, order[: int((own & counted).sum())].copy()] = 1
        z = words.with_punctuation(z) if trained.encoder.punctuation == "free" else z
        masks.append(z[0].numpy() != 0)
    return masks
