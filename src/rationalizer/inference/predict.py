"""Apply a trained model to examples: predictions and rationales, and predictions from given rationales."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rationalizer.inference.enough import shorten
from rationalizer.models.batch_constraints import BatchConstraints
from rationalizer.models.batches import batch_loader
from rationalizer.models.devices import inference_threads
from rationalizer.models.trained_model import TrainedModel
from rationalizer.nn import Encoder, HighlightModel
from rationalizer.plurals import count_of
from rationalizer.text import AnyExample, Budget, PairExample

BATCH = 128
OnBatch = Callable[[int], object]


@dataclass(frozen=True)
class Predictions:
    """Predictions and rationales, in the order of the examples."""

    outputs: NDArray[np.float32]  # (examples, classes) probabilities, or (examples,) values
    # Per example, one number per token; with several rationales, a row for each label, target or class; for pairs of
    # texts, a matrix with one number per pair of words.
    weights: list[NDArray[np.float32]]  # the factor of each token in the predictor; 0: not selected
    scores: list[NDArray[np.float32]]  # the generator's scores, which rank the tokens

    @property
    def labels(self) -> NDArray[Any]:
        """The indices of the most probable classes, or the values; not for several labels or targets."""
        return self.outputs.argmax(-1) if self.outputs.ndim == 2 else self.outputs

    @property
    def selected(self) -> list[NDArray[np.bool_]]:
        return [weights != 0 for weights in self.weights]


def one_rationale(predictions: Predictions) -> Predictions:
    """With a rationale for each class, the union of them: the probabilities depend on all."""
    if all(weights.ndim == 1 for weights in predictions.weights):
        return predictions
    weights, scores = ([row.max(0) for row in rows] for rows in (predictions.weights, predictions.scores))
    return Predictions(predictions.outputs, weights, scores)


@torch.inference_mode()
def predict(
    trained: TrainedModel,
    examples: Sequence[AnyExample],
    *,
    budget: Budget | float | str | None = None,
    constraints: Any = None,
    batch_size: int = BATCH,
    on_batch: OnBatch | None = None,
) -> Predictions:
    """Predict and select; `budget` and `constraints` replace those of the training. `on_batch` is called with the size
    of each batch."""
    trained = with_settings(trained, budget, constraints)
    _require_kind(trained, examples)
    model = trained.model.eval()
    weights: list[Any] = [None] * len(examples)
    scores: list[Any] = [None] * len(examples)
    rows: list[tuple[Tensor, Tensor]] = []
    config = trained.config
    in_use = config.budget
    if in_use.kind == "average":
        in_use = in_use.calibrated(trained.history["calibration"])
    batch_constraints = BatchConstraints(config, trained.encoder, len(examples))
    with inference_threads(uses_threads=trained.encoder.uses_threads):
        for batch in _batches(trained.encoder, examples, batch_size, batch_constraints):
            batch = batch.to(trained.device)
            output = model(*batch.texts, budget=in_use, constraints=batch.constraints)
            if in_use.kind == "enough":
                output = shorten(model, batch.texts, output, in_use, batch.constraints)
            rows.append((batch.index.cpu(), model.head.predict(output.outputs).cpu()))
            for values, padded in ((weights, output.z), (scores, output.scores)):
                for index, row in zip(batch.index.tolist(), padded.float().cpu().numpy(), strict=True):
                    values[index] = row[(..., *map(slice, examples[index].shape))]  # without padding
            if on_batch is not None:
                on_batch(len(batch))
    return Predictions(_in_order(trained, rows), weights, scores)


@torch.inference_mode()
def predict_from(
    trained: TrainedModel,
    examples: Sequence[AnyExample],
    masks: Sequence[Any],
    *,
    batch_size: int = BATCH,
    on_batch: OnBatch | None = None,
) -> NDArray[np.float32]:
    """Predict probabilities (or values) from exactly the words in `masks`: one 0/1 or weight per token; with several
    rationales the same for all, or a row for each; for pairs of texts a matrix with one per pair of words."""
    _require_kind(trained, examples)
    _check_masks(examples, masks, _rationales(trained))
    model = trained.model.eval()
    predicted: list[tuple[Tensor, Tensor]] = []
    with inference_threads(uses_threads=trained.encoder.uses_threads):
        for batch in _batches(trained.encoder, examples, batch_size):
            texts = [words.to(trained.device) for words in batch.texts]
            rows = () if trained.pairs else np.shape(masks[int(batch.index[0])])[:-1]
            z = np.zeros((len(batch), *rows, *(words.mask.shape[1] for words in texts)), dtype=np.float32)
            for row, index in enumerate(batch.index.tolist()):
                z[row][(..., *map(slice, examples[index].shape))] = masks[index]
            outputs = model.predict_from(torch.from_numpy(z).to(trained.device), *texts)
            predicted.append((batch.index.cpu(), model.head.predict(outputs).cpu()))
            if on_batch is not None:
                on_batch(len(batch))
    return _in_order(trained, predicted)


def with_settings(trained: TrainedModel, budget: Budget | float | str | None, constraints: Any) -> TrainedModel:
    """The model with another budget and other constraints, where they are not None."""
    trained = trained if budget is None else trained.with_budget(budget)
    return trained if constraints is None else trained.with_constraints(constraints)


def _batches(
    encoder: Encoder, examples: Sequence[AnyExample], batch_size: int, constraints: BatchConstraints | None = None
) -> Any:
    return batch_loader(examples, encoder, batch_size=batch_size, shuffle=False, seed=0, constraints=constraints)


def _require_kind(trained: TrainedModel, examples: Sequence[AnyExample]) -> None:
    if examples and isinstance(examples[0], PairExample) != trained.pairs:
        expected, actual = ("pairs of texts", "single texts") if trained.pairs else ("single texts", "pairs of texts")
        raise ValueError(f"this model takes {expected}, got {actual}")


def _in_order(trained: TrainedModel, rows: list[tuple[Tensor, Tensor]]) -> NDArray[np.float32]:
    if not rows:
        width = len(trained.classes) + sum(max(1, len(target.classes)) for target in trained.description.targets)
        return np.zeros((0, width) if width else 0, dtype=np.float32)
    index, outputs = (torch.cat(part) for part in zip(*rows, strict=True))
    return outputs[index.argsort()].numpy()


def _rationales(trained: TrainedModel) -> int:
    """The number of rationales of a text."""
    return trained.model.labels if isinstance(trained.model, HighlightModel) else 1


def _check_masks(examples: Sequence[AnyExample], masks: Sequence[Any], rationales: int) -> None:
    if len(masks) != len(examples):
        raise ValueError(f"expected one mask per example, got {len(masks)} for {count_of(len(examples), 'example')}")
    for i, (example, mask) in enumerate(zip(examples, masks, strict=True)):
        if np.shape(mask) not in (example.shape, (rationales, *example.shape)):
            words, entries = (" × ".join(map(str, shape)) for shape in (example.shape, np.shape(mask)))
            raise ValueError(f"mask {i} has {entries} entries for {words} tokens")
