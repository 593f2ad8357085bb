"""`Rationalizer`: a classifier or regressor for texts, or pairs of texts, that shows the words it used."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from rationalizer.constraints import Constraint, ConstraintConflict, parse_constraints
from rationalizer.data import BadRows, Corpus, InputRow, Labels, are_pairs, make_corpus, make_examples
from rationalizer.data.corpus import Task
from rationalizer.data.data_frames import is_table, names_of, texts_of
from rationalizer.drawing import (
    AnyExplanation,
    Explanation,
    Explanations,
    Label,
    PairExplanation,
)
from rationalizer.drawing.result_columns import result_columns, result_values
from rationalizer.explaining import as_label, conflict_in_row, make_explanation
from rationalizer.inference.predict import BATCH, Predictions, predict, with_settings
from rationalizer.inference.several_targets import predicted_values, split_outputs
from rationalizer.inference.word_weights import word_weights
from rationalizer.label_explanations import explain_classes, explain_labels, several_label
from rationalizer.models.batch_constraints import find_conflicts
from rationalizer.models.config import Config, resolve_rationales, with_constraints
from rationalizer.models.trained_model import LabelType, TrainedModel
from rationalizer.not_fitted import not_fitted
from rationalizer.prediction_gaps import predict_usable
from rationalizer.prediction_warnings import WarningSummary, changed_label_warning, prediction_warnings, smallest_budget
from rationalizer.progress import show_notebook_progress
from rationalizer.records.decision_record import DecisionRecord
from rationalizer.records.recorder import RecordArgument, Recorder
from rationalizer.saving import SavingMixin
from rationalizer.sklearn_api import config_from_params
from rationalizer.text import AnyExample, Budget, Example
from rationalizer.training.class_balance import rare_classes_note
from rationalizer.training.runs import RunRecord, read_run_record, run
from rationalizer.word_support import MAX_TOKENS

MAX_SUGGESTIONS = 16  # texts of one call for which the smallest budget that would work is looked for
ConstraintsArgument = Iterable[Constraint | str] | None  # None: the model's own constraints
Dev = tuple[Iterable[Any], Iterable[Any]] | tuple[Iterable[Any], Iterable[Any], Iterable[Any] | None]


class Rationalizer(SavingMixin):
    """A model that labels a text using only the words it shows, or a pair of texts using the words it aligns.

    >>> model = Rationalizer(method="spectra", budget=0.2).fit(texts, labels)
    >>> model.predict(["A warm, funny film."])
    >>> model.explain("A warm, funny film.").spans

    >>> model = Rationalizer(method="at-most-one").fit(pairs, labels)  # pairs: (premise, hypothesis) tuples
    >>> model.explain("A man plays a guitar.", "Somebody makes music.").words

    Args:
        method: for texts "spectra" (the default), "pair-budget", "sfe", "sfe-baseline", "gumbel", "hardkuma",
            "sparsemax", "fusedmax" or "full-text"; for pairs "at-most-one" (the default), "xor-at-most-one",
            "budget", "gumbel", "ot-relaxed", "ot-exact-k" or "softmax".
        budget: the largest rationale: a share of each text's words ("20%" or a float up to 1) or a number of words
            (int), or a share on average over texts with bounds on each ("18% on average, 8% to 35%"); 20% by default.
            For pairs, a share of the shorter text (50% by default) or a number of aligned word pairs; only the methods
            "budget" and "ot-exact-k" use it.
        constraints: further constraints on the rationale, see `rationalizer.constraints`: a list such as
            `[Spans(2), Never(stopwords=True)]`, or `["spans=2", "never=stopwords"]`.
        settings: any other setting of the training, the method or the encoder (see `models.Config`, the method's
            class and `nn.VectorEncoder`), such as `seed=1`, `embeddings="vectors.txt"`, `epochs=10`,
            `temperature=0.5`, `punctuation="count"` or `faithful=False`.
    """

    def __init__(
        self,
        method: str | None = None,
        budget: Budget | float | str | None = None,
        constraints: Sequence[Constraint | str] = (),
        **settings: Any,
    ) -> None:
        self._params = {"method": method, "budget": budget, "constraints": constraints, **settings}
        self._config = self._own_config = config_from_params(self._params)
        self._trained: TrainedModel | None = None
        self._record: RunRecord | None = None

    def fit(
        self,
        texts: Iterable[Any] | Corpus,
        labels: Iterable[Any] | None = None,
        *,
        budget: Budget | float | str | None = None,
        annotations: Iterable[Any] | None = None,
        dev: Dev | None = None,
        task: Task | None = None,
        sample_weight: Iterable[float] | None = None,
        classes: Sequence[Any] | None = None,
        pairs: bool | None = None,
        warm_start: bool = False,
        run_dir: str | Path | None = None,
        resume: bool = False,
        progress: bool | None = None,
        device: str = "auto",
        **trainer: Any,
    ) -> Rationalizer:
        """Train on texts, or pairs of texts, with their labels (lists, arrays or pandas columns), or on a corpus.

        Args:
            texts: strings or lists of tokens; or tuples (premise, hypothesis) of two such texts, or a table with two
                columns. A table has its texts in the column `text` or in its only column. Or a corpus with labels and
                splits, such as `data.load("large.parquet")`, which may be larger than memory.
            labels: strings and integers are classes, and so are floats if all are whole numbers and at most 20 are
                distinct (0.0 and 1.0); other floats are regression targets. `task` decides otherwise. Several labels of
                a text are a list or set of names, or a row of a 0/1 matrix; a table or a mapping has a column for each
                label, or for each of several targets (classes or numbers, None where one is not known).
            budget: the budget of this training, instead of that of `Rationalizer(budget=...)`; `get_params` keeps the
                latter.
            annotations: human annotations: for each text a token mask or character spans, or a mapping from labels to
                these; for each pair the aligned words as (i, j). The model learns from them if `annotation_weight` is
                above 0.
            dev: (texts, labels), or (texts, labels, annotations), for early stopping; by default a tenth of the texts
                is held out.
            task: "classification" or "regression", if the labels leave it open; "multi-label" for strings of several
                labels such as "food;service".
            sample_weight: a factor of the loss of each text, at least 0, in training and in early stopping. Class
                weights, which count texts, multiply it. Weights around 1 keep the loss in proportion to penalties.
            classes: the classes in order, or the names of a 0/1 matrix's columns (`MultiLabelBinarizer.classes_`).
            pairs: whether `texts` holds pairs; by default if all items are tuples of two, or if the method is for
                pairs. Lists of two strings, as JSON stores pairs, need it.
            warm_start: go on from this trained model, with its weights, words and classes, instead of training from
                scratch; with other texts, annotations or settings (`set_params(annotation_weight=1)`).
            run_dir: a folder for the model, its scores, checkpoints and logs, as written by `rationalizer train`.
            resume: continue the run in `run_dir`.
            progress: show a progress bar; by default only on a terminal or in a notebook.
            device: "cpu", "cuda", "cuda:1", "mps"; or "auto", a GPU if available.
            trainer: `devices` (how many; they share each batch), `num_nodes`, `precision` and `strategy` as in
                Lightning; `threads` on a CPU, by default as many as make training faster.
        """
        params = self._params if budget is None else {**self._params, "budget": budget}
        start = self.trained if warm_start else None
        label_type: LabelType = "str"
        if isinstance(texts, Corpus):
            given = {"labels": labels, "annotations": annotations, "dev": dev, "task": task, "pairs": pairs}
            _check_absent_with_corpus(**given, sample_weight=sample_weight, classes=classes)
            corpus = texts
            config = config_from_params(self._chosen_params(params), pairs=corpus.pairs)
            if config.word_splitting not in (None, corpus.rule):
                raise ValueError(
                    f"the corpus was split into words by the rule {corpus.rule!r}, not {config.word_splitting!r}; "
                    f"load it with rule={config.word_splitting!r}"
                )
        else:
            if labels is None:
                raise ValueError(
                    "fit needs labels; call fit(texts, labels), or fit(corpus) with a corpus from data.load"
                )
            texts = list(texts) if isinstance(texts, Iterator) else texts
            labels = list(labels) if isinstance(labels, Iterator) else labels
            if pairs is None:
                expected = config_from_params(params, pairs=self._is_for_pairs(params)).pairs
                pairs = are_pairs(texts, expected=expected)
            config = config_from_params(self._chosen_params(params), pairs=pairs)
            corpus = _corpus(config, texts, labels, annotations, dev, task, classes, start, sample_weight)
            if corpus.task == "classification":
                label_type = _label_type(list(labels))
        rationales = resolve_rationales(config, len(corpus.label_names))
        if config.rationales == "auto" and rationales != "shared":
            config = config_from_params({**self._chosen_params(params), "rationales": rationales}, pairs=corpus.pairs)
        for note in filter(None, (corpus.blank_tokens_note(), rare_classes_note(corpus))):
            warnings.warn(note, stacklevel=2)
        trainer |= {"device": device, "resume": resume, "progress": progress, "label_type": label_type, "start": start}
        done = run(corpus, config, run_dir, **trainer)
        for message in done.trained.history.get("warnings", []):
            warnings.warn(f"on the dev texts {message}", stacklevel=2)
        # Assigned together at the end, so that a failed training changes nothing.
        self._config = self._own_config = done.trained.config
        self._trained = done.trained
        self._record = None if run_dir is None else read_run_record(Path(run_dir))
        return self

    def examples(self, texts: Iterable[Any], annotations: Iterable[Any] | None = None) -> Sequence[AnyExample]:
        """Split texts (or pairs) into words as this model does; the same kinds of input as for `explain`.

        Args:
            texts: strings or lists of tokens, (premise, hypothesis) tuples, or a table.
            annotations: human annotations of the texts, or alignments of the pairs.

        Raises:
            DataError: if a text is empty or an annotation does not fit its text; the message names the row.
        """
        if is_table(texts):
            texts = texts_of(texts, pairs=self.pairs, model_columns=self._columns)
        return make_examples(texts, None, annotations, pairs=self.pairs, rule=self.trained.encoder.rule)

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

    @property
    def thresholds(self) -> dict[str, float]:
        """Of several labels: the probability from which a text has the label. They are calibrated on dev for the best
        F1 of each; setting them, some by name or one number for all, changes a trained model at once."""
        trained = self.trained
        if trained.task != "multi-label":
            raise AttributeError("only a model with several labels has thresholds")
        return dict(zip(trained.classes, trained.thresholds, strict=True))

    @thresholds.setter
    def thresholds(self, thresholds: Mapping[str, float] | Sequence[float] | float) -> None:
        self._trained = self.trained.with_thresholds(thresholds)

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

    @property
    def _columns(self) -> Mapping[str, str]:
        """The names of the columns it was trained on."""
        return self.trained.description.columns

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

    def _predict(self, title: str, examples: Sequence[AnyExample], **options: Any) -> Predictions:
        with show_notebook_progress(title, len(examples)) as on_batch:
            return predict(self.trained, examples, on_batch=on_batch, **options)

    def label_of(self, example: AnyExample) -> Label | None:
        """Return the true label of an example as the user wrote it; None if it has none."""
        if example.label is None:
            return None
        if isinstance(example.label, tuple):
            return _as_written(self._labels(), example.label)
        return float(example.label) if self._classes is None else self._classes[int(example.label)]

    @property
    def trained(self) -> TrainedModel:
        """The trained model, as the functions of `inference` take it."""
        if self._trained is None:
            raise not_fitted("this Rationalizer is not trained; call fit(texts, labels), or Rationalizer.load(folder)")
        return self._trained

    @property
    def config(self) -> Config:
        return self._config

    @property
    def pairs(self) -> bool:
        """Whether the model reads pairs of texts; before `fit`, whether its method is for pairs."""
        return self._config.pairs

    @property
    def _classes(self) -> tuple[Label, ...] | None:
        """`classes_` as Python values, of several labels their names; None for a regression and several targets."""
        description = self.trained.description
        if not description.classes:
            return None
        return tuple(as_label(name, description.label_type) for name in description.classes)

    @property
    def result_form(self) -> dict[str, Any]:
        """The arguments of `drawing.result_columns` that depend on the model."""
        description = self.trained.description
        return {
            "pairs": self.pairs,
            "classes": self._classes,
            "several": description.task == "multi-label",
            "targets": {target.name: target.classes for target in description.targets} or None,
            "separate": description.rationales != "shared",
        }

    @property
    def budget(self) -> Budget:
        """The budget of a rationale. Setting it changes a trained model at once, without training."""
        return self._config.budget

    @budget.setter
    def budget(self, budget: Budget | float | str) -> None:
        budget = Budget.parse(budget)
        if self._trained is not None:
            self._trained = self._trained.with_budget(budget)
        self._params = {**self._params, "budget": budget}
        self._config = replace(self._config, budget=budget)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints besides the budget. Setting them changes a trained model at once, without training."""
        return self._config.constraints

    @constraints.setter
    def constraints(self, constraints: Iterable[Constraint | str]) -> None:
        config = with_constraints(self._config, parse_constraints(constraints))
        if self._trained is not None:
            self._trained = self._trained.with_constraints(config.constraints)
        self._params = {**self._params, "constraints": config.constraints}
        self._config = config

    def __repr__(self) -> str:
        state = "trained" if self._trained is not None else "not trained"
        constraints = f", constraints={list(map(str, self.constraints))}" if self.constraints else ""
        return f"Rationalizer(method={self._config.method!r}, budget='{self.budget}'{constraints}), {state}"


