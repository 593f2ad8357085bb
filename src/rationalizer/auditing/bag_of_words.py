"""An independent reader: a logistic regression on bags of words that the audit trains itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rationalizer.metrics.label_probe import assign_folds
from rationalizer.text import is_punctuation

MIN_TEXTS = 2  # words of fewer texts are ignored
ITERATIONS = 60
Texts = Sequence[Sequence[str]]


class BagOfWords:
    """TF-IDF and logistic regression, classes weighted equally: argmin Σ wᵢ·CE(yᵢ, xᵢW + b) + ½‖W‖².

    Args:
        texts: lists of words; case and punctuation are ignored.
        codes: their classes, 0 … classes − 1.
        classes: the number of classes.
    """

    def __init__(self, texts: Texts, codes: NDArray[np.int64], classes: int) -> None:
        seen = Counter(word for text in texts for word in set(_words(text)))
        self.words = sorted(word for word, count in seen.items() if count >= MIN_TEXTS)
        self.rows = {word: row for row, word in enumerate(self.words)}
        self.texts_with = np.array([seen[word] for word in self.words], dtype=np.int64)
        self._idf = (np.log((1 + len(texts)) / (1 + self.texts_with)) + 1).astype(np.float32)
        self.weights = torch.zeros(max(len(self.words), 1), classes, dtype=torch.float64)
        self.bias = torch.zeros(classes, dtype=torch.float64)
        self._fit(self._features(texts), torch.from_numpy(codes), classes)

    def _fit(self, features: tuple[Tensor, Tensor, Tensor], codes: Tensor, classes: int) -> None:
        counts = torch.bincount(codes, minlength=classes).clamp(min=1)
        share = (len(codes) / (counts * (counts > 0).sum()))[codes].double()
        parameters = [self.weights.requires_grad_(), self.bias.requires_grad_()]
        optimizer = torch.optim.LBFGS(parameters, max_iter=ITERATIONS, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            optimizer.zero_grad()
            errors = functional.cross_entropy(self._logits(features), codes, reduction="none")
            total = (share * errors).sum() + self.weights.square().sum() / 2
            total.backward()  # type: ignore[no-untyped-call]
            return total

        with torch.enable_grad():
            optimizer.step(loss)  # type: ignore[no-untyped-call]
        self.weights.requires_grad_(False)
        self.bias.requires_grad_(False)

    def read(self, texts: Texts) -> NDArray[np.float64]:
        """(texts, classes) probabilities."""
        with torch.no_grad():
            return self._logits(self._features(texts)).softmax(-1).numpy()

    def importance(self, text: Sequence[str]) -> NDArray[np.float64]:
        """How far each word can move the classes apart; 0 for words it does not know."""
        spread = (self.weights.amax(1) - self.weights.amin(1)).numpy()
        rows = [self.rows.get(word.lower()) for word in text]
        return np.array([0.0 if row is None else float(spread[row] * self._idf[row]) for row in rows])

    def _logits(self, features: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        rows, offsets, values = features
        pooled = functional.embedding_bag(rows, self.weights, offsets, mode="sum", per_sample_weights=values)
        return pooled + self.bias

    def _features(self, texts: Texts) -> tuple[Tensor, Tensor, Tensor]:
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
            self.models = [BagOfWords(train, train_codes, max(classes, int(train_codes.max()) + 1))]
            self._fold = np.zeros(len(texts), dtype=np.int64)
            return
        self._fold = assign_folds(codes)
        self.models = []
        for fold in range(int(self._fold.max()) + 1):
            others = np.flatnonzero(self._fold != fold).tolist()
            self.models.append(BagOfWords([texts[i] for i in others], codes[others], classes))

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


def _words(text: Sequence[str]) -> list[str]:
    return [word.lower() for word in text if not is_punctuation(word)]
