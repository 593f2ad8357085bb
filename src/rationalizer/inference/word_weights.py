"""How much each selected word speaks for a prediction: leave-one-out over the rationale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from rationalizer.inference.predict import BATCH, Predictions
from rationalizer.models.batches import collate
from rationalizer.models.trained_model import TrainedModel
from rationalizer.text import AnyExample
from rationalizer.word_support import Place, is_affordable, selected_places, what_is_lost

_Row = tuple[int, Place | None]  # an example, and the word (or the link of a pair) that is left out


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
    model, encoder = trained.model.eval(), trained.encoder
    places = [
        selected_places(mask, None if len(example.texts) > 1 else encoder.counted(example.texts[0].tokens))
        for example, mask in zip(examples, predictions.weights, strict=True)
    ]
    outputs: list[dict[Place | None, NDArray[np.float32]]] = [{} for _ in examples]
    all_rows = _rows(examples, places, max_tokens)
    while rows := list(islice(all_rows, batch_size)):
        members = list(dict.fromkeys(number for number, _ in rows))
        batch = collate([(number, examples[number]) for number in members], encoder).to(trained.device)
        take = torch.tensor([members.index(number) for number, _ in rows], device=trained.device)
        texts = [words.take(take) for words in batch.texts]
        z = np.zeros((len(rows), *(words.mask.shape[1] for words in texts)), dtype=np.float32)
        for k, (number, left_out) in enumerate(rows):
            z[k][tuple(map(slice, examples[number].shape))] = predictions.weights[number]
            if left_out is not None:
                z[k][left_out] = 0
        found = model.head.predict(model.predict_from(torch.from_numpy(z).to(trained.device), *texts))
        for (number, left_out), row in zip(rows, found.cpu().numpy(), strict=True):
            outputs[number][left_out] = row
    several = trained.task == "multi-label"
    return [
        what_is_lost(np.stack([rows[place] for place in (None, *own)]), several=several) if rows else None
        for own, rows in zip(places, outputs, strict=True)
    ]


def _rows(examples: Sequence[AnyExample], places: Sequence[Sequence[Place]], max_tokens: int | None) -> Iterator[_Row]:
    """All rows, from the shortest text to the longest, so that batches need little padding."""
    for number in sorted(range(len(examples)), key=lambda k: sum(examples[k].shape)):
        if is_affordable(places[number], examples[number].shape, max_tokens):
            yield number, None
            for place in places[number]:
                yield number, place
