"""What an audit needs of a model: a function that selects words, and one that predicts from selected words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.text import AnyExample, Budget, is_punctuation
from rationalizer.text.errors import InputError

Weights = NDArray[np.float32]  # one number per token, or a matrix with one number per pair of words; 0: not selected
Tokens = Sequence[str]


class AuditedModel:
    """The base class of models under audit. `select` and `predict_from` are required, the rest are further facts.

    Texts are `Example`s (`example.tokens` are the words), or `PairExample`s for a model of pairs.
    """

    name: str = "model"
    pairs: bool = False
    classes: Sequence[Any] | None = None  # the labels; None if unknown, or for a regression
    # Whether predictions promise to depend on the selected words and their order only, not on the gaps between them.
    ignores_gaps: bool = False

    def select(self, texts: Sequence[AnyExample]) -> list[Weights]:
        """The weight of each word; words with weight 0 are dropped."""
        raise NotImplementedError

    def predict_from(self, texts: Sequence[AnyExample], weights: Sequence[Weights]) -> NDArray[np.float32]:
        """(texts, classes) probabilities, or (texts,) values, predicted from the words with nonzero weight."""
        raise NotImplementedError

    def select_and_predict(self, texts: Sequence[AnyExample]) -> tuple[list[Weights], NDArray[np.float32]]:
        """The rationales and the predictions from them; an adapter that has both at once may override it."""
        weights = self.select(texts)
        return weights, self.predict_from(texts, weights)

    def predict(self, texts: Sequence[AnyExample]) -> NDArray[np.float32] | None:
        """What the model's users get, if this is computed in another way than by `select` and `predict_from`."""
        return None

    def limits(self, texts: Sequence[AnyExample]) -> list[int] | None:
        """The largest number of counted words (or links) of each rationale; None without a budget."""
        return None

    def least(self, texts: Sequence[AnyExample]) -> list[int] | None:
        """The smallest number of counted words of each rationale; None without such a bound."""
        return None

    def counted(self, text: AnyExample) -> NDArray[np.bool_]:
        """Which words of the text (of the premise) count towards the budget; by default all but punctuation."""
        return np.array([not is_punctuation(token) for token in text.texts[0].tokens], dtype=np.bool_)

    def violations(self, texts: Sequence[AnyExample], weights: Sequence[Weights]) -> list[bool] | None:
        """For each text, whether its rationale violates the model's constraints; None without constraints."""
        return None


class Adapter(AuditedModel):
    """Any select-then-predict model, given as two functions. Their texts are lists of words.

    Args:
        select: from texts to rationales: for each text one number per word, 0 for words that are dropped.
        predict_from: from texts and rationales to (texts, classes) probabilities, or (texts,) values.
        predict: from texts to the predictions that users get, if they are computed in another way than by `select` and
            `predict_from`.
        name: of the model, for the report.
        classes: the labels, in the order of the probabilities.
        budget: the largest share, or number, of words that a rationale may contain, if the model promises one.
        ignores_gaps: whether the model promises that the gaps between selected words do not matter.
    """

    def __init__(
        self,
        select: Callable[[list[Tokens]], Sequence[Any]],
        predict_from: Callable[[list[Tokens], list[Weights]], Any],
        *,
        predict: Callable[[list[Tokens]], Any] | None = None,
        name: str = "model",
        classes: Sequence[Any] | None = None,
        budget: Budget | float | str | None = None,
        ignores_gaps: bool = False,
    ) -> None:
        self._select, self._predict_from, self._predict = select, predict_from, predict
        self.name, self.classes, self.ignores_gaps = name, classes, ignores_gaps
        self._budget = None if budget is None else Budget.parse(budget)

    def select(self, texts: Sequence[AnyExample]) -> list[Weights]:
        selected = [np.asarray(row, dtype=np.float32) for row in self._select(_tokens(texts))]
        if len(selected) != len(texts):
            raise InputError(
                f"select returned {len(selected)} rationales for {len(texts)} texts", "return one per text"
            )
        for i, (row, text) in enumerate(zip(selected, texts, strict=True)):
            if row.shape != text.shape:
                raise InputError(
                    f"select returned shape {row.shape} for text {i + 1}, which has {text.shape[0]} words",
                    "return one number per word",
                )
        return selected

    def predict_from(self, texts: Sequence[AnyExample], weights: Sequence[Weights]) -> NDArray[np.float32]:
        return _checked("predict_from", self._predict_from(_tokens(texts), list(weights)), len(texts))

    def predict(self, texts: Sequence[AnyExample]) -> NDArray[np.float32] | None:
        return None if self._predict is None else _checked("predict", self._predict(_tokens(texts)), len(texts))

    def limits(self, texts: Sequence[AnyExample]) -> list[int] | None:
        if self._budget is None:
            return None
        import torch

        return [int(self._budget.word_limit(torch.from_numpy(self.counted(text))[None])) for text in texts]


def _tokens(texts: Sequence[AnyExample]) -> list[Tokens]:
    return [list(text.texts[0].tokens) for text in texts]


def _checked(function: str, returned: Any, count: int) -> NDArray[np.float32]:
    outputs = np.asarray(returned, dtype=np.float32)
    if outputs.ndim not in (1, 2) or len(outputs) != count or not np.isfinite(outputs).all():
        raise InputError(
            f"{function} returned an array of shape {outputs.shape} for {count} texts",
            "return finite probabilities of shape (texts, classes), or values of shape (texts,)",
        )
    return outputs
