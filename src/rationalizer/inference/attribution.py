"""A model's own selection beside post-hoc attributions of its predictor, cut to the same size.

A select-then-predict model shows what it read. The other way is to let a model read the whole text and ask afterwards
which words mattered. Here both are asked of one predictor, so that only the selections differ: its attributions on the
whole text, cut to as many words as the model selected, against those words, and against as many words drawn by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rationalizer.inference.predict import OnBatch, Predictions, predict, predict_from
from rationalizer.metrics import faithfulness
from rationalizer.models.batches import batch_loader
from rationalizer.models.trained_model import TrainedModel
from rationalizer.nn import HighlightModel
from rationalizer.suggestions import did_you_mean
from rationalizer.text import Example, WordBatch

BATCH = 16
AT_ONCE = 128  # texts that go through the predictor together
STEPS = 32  # of the integral
PASSES = 1 + 2 * 3  # over all texts, beside the attribution itself: the whole texts, and each selection in and out
OWN, CHANCE = "the model's own", "words by chance"
Masks = list[NDArray[np.bool_]]


@dataclass(frozen=True)
class SelectionScores:
    """Words of each text, chosen in one way, and what they do to the predictor."""

    name: str
    masks: Masks  # per text, one flag per token
    comprehensiveness: float
    sufficiency: float
    overlap: float  # the mean share of the model's own words that are among them


@dataclass(frozen=True)
class AttributionComparison:
    """The model's own words, the attribution's, and words drawn by chance, as many in each text."""

    own: SelectionScores
    attributed: SelectionScores
    chance: SelectionScores
    attributions: list[NDArray[np.float32]]  # per text, a number per token
    full: NDArray[np.float32]  # (texts, classes) what the predictor says of the whole texts

    def explained(self) -> Predictions:
        """The attribution's words as predictions, to be drawn like the model's own."""
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
    """How comprehensive and sufficient the model's own selections are beside attributions of its predictor.

    Args:
        trained: a classifier of single texts.
        examples: texts; labels are not needed.
        method: one of `ATTRIBUTIONS`.
        predictions: what `predict` gave for these examples, if already there.
        seed: of the words that are drawn by chance.
        on_batch: told of each batch's size; every example counts `1 + PASSES` times.
    """
    attributed = attributions(trained, examples, method, on_batch=on_batch)
    selected = (predictions or predict(trained, examples)).selected
    full = predict_from(trained, examples, [np.ones(len(one.tokens)) for one in examples], on_batch=on_batch)
    drawn = np.random.default_rng(seed)
    by_chance = [drawn.random(len(one.tokens)) for one in examples]
    choices = {
        OWN: selected,
        method: _as_many(trained, examples, attributed, selected),
        CHANCE: _as_many(trained, examples, by_chance, selected),
    }
    rows = [
        _chosen(name, masks, selected, full, lambda masks: predict_from(trained, examples, masks, on_batch=on_batch))
        for name, masks in choices.items()
    ]
    return AttributionComparison(rows[0], rows[1], rows[2], attributed, full)


def _chosen(name: str, masks: Masks, own: Masks, full: Any, probabilities: Callable[[Any], Any]) -> SelectionScores:
    found = faithfulness(probabilities, masks, full=full)
    shared = [(mask & other).sum() / other.sum() for mask, other in zip(masks, own, strict=True) if other.any()]
    return SelectionScores(
        name, masks, found.comprehensiveness, found.sufficiency, float(np.mean(shared)) if shared else 0.0
    )


def _as_many(trained: TrainedModel, examples: Sequence[Example], scores: Sequence[Any], selected: Masks) -> Masks:
    """The words with the largest scores, as many as were selected, and the punctuation that words take along."""
    masks = []
    for example, values, chosen in zip(examples, scores, selected, strict=True):
        words = trained.encoder.collate([example])
        counted = words.counted[0].numpy()
        order = np.argsort(-np.where(counted, values, -np.inf), kind="stable")
        z = torch.zeros(words.mask.shape)
        z[0, order[: int((chosen & counted).sum())].copy()] = 1
        z = words.with_punctuation(z) if trained.encoder.punctuation == "free" else z
        masks.append(z[0].numpy() != 0)
    return masks


def attributions(
    trained: TrainedModel,
    examples: Sequence[Example],
    method: str = "integrated-gradients",
    *,
    on_batch: OnBatch | None = None,
) -> list[NDArray[np.float32]]:
    """Per text one number per token: how much it adds to the probability of what is predicted from the whole text.

    Args:
        trained: a classifier of single texts.
        examples: the texts.
        method: one of `ATTRIBUTIONS`.
        on_batch: told of each batch's size.
    """
    if method not in ATTRIBUTIONS:
        raise ValueError(f"there is no attribution {method!r}; {did_you_mean(method, ATTRIBUTIONS)}")
    model = trained.model.eval()
    if not isinstance(model, HighlightModel) or not trained.classes:
        what = "a regression" if trained.task == "regression" else "a model of pairs of texts"
        raise ValueError(f"attributions are of classifiers of single texts, and this is {what}; leave them out")
    attribute = ATTRIBUTIONS[method]
    found: list[Any] = [None] * len(examples)
    for batch in batch_loader(examples, trained.encoder, batch_size=BATCH, shuffle=False, seed=0):
        (words,) = batch.to(trained.device).texts
        values = attribute(model, words).float().cpu().numpy()
        for row, position in enumerate(batch.index.tolist()):
            found[position] = values[row, : len(examples[position].tokens)]
        if on_batch is not None:
            on_batch(len(batch))
    return found


def integrated_gradients(model: HighlightModel, words: WordBatch) -> Tensor:
    """(batch, n): ∫ ∂p(ŷ | α · x) / ∂z dα over α from 0 to 1, where ŷ is what is predicted from the whole text x.

    z multiplies what the predictor reads of each word, so this is the integrated gradients of the words' vectors with
    nothing as the baseline, summed over each vector, for any encoder.
    """
    try:
        from captum.attr import IntegratedGradients
    except ImportError:
        raise ImportError(
            'integrated gradients need the package captum: pip install ".[captum]" in a checkout'
        ) from None

    def probabilities(z: Tensor, rows: Tensor) -> Tensor:
        return model.head.predict(model.predict_from(z, words.take(rows)))

    whole, rows = words.mask.to(model.dtype), torch.arange(len(words), device=words.mask.device)
    with torch.no_grad():
        predicted = probabilities(whole, rows).argmax(-1)
    # cuDNN gives the gradients of LSTMs in training mode only.
    with torch.backends.cudnn.flags(enabled=False):
        found: Tensor = IntegratedGradients(probabilities).attribute(
            whole, target=predicted, additional_forward_args=(rows,), n_steps=STEPS, internal_batch_size=AT_ONCE
        )
    return found.detach()


ATTRIBUTIONS: dict[str, Callable[[HighlightModel, WordBatch], Tensor]] = {"integrated-gradients": integrated_gradients}
