"""Predict labels and probabilities, for `Rationalizer`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.constraints import Constraint
from rationalizer.data.data_frames import is_table, texts_of
from rationalizer.estimator.model_state import ModelState
from rationalizer.inference.predict import Predictions, predict, with_settings
from rationalizer.inference.several_targets import predicted_values, split_outputs
from rationalizer.models.trained_model import TrainedModel
from rationalizer.prediction_gaps import predict_usable
from rationalizer.prediction_warnings import WarningSummary, prediction_warnings, smallest_budget
from rationalizer.progress import show_notebook_progress
from rationalizer.text import AnyExample, Budget

ConstraintsArgument = Iterable[Constraint | str] | None  # None: the model's own constraints


class PredictMethods(ModelState):
    """`predict` and `predict_proba`."""

    def predict(
        self,
        texts: Iterable[Any],
        *,
        constraints: ConstraintsArgument = None,
        skip_bad: bool = False,
        abstain: float | None = None,
    ) -> NDArray[Any]:
        """Return the predicted labels, of the type they had in `fit`: an array, or for a table a column with its index.

        For several labels it is a (texts, labels) matrix of 0 and 1, for several targets (texts, targets); for a table
        a table with a column for each.

        `constraints` replace the model's own. With `skip_bad`, texts that cannot be used, such as empty ones, are no
        error: their label is None (NaN for a regression), and a warning lists them. With `abstain`, the label
        is also None if its probability is lower.
        """
        if abstain is not None and self._classes is None:
            raise ValueError("a regression has no probabilities; leave abstain out")
        if abstain is not None and self._labels().names:
            raise ValueError("abstain is for models of one label; of several labels, set model.thresholds")
        if skip_bad:
            return self._skip_bad(partial(self.predict, constraints=constraints, abstain=abstain), texts)
        outputs = self._outputs(texts, constraints)
        if names := self._labels().names:
            labels = self._several_labels(outputs)
            if is_table(texts):
                return type(texts)(labels, index=texts.index, columns=list(names))  # type: ignore
            return labels
        labels = outputs if self._classes is None else np.array(self._classes)[outputs.argmax(-1)]
        if abstain is not None:
            labels = labels.astype(object)
            labels[outputs.max(-1) < abstain] = None
        if not is_table(texts):
            return labels
        return type(texts[next(iter(texts.columns))])(labels, index=texts.index, name="predicted")  # type: ignore

    def predict_proba(
        self, texts: Iterable[Any], *, constraints: ConstraintsArgument = None, skip_bad: bool = False
    ) -> Any:
        """Return the (texts, classes) probabilities, in the order of `classes_`; `constraints` replace the model's.

        For several labels they are (texts, labels). For several targets it is a list with the probabilities of each.
        With `skip_bad`, texts that cannot be used, such as empty ones, have NaN instead of an error.
        """
        targets = self.trained.description.targets
        if skip_bad:
            if targets:
                raise ValueError("skip_bad is not supported for the probabilities of several targets; leave it out")
            return self._skip_bad(partial(self.predict_proba, constraints=constraints), texts)
        if self._classes is None and not (targets and all(target.classes for target in targets)):
            raise ValueError("a regression has no probabilities; use predict")
        outputs = self._outputs(texts, constraints)
        return split_outputs(self.trained.description, outputs) if targets else outputs

    def _several_labels(self, outputs: NDArray[np.float32]) -> NDArray[Any]:
        columns = predicted_values(self.trained, outputs)
        for k, target in enumerate(self.trained.description.targets):
            columns[k] = np.array(target.classes)[columns[k]] if target.classes else columns[k]
        mixed = len({column.dtype.kind for column in columns}) > 1
        return np.stack([column.astype(object) if mixed else column for column in columns], axis=1)

    def _skip_bad(self, predict: Callable[[Any], Any], texts: Any) -> Any:
        if isinstance(texts, str):
            return predict(texts)  # for its error
        texts = list(texts) if isinstance(texts, Iterator) else texts
        items = texts_of(texts, pairs=self.pairs, model_columns=self._columns) if is_table(texts) else list(texts)
        return predict_usable(predict, lambda item: self.examples([item]), texts, items)

    def _outputs(self, texts: Iterable[Any], constraints: ConstraintsArgument) -> NDArray[np.float32]:
        examples = self.examples(texts)
        predictions = self._predict("Predicting", examples, constraints=constraints)
        warnings_of = self._warnings_under(with_settings(self.trained, None, constraints))
        summary = WarningSummary()
        for example, weights in zip(examples, predictions.weights, strict=True):
            summary.add(" / ".join(part.text for part in example.texts), warnings_of(example, weights))
        summary.emit(stacklevel=3)
        return predictions.outputs

    def _predict(self, title: str, examples: Sequence[AnyExample], **options: Any) -> Predictions:
        with show_notebook_progress(title, len(examples)) as on_batch:
            return predict(self.trained, examples, on_batch=on_batch, **options)

    def _warnings_under(self, used: TrainedModel, *, suggest: bool = False) -> Callable[..., tuple[str, ...]]:
        def smallest(example: AnyExample) -> tuple[Budget, int] | None:
            selectable = min(int(used.encoder.counted(text.tokens).sum()) for text in example.texts)
            if not used.model.method.follows_budget:
                return None
            return smallest_budget(
                used.config.budget, selectable, lambda budget: predict(used, [example], budget=budget).weights[0]
            )

        facts: dict[str, Any] = {"encoder": used.encoder, "languages": used.languages}
        return partial(prediction_warnings, config=used.config, smallest=smallest if suggest else None, **facts)
