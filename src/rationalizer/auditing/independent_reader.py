"""An independent reader: bag-of-words models that the audit trains itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rationalizer.inference.bag_of_words import BagOfWords, Texts
from rationalizer.metrics.label_probe import assign_folds

MIN_TEXTS = 2  # words of fewer texts are ignored


class IndependentReader:
    """Bags of words for the audited texts, none of which was trained on the text it reads.

    Args:
        texts: the audited texts.
        codes: their classes.
        train: other texts to train on; without them, each fifth of the texts is read by a model of the others.
        train_codes: their classes.
    """

    def __init__(
        self,
        texts: Texts,
        codes: NDArray[np.int64],
        train: Texts | None = None,
        train_codes: NDArray[np.int64] | None = None,
    ) -> None:
        classes = int(codes.max()) + 1
        if train is not None and train_codes is not None:
            self.models = [_fit(train, train_codes, max(classes, int(train_codes.max()) + 1))]
            self._fold = np.zeros(len(texts), dtype=np.int64)
            return
        self._fold = assign_folds(codes)
        self.models = []
        for fold in range(int(self._fold.max()) + 1):
            others = np.flatnonzero(self._fold != fold).tolist()
            self.models.append(_fit([texts[i] for i in others], codes[others], classes))

    def read(self, texts: Texts, numbers: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
        """Probabilities from these words; `numbers` says to which of the audited texts they belong."""
        folds = self._fold[np.asarray(numbers, dtype=np.int64)]
        outputs = np.zeros((len(texts), self.models[0].weights.shape[1]))
        for fold, model in enumerate(self.models):
            rows = np.flatnonzero(folds == fold).tolist()
            if rows:
                outputs[rows] = model.read([texts[i] for i in rows])
        return outputs

    def importance(self, text: Sequence[str], number: int) -> NDArray[np.float64]:
        return self.models[self._fold[number]].importance(text)


def _fit(texts: Texts, codes: NDArray[np.int64], classes: int) -> BagOfWords:
    """A model with all classes that occur weighted equally."""
    counts = np.bincount(codes, minlength=classes)
    weights = len(codes) / (np.maximum(counts, 1) * (counts > 0).sum())
    return BagOfWords(texts, codes, classes, weights=weights, min_texts=MIN_TEXTS)