def _check_absent_with_corpus(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(f"the corpus has its own {name}; omit {name}, or pass texts and labels instead")


def _corpus(
    config: Config,
    texts: Iterable[Any],
    labels: Iterable[Any],
    annotations: Iterable[Any] | None,
    dev: Dev | None,
    task: Task | None,
    names: Sequence[Any] | None,
    start: TrainedModel | None,
    sample_weight: Iterable[float] | None,
) -> Corpus:
    scheme = None if start is None else start.description.labels
    corpus = make_corpus(
        texts,
        labels,
        annotations,
        None if scheme is not None or names is None else [str(name) for name in names],
        task=task,
        scheme=scheme,
        dev=None if dev is None else (),
        pairs=config.pairs,
        seed=config.seed,
        budget=config.budget,
        rule=config.word_splitting if start is None else start.encoder.rule,
        weights=sample_weight,
    )
    corpus = replace(corpus, columns=names_of(texts, labels, pairs=config.pairs))
    if dev is None:
        return corpus
    if len(dev) not in (2, 3):
        raise ValueError(f"dev has {len(dev)} items; pass (texts, labels) or (texts, labels, annotations)")
    dev_texts, dev_labels, dev_annotations = (*dev, None)[:3]
    scheme = Labels(corpus.task, corpus.classes, corpus.targets)
    options: dict[str, Any] = {"pairs": config.pairs, "rule": corpus.rule, "scheme": scheme}
    held_out = make_examples(dev_texts, dev_labels, dev_annotations, **options)
    return replace(corpus, dev=held_out)


def _as_written(scheme: Labels, label: Sequence[Any]) -> Any:
    """The names of the labels that a text has, or the value of each target."""
    if scheme.task == "multi-label":
        return tuple(name for name, has in zip(scheme.classes, label, strict=True) if has)
    return {
        target.name: target.classes[value] if target.classes and value is not None else value
        for target, value in zip(scheme.targets, label, strict=True)
    }


def _is_text(text: Any) -> bool:
    """Whether a table cell holds a text: not None, not NaN, not only blanks."""
    return (
        bool(text.strip()) if isinstance(text, str) else text is not None and not (np.ndim(text) == 0 and text != text)
    )


_LABEL_TYPES: dict[type, LabelType] = {bool: "bool", int: "int", float: "float"}


def _label_type(labels: Sequence[Any]) -> LabelType:
    """The Python type of the labels, float for integers and floats; "str" for other mixtures."""
    kinds = {type(label.item() if isinstance(label, np.generic) else label) for label in labels}
    if kinds == {int, float}:
        return "float"
    return _LABEL_TYPES.get(kinds.pop(), "str") if len(kinds) == 1 else "str"
