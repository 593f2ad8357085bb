"""`Rationalizer`: a classifier or regressor for texts, or pairs of texts, that shows the words it used."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rationalizer.constraints import Constraint
from rationalizer.data import Corpus, are_pairs
from rationalizer.data.corpus import Task
from rationalizer.estimator.model_state import config_from_params
from rationalizer.estimator.saving_methods import SavingMethods
from rationalizer.estimator.scikit_learn_methods import ScikitLearnMethods
from rationalizer.estimator.training_data import Dev, check_corpus_arguments, corpus_of, label_type
from rationalizer.models.description import LabelType
from rationalizer.models.setting_conflicts import resolve_rationales
from rationalizer.text import Budget
from rationalizer.training.class_balance import rare_classes_note
from rationalizer.training.runs import compile_ahead, read_run_record, run


class Rationalizer(SavingMethods, ScikitLearnMethods):
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
        self._trained = None
        self._record = None

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
        kind: LabelType = "str"
        if isinstance(texts, Corpus):
            given = {"labels": labels, "annotations": annotations, "dev": dev, "task": task, "pairs": pairs}
            corpus = texts
            config = config_from_params(self._chosen_params(params), pairs=corpus.pairs)
            check_corpus_arguments(corpus, config, **given, sample_weight=sample_weight, classes=classes)
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
            compile_ahead(config, device)
            corpus = corpus_of(config, texts, labels, annotations, dev, task, classes, start, sample_weight)
            if corpus.task == "classification":
                kind = label_type(list(labels))
        rationales = resolve_rationales(config, len(corpus.label_names))
        if config.rationales == "auto" and rationales != "shared":
            config = config_from_params({**self._chosen_params(params), "rationales": rationales}, pairs=corpus.pairs)
        for note in filter(None, (corpus.blank_tokens_note(), rare_classes_note(corpus))):
            warnings.warn(note, stacklevel=2)
        trainer |= {"device": device, "resume": resume, "progress": progress, "label_type": kind, "start": start}
        done = run(corpus, config, run_dir, **trainer)
        for message in done.trained.history.get("warnings", []):
            warnings.warn(f"on the dev texts {message}", stacklevel=2)
        # Assigned together at the end, so that a failed training changes nothing.
        self._config = self._own_config = done.trained.config
        self._trained = done.trained
        self._record = None if run_dir is None else read_run_record(Path(run_dir))
        return self

    def __repr__(self) -> str:
        state = "trained" if self._trained is not None else "not trained"
        constraints = f", constraints={list(map(str, self.constraints))}" if self.constraints else ""
        return f"Rationalizer(method={self._config.method!r}, budget='{self.budget}'{constraints}), {state}"
