"""How much each selected word speaks for a prediction: leave-one-out over the rationale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rationalizer.inference.predict import BATCH, Predictions
from rationalizer.models.batches import collate
from rationalizer.models.devices import inference_threads
from rationalizer.models.trained_model import TrainedModel
from rationalizer.text import AnyExample, WordBatch
from rationalizer.word_support import Place, is_affordable, selected_places, support

_Row = tuple[int, Place | None]  # an example, and the word (or the link of a pair) that is left out
_Outputs = NDArray[np.float32]


@torch.inference_mode()
def word_weights(
    trained: TrainedModel,
    examples: Sequence[AnyExample],
    predictions: Predictions,
    *,
    batch_size: int = BATCH,
    max_tokens: int | None = None,
) -> list[NDArray[np.float64] | None]:
    """Return the weight of each selected word, or aligned pair of words, for every class.

    The weight of a word for a class is the log-odds of the class minus its log-odds without the word: the predictor
    reads the rationale once more with the word's factor set to 0. For regression it is the change of the value.

    The model has one rationale: for a single label, or shared by several.

    Returns:
        For each example an array (selected words, classes), or (selected words, 1) for regression, in the order of
        the words; None if nothing is selected, if the predictor would have to read more than `max_tokens` words, and
        for models with one class.
    """
    if len(trained.classes) == 1 and trained.task != "multi-label":
        return [None] * len(examples)
    trained.model.eval()
    encoder = trained.encoder
    places = [
        selected_places(mask, None if len(example.texts) > 1 else encoder.counted(example.texts[0].tokens))
        for example, mask in zip(examples, predictions.weights, strict=True)
    ]
    affordable = [k for k, own in enumerate(places) if is_affordable(own, examples[k].shape, max_tokens)]
    affordable.sort(key=lambda k: sum(examples[k].shape))  # so that batches need little padding
    results: list[NDArray[np.float64] | None] = [None] * len(examples)
    with inference_threads(uses_threads=encoder.uses_threads):
        for first in range(0, len(affordable), batch_size):
            own = affordable[first : first + batch_size]
            rows = [(number, place) for number in own for place in (None, *places[number])]
            if trained.model.can_leave_out:
                found = _predict_together(trained, examples, predictions, rows)
            else:
                parts = (rows[k : k + batch_size] for k in range(0, len(rows), batch_size))
                found = np.concatenate([_predict_rows(trained, examples, predictions, part) for part in parts])
            supported = support(found, several=trained.task == "multi-label")
            start = 0
            for number in own:
                end = start + 1 + len(places[number])
                results[number] = supported[start] - supported[start + 1 : end]
                start = end
    return results


def _predict_together(
    trained: TrainedModel, examples: Sequence[AnyExample], predictions: Predictions, rows: Sequence[_Row]
) -> _Outputs:
    """What `_predict_rows` returns; the predictor shares work between the rows of a text."""
    left_out: dict[int, list[int]] = {}
    for number, place in rows:
        left_out.setdefault(number, []).extend(place or ())
    texts, z = _inputs(trained, examples, predictions, [(number, None) for number in left_out])
    outputs = trained.model.predict_without(z, list(left_out.values()), *texts)
    return trained.model.head.predict(outputs).cpu().numpy()


def _predict_rows(
    trained: TrainedModel, examples: Sequence[AnyExample], predictions: Predictions, rows: Sequence[_Row]
) -> _Outputs:
    """The predictions from the rationales without these places."""
    texts, z = _inputs(trained, examples, predictions, rows)
    outputs = trained.model.predict_from(z, *texts)
    return trained.model.head.predict(outputs).cpu().numpy()


def _inputs(
    trained: TrainedModel, examples: Sequence[AnyExample], predictions: Predictions, rows: Sequence[_Row]
) -> tuple[list[WordBatch], Tensor]:
    """The texts of the rows, and their rationales."""
    members = list(dict.fromkeys(number for number, _ in rows))
    batch = collate([(number, examples[number]) for number in members], trained.encoder).to(trained.device)
    take = torch.tensor([members.index(number) for number, _ in rows], device=trained.device)
    z = np.zeros((len(rows), *(words.mask.shape[1] for words in batch.texts)), dtype=np.float32)
    for k, (number, place) in enumerate(rows):
        z[k][tuple(map(slice, examples[number].shape))] = predictions.weights[number]
        if place is not None:
            z[k][place] = 0
    return [words.take(take) for words in batch.texts], torch.from_numpy(z).to(trained.device)
