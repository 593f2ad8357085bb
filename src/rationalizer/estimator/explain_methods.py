"""Explain predictions, for `Rationalizer`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from rationalizer.constraints import ConstraintConflict
from rationalizer.data import BadRows, InputRow
from rationalizer.data.data_frames import is_table, texts_of
from rationalizer.drawing import AnyExplanation, Explanation, Explanations, PairExplanation
from rationalizer.drawing.result_columns import result_columns, result_values
from rationalizer.estimator.predict_methods import ConstraintsArgument, PredictMethods
from rationalizer.explaining import conflict_in_row, make_explanation
from rationalizer.inference.predict import BATCH, Predictions, predict, with_settings
from rationalizer.inference.word_weights import word_weights
from rationalizer.label_explanations import explain_classes, explain_labels, several_label
from rationalizer.models.batch_constraints import find_conflicts
from rationalizer.models.config import Config
from rationalizer.prediction_warnings import WarningSummary, changed_label_warning
from rationalizer.progress import show_notebook_progress
from rationalizer.records.decision_record import DecisionRecord
from rationalizer.records.recorder import RecordArgument, Recorder
from rationalizer.text import AnyExample, Budget, Example
from rationalizer.word_support import MAX_TOKENS

MAX_SUGGESTIONS = 16  # texts of one call for which the smallest budget that would work is looked for


class ExplainMethods(PredictMethods):
    """`explain`, and its forms for examples and for rows of files."""

    @overload
    def explain(
        self,
        texts: str,
        *,
        constraints: ConstraintsArgument = ...,
        record: RecordArgument = ...,
        reasons: bool | None = ...,
        per_class: bool = ...,
    ) -> Explanation: ...
    @overload
    def explain(
        self,
        texts: str,
        hypothesis: str,
        *,
        constraints: ConstraintsArgument = ...,
        record: RecordArgument = ...,
        reasons: bool | None = ...,
        per_class: bool = ...,
    ) -> PairExplanation: ...
    @overload
    def explain(
        self,
        texts: Iterable[Any],
        *,
        annotations: Iterable[Any] | None = ...,
        constraints: ConstraintsArgument = ...,
        batch_size: int = ...,
        record: RecordArgument = ...,
        reasons: bool | None = ...,
        per_class: bool = ...,
    ) -> Any: ...
    def explain(
        self,
        texts: Any,
        hypothesis: str | None = None,
        *,
        annotations: Iterable[Any] | None = None,
        constraints: ConstraintsArgument = None,
        batch_size: int = BATCH,
        record: RecordArgument = False,
        reasons: bool | None = None,
        per_class: bool = False,
    ) -> Any:
        """Predict labels and return them with the rationales: for one text, for a premise and its hypothesis, or many.

        If a prediction is only a guess (see `Explanation.warnings`), one Python warning sums this up for all texts.

        Args:
            texts: one text; a premise; or many texts. A list gives a list, which notebooks draw. An iterator gives an
                iterator, which reads as it goes. A table gives the same table with the columns `predicted`,
                `probability` and that of each class (`top_probabilities` if there are more than 10), `rationale`,
                `spans` (for pairs `pairs`), `words` and `warnings` added; table rows without a text are kept, with
                nothing added.
            hypothesis: the second text, if the first argument is a premise.
            annotations: for a list, the human annotations (for pairs: alignments), to be drawn with the rationales.
            constraints: used instead of the model's own; [] for none. This needs no training.
            batch_size: number of texts to take from an iterator before they are explained together; 1 explains each
                text at once.
            record: True gives each explanation a `record` (for a table: the column `record`, as JSON), from which
                `rationalizer.verify` repeats the decision; "with-text" stores the texts in it. Each text is then
                explained by itself, which takes longer. See `records.DecisionRecord`.
            reasons: whether to compute the weight and the direction of each selected word (see `Explanation.words`).
                The predictor then reads each rationale once more per selected word. By default for texts and lists,
                but not for a text where it would have to read more than 100,000 words.
            per_class: whether `labels` has what speaks for each class. If each class has its own rationale, these are
                the words from which alone its probability was computed, with or without this argument. If they share
                one, they are the words of this rationale without which the log-odds of the class fall: the model read
                all of them for every class, and words it did not read could speak for a class, too.
        """
        self._check_per_class(per_class)
        if annotations is not None and (isinstance(texts, str) or hypothesis is not None):
            raise ValueError("annotations need a list of texts; call explain([text], annotations=[annotation])")
        if hypothesis is not None and not self.pairs:
            raise ValueError("this model reads single texts; call explain(text), or explain([text, text])")
        if hypothesis is None and self.pairs and isinstance(texts, str):
            raise ValueError("this model reads pairs of texts; call explain(premise, hypothesis)")
        recorder = Recorder.for_argument(self.trained, record)
        if annotations is None and isinstance(texts, Iterator):
            options: dict[str, Any] = {"constraints": constraints, "recorder": recorder, "reasons": bool(reasons)}
            return self._explain_iterator(texts, batch_size, **options, per_class=per_class)
        if annotations is None and is_table(texts):
            options = {"constraints": constraints, "reasons": bool(reasons), "per_class": per_class}
            return self._explain_table(texts, recorder=recorder, **options)
        single = isinstance(texts, str) or hypothesis is not None
        if single:
            texts = [texts] if hypothesis is None else [(texts, hypothesis)]
        examples = self.examples(texts, annotations)
        options = {"constraints": constraints, "recorder": recorder, "reasons": reasons, "per_class": per_class}
        explanations = self.explain_examples(examples, **options)
        WarningSummary(explanations).emit(stacklevel=2)
        return explanations[0] if single else explanations

    def _explain_iterator(self, texts: Iterator[Any], batch_size: int, **options: Any) -> Iterator[AnyExplanation]:
        summary = WarningSummary()
        while batch := list(islice(texts, batch_size)):
            try:
                explanations = self.explain_examples(self.examples(batch), **options)
            except ConstraintConflict as error:
                raise error.shifted(summary.texts) from None
            summary.add_explanations(explanations)
            yield from explanations
        summary.emit(stacklevel=2)

    def _explain_table(self, table: Any, *, recorder: Recorder | None, **options: Any) -> Any:
        """A copy of the table with columns added."""
        texts = texts_of(table, pairs=self.pairs, model_columns=self._columns)
        usable = [k for k, row in enumerate(texts) if all(map(_is_text, row if self.pairs else (row,)))]
        try:
            examples = self.examples([texts[k] for k in usable])
            explained = self.explain_examples(examples, recorder=recorder, **options)
        except ConstraintConflict as error:
            raise error if error.index is None else error.with_place(f"row {usable[error.index] + 1}") from None
        WarningSummary(explained).emit(stacklevel=3)
        by_row = dict(zip(usable, explained, strict=True))
        form = {**self.result_form, "record": recorder is not None}
        form["separate"] |= bool(options.get("per_class"))
        rows = [result_values(by_row.get(k), **form) for k in range(len(texts))]
        added = result_columns(table.columns, **form)
        return table.assign(**{name: [row[k] for row in rows] for k, name in enumerate(added)})

    def explain_examples(
        self,
        examples: Sequence[AnyExample],
        *,
        budget: Budget | float | str | None = None,
        constraints: ConstraintsArgument = None,
        batch_size: int = BATCH,
        predictions: Predictions | None = None,
        recorder: Recorder | None = None,
        reasons: bool | None = False,
        per_class: bool = False,
    ) -> Explanations:
        """Explain examples that are already split into words (see `examples`), without a Python warning.

        `budget` and `constraints` replace the model's own; `predictions` are those of `inference.predict` for these
        examples, if they exist already. With a recorder of this model, explanations have a `record`. `reasons` and
        `per_class` as in `explain`; `reasons=None`: except where it would take long.
        """
        self._check_per_class(per_class)
        settings: dict[str, Any] = {"budget": budget, "constraints": constraints}
        records: Sequence[DecisionRecord | None] = [None] * len(examples)
        if recorder is not None:
            # The recorder may be older than a change of the model's settings.
            own = {"budget": self.budget, "constraints": self.constraints}
            settings = {name: own[name] if value is None else value for name, value in settings.items()}
            with show_notebook_progress("Explaining", len(examples)) as on_batch:
                predictions, records = recorder.predict(examples, **settings, on_batch=on_batch)
        elif predictions is None:
            predictions = self._predict("Explaining", examples, **settings, batch_size=batch_size)
        weights: Sequence[NDArray[np.float64] | None] = [None] * len(examples)
        reasons = reasons if self.trained.is_single else False
        per_class = per_class and self.trained.description.rationales == "shared"
        if reasons is not False or per_class:
            limit = None if reasons or per_class else MAX_TOKENS
            weights = word_weights(self.trained, examples, predictions, batch_size=batch_size, max_tokens=limit)
        used = with_settings(self.trained, budget, constraints)
        suggest = reasons is not False and len(examples) <= MAX_SUGGESTIONS
        warnings_of = self._warnings_under(used, suggest=suggest)
        found = [warnings_of(*row) for row in zip(examples, predictions.weights, strict=True)]
        if reasons is not False:
            changed = self._changed_labels(used.config, examples, predictions, batch_size)
            found = [(*own, *change) for own, change in zip(found, changed, strict=True)]
        facts: dict[str, Any] = {"classes": self._classes, "encoder": self.trained.encoder}
        facts["faithful"] = self._config.faithful
        explanations = Explanations()
        rows = zip(examples, predictions.outputs, predictions.weights, weights, found, records, strict=True)
        for example, output, mask, own, notes, record in rows:
            labels = explain_labels(self.trained, example, output, mask, self._classes)
            facts |= {"label": several_label(self.trained, labels)}
            if per_class and isinstance(example, Example):
                counted = self.trained.encoder.counted(example.tokens)
                labels = explain_classes(example, output, mask, own, counted, self._classes or (), labels)
            facts |= {
                "labels": labels,
                "weights": own if self.trained.is_single else None,
                "warnings": notes,
                "record": record,
            }
            explanations.append(make_explanation(example, output, mask, **facts))
        return explanations

    def _check_per_class(self, per_class: bool) -> None:
        if per_class and (self.pairs or self._classes is None or len(self._classes) == 1):
            kind = "numbers or several targets" if self._classes is None else "one class"
            kind = "pairs of texts" if self.pairs else kind
            raise ValueError(
                f"per_class needs a model of single texts with several classes, but this one is for {kind}"
            )

    def _changed_labels(
        self, config: Config, examples: Sequence[AnyExample], predictions: Predictions, batch_size: int
    ) -> list[tuple[str, ...]]:
        """For each example, a warning if its label is another one with the settings of the training."""
        classes, own = self._classes, self._own_config
        nothing: list[tuple[str, ...]] = [()] * len(examples)
        if classes is None or (config.budget, config.constraints) == (own.budget, own.constraints):
            return nothing
        settings: dict[str, Any] = {"budget": own.budget, "constraints": own.constraints, "batch_size": batch_size}
        try:
            others = predict(self.trained, examples, **settings).labels
        except ConstraintConflict:  # the model's own constraints cannot be satisfied on these texts
            return nothing
        labels = zip(predictions.labels.tolist(), others.tolist(), strict=True)
        return [changed_label_warning(classes[label], config, classes[other], own) for label, other in labels]

    def explain_rows(
        self,
        rows: Sequence[InputRow],
        *,
        batch_size: int = BATCH,
        bad: BadRows | None = None,
        recorder: Recorder | None = None,
        reasons: bool | None = False,
        per_class: bool = False,
    ) -> list[AnyExplanation | None]:
        """Explain rows of a file (see `data.iter_rows`); None for rows without a text.

        If `bad` allows bad rows, rows on which the constraints cannot be satisfied are added to it, and have None.
        """
        examples = {k: replace(row.example, label=None) for k, row in enumerate(rows) if row.example is not None}
        while True:
            numbers, usable = list(examples), list(examples.values())
            try:
                options: dict[str, Any] = {"batch_size": batch_size, "recorder": recorder, "reasons": reasons}
                explanations = self.explain_examples(usable, **options, per_class=per_class)
                explained = dict(zip(numbers, explanations, strict=True))
                return [explained.get(k) for k in range(len(rows))]
            except ConstraintConflict as error:
                if error.index is None:  # not about one text
                    raise
                first = rows[numbers[error.index]]
                if first.path is None or first.number is None or bad is None or not bad.skip:
                    raise conflict_in_row(error, first) from None
                # All at once: a round is then explained twice, not once per conflict. Conflicts of factors, which only
                # solving finds, come one at a time.
                conflicts = {error.index: error, **find_conflicts(usable, self._config, self.trained.encoder)}
                for index, conflict in conflicts.items():
                    row = rows[numbers[index]]
                    bad.add(Path(row.path or ""), row.number or 0, conflict.with_place(""))
                    del examples[numbers[index]]


def _is_text(text: Any) -> bool:
    """Whether a table cell holds a text: not None, not NaN, not only blanks."""
    return (
        bool(text.strip()) if isinstance(text, str) else text is not None and not (np.ndim(text) == 0 and text != text)
    )
