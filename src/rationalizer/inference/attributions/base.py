"""The registry of attributions, and their application to examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rationalizer.discovery import Registry
from rationalizer.inference.predict import OnBatch
from rationalizer.models.batches import batch_loader
from rationalizer.models.trained_model import TrainedModel
from rationalizer.nn import HighlightModel
from rationalizer.text import Example, WordBatch

BATCH = 16
# From a batch of n words to (batch, n): the contribution of each word to the probability of the class that the
# predictor predicts from the whole text.
Attribution: TypeAlias = Callable[[HighlightModel, WordBatch], Tensor]
ATTRIBUTIONS: Registry[Attribution] = Registry("attribution")


def attribute(
    trained: TrainedModel,
    examples: Sequence[Example],
    method: str = "integrated-gradients",
    *,
    on_batch: OnBatch | None = None,
) -> list[NDArray[np.float32]]:
    """Per text one number per token: its contribution to the probability of the class predicted from the whole text.

    Args:
        trained: a classifier of single texts.
        examples: the texts.
        method: one of `ATTRIBUTIONS`.
        on_batch: called with the size of each batch.
    """
    trained.require_single("an attribution")
    function, model = ATTRIBUTIONS[method], trained.model.eval()
    if not isinstance(model, HighlightModel) or not trained.classes:
        kind = "a regression model" if trained.task == "regression" else "a model of pairs of texts"
        raise ValueError(f"attributions are defined for classifiers of single texts; this is {kind}")
    attributions: list[Any] = [None] * len(examples)
    for batch in batch_loader(examples, trained.encoder, batch_size=BATCH, shuffle=False, seed=0):
        (words,) = batch.to(trained.device).texts
        values = function(model, words).float().cpu().numpy()
        for row, index in enumerate(batch.index.tolist()):
            attributions[index] = values[row, : len(examples[index].tokens)]
        if on_batch is not None:
            on_batch(len(batch))
    return attributions
