"""The user's object: a classifier (or regressor) of texts, or of pairs of texts, that shows the words it used."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from rationalizer.constraints import Constraint, ConstraintConflict, parse_constraints
from rationalizer.data import Corpus, InputRow, are_pairs, make_corpus, make_examples
from rationalizer.data.corpus import Task
from rationalizer.data.data_frames import is_table, names_of, texts_of
from rationalizer.drawing import AnyExplanation, Explanation, Explanations, Label, PairExplanation
from rationalizer.drawing.result_columns import result_columns, result_values
from rationalizer.inference.predict import BATCH, Predictions, predict
from rationalizer.models.batch_constraints import warn_about_empty_rationales
from rationalizer.models.config import Config, with_constraints
from rationalizer.models.devices import accelerator_settings
from rationalizer.models.trained_model import LabelType, TrainedModel
from rationalizer.nn.encoders.base import KNOWN, UNKNOWN
from rationalizer.progress import show_notebook_progress
from rationalizer.saving import Saved
from rationalizer.sklearn_api import configured
from rationalizer.text import AnyExample, Budget, Example, PairExample
from rationalizer.training.runs import RunRecord, read_run_record, run

Asked = Iterable[Constraint | str] | None  # constraints in use; None: the model's own


class Rationalizer(Saved):
    """Learns to label texts from the words it shows, or pairs of texts from the words it aligns.

    >>> model = Rationalizer(method="spectra", budget=0.2).fit(texts, labels)
    >>> model.predict(["A warm, funny film."])
    >>> model.explain("A warm, funny film.").spans

    >>> model = Rationalizer(method="at-most-one").fit(pairs, labels)  # pairs: (premise, hypothesis) tuples
    >>> model.explain("A man plays a guitar.", "Somebody makes music.").words

    Args:
        method: for texts "spectra" (the default), "pair-budget", "sfe", "sfe-baseline", "gumbel", "hardkuma",
            "sparsemax", "fusedmax" or "full-text"; for pairs "at-most-one" (the default), "xor-at-most-one",
            "budget", "gumbel", "ot-relaxed", "ot-exact-k" or "softmax".
        budget: how much may be selected: a share of each text's words ("20%" or a float up to 1) or a count of words
            (int); by default 20%. For pairs a share of the shorter text, by default 50%, or a count of aligned pairs;
            it matters to "budget" and "ot-exact-k" only.
        constraints: what else a selection has to keep to, see `rationalizer.constraints`: a list such as
            `[Spans(2), Never(stopwords=True)]`, or `["spans=2", "never=stopwords"]`.
        settings: any other setting of training, of the method or of the encoder (see `learn.Config`, the method's
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
        self._given = {"method": method, "budget": budget, "constraints": constraints, **settings}
        self._config = configured(self._given)
        self._trained: TrainedModel | None = None
        self._record: RunRecord | None = None

    def fit(
        self,
        texts: Iterable[Any] | Corpus,
        labels: Iterable[Any] | None = None,
        *,
        budget: Budget | float | str | None = None,
        annotations: Iterable[Any] | None = None,
        dev: tuple[Iterable[Any], Iterable[Any]] | None = None,
        task: Task | None = None,
        run_dir: str | Path | None = None,
        resume: bool = False,
        progress: bool | None = None,
        device: str = "auto",
        **trainer: Any,
    ) -> Rationalizer:
        """Trains on texts, or pairs of texts, and their labels: lists, arrays or pandas columns; or on a corpus.

        Args:
            texts: strings, or lists of tokens; or tuples (premise, hypothesis) of two such texts, or a table
                with two columns. A table has its texts in the column `text`, or in its only one. Or a corpus with its
                labels and splits, as `data.load("large.parquet")` gives it, whose texts may be more than fit in memory.
            labels: names or integers are classes, floats are values.
            budget: how much may be selected, from now on; as in `Rationalizer(budget=...)`.
            annotations: human annotations, a token mask or character spans per text, or for pairs the aligned
                words as (i, j) each; they are learned from if `annotation_weight` is above 0.
            dev: (texts, labels) to stop by; without it a tenth of the texts is held out.
            task: "classification" or "regression", where the labels leave it open.
            run_dir: where to keep the model, its scores, checkpoints and logs: a folder as of `rationalizer train`.
            resume: go on with the run in `run_dir`.
            progress: show a progress bar; by default on a terminal and in notebooks.
            device: "cpu", "cuda", "cuda:1", "mps"; or "auto", a GPU if there is one.
            trainer: `devices` (how many, each with its part of every batch), `num_nodes`, `precision`, `strategy` of
                Lightning's Trainer; and `threads` on a CPU, by default as many as help.
        """
        given = self._given if budget is None else {**self._given, "budget": budget}
        label_type: LabelType = "str"
        if isinstance(texts, Corpus):
            _refuse_beside_a_corpus(labels=labels, annotations=annotations, dev=dev, task=task)
            corpus = texts
            config = configured(given, pairs=corpus.pairs)
            if config.word_splitting not in (None, corpus.rule):
                raise ValueError(
                    f"the corpus was split into words by {corpus.rule!r}, not by {config.word_splitting!r}; "
                    f"load it with rule={config.word_splitting!r}"
                )
        else:
            if labels is None:
                raise ValueError("fit needs labels: fit(texts, labels), or fit(corpus) with a corpus of data.load")
            texts = list(texts) if isinstance(texts, Iterator) else texts
            labels = list(labels) if isinstance(labels, Iterator) else labels
            config = configured(given, pairs=are_pairs(texts, expected=configured(given).pairs))
            corpus = _corpus(config, texts, labels, annotations, dev, task)
            if corpus.classes:
                label_type = _label_type(list(labels))
        trainer = {**accelerator_settings(device, trainer.get("devices", 1)), **trainer}
        done = run(corpus, config, run_dir, resume=resume, progress=progress, label_type=label_type, **trainer)
        # Together, at the end: a training that fails changes nothing.
        self._given, self._config, self._trained = given, config, done.trained
        self._record = None if run_dir is None else read_run_record(Path(run_dir))
        return self

    def predict(self, texts: Iterable[Any], *, constraints: Asked = None) -> NDArray[Any]:
        """The labels of the texts (or pairs), of the type they had in `fit`: an array, for a table a column of it;
        `constraints` if not the model's."""
        outputs = self._outputs(texts, constraints)
        labels = outputs if self.classes is None else np.array(self.classes)[outputs.argmax(-1)]
        if not is_table(texts):
            return labels
        return type(texts[next(iter(texts.columns))])(labels, index=texts.index, name="predicted")  # type: ignore

    def predict_proba(self, texts: Iterable[Any], *, constraints: Asked = None) -> NDArray[np.float32]:
        """(texts, classes) probabilities, in the order of `classes`; `constraints` if not the model's."""
        if self.classes is None:
            raise ValueError("a regression has no probabilities; use predict")
        return self._outputs(texts, constraints)

    def _outputs(self, texts: Iterable[Any], constraints: Asked) -> NDArray[np.float32]:
        examples = self._examples(texts)
        strange = sum(not self._is_readable(example) for example in examples)
        if strange:
            warnings.warn(
                f"the model knows none of the words of {strange} of {len(examples)} texts; what it says of them is a "
                "guess (explain shows which words are unknown)",
                stacklevel=3,
            )
        found = self._predicted("Predicting", examples, constraints=constraints)
        self._warn_of_empty(examples, found.weights, constraints)
        return found.outputs

    def _warn_of_empty(self, examples: Sequence[AnyExample], weights: Sequence[Any], constraints: Asked) -> None:
        """Under constraints: whether nothing is left to read of some texts."""
        config = (
            self._config if constraints is None else replace(self._config, constraints=parse_constraints(constraints))
        )
        empty = [i for i, each in enumerate(weights) if not np.any(each)] if config.constraints else []
        if empty:
            warn_about_empty_rationales(empty, examples, config)

    def _explained(self, examples: Sequence[AnyExample], constraints: Asked) -> list[AnyExplanation]:
        found = self.explain_examples(examples, constraints=constraints)
        read = [one.alignment if isinstance(one, PairExplanation) else one.weights for one in found]
        self._warn_of_empty(examples, read, constraints)
        return found

    def _is_readable(self, example: AnyExample) -> bool:
        return all((self.trained.encoder.kinds(text.tokens) == KNOWN).any() for text in example.texts)

    @overload
    def explain(self, texts: str, *, constraints: Asked = ...) -> Explanation: ...
    @overload
    def explain(self, texts: str, hypothesis: str, *, constraints: Asked = ...) -> PairExplanation: ...
    @overload
    def explain(
        self,
        texts: Iterable[Any],
        *,
        annotations: Iterable[Any] | None = ...,
        constraints: Asked = ...,
        batch_size: int = ...,
    ) -> Any: ...
    def explain(
        self,
        texts: Any,
        hypothesis: str | None = None,
        *,
        annotations: Iterable[Any] | None = None,
        constraints: Asked = None,
        batch_size: int = BATCH,
    ) -> Any:
        """Predictions with what they were made from: of one text, of a premise and its hypothesis, or of many.

        What is explained of a list is a list that notebooks draw.

        Args:
            texts: a text; a premise; or many: a list gives a list, an iterator an iterator (which reads as it goes), a
                table the same table with the columns `predicted`, `probability`, `rationale` and `spans` (for pairs
                `alignment` and `words`) added. A row of a table that has no text is kept, with nothing added.
            hypothesis: the second text, if the first argument is a premise.
            annotations: of a list, the human annotations (for pairs: alignments), to be shown beside the model's.
            constraints: in place of the model's own; [] for none. The model chooses anew, without training.
            batch_size: how many texts are taken from an iterator before they are explained together; 1 answers each
                at once.
        """
        if annotations is not None and (isinstance(texts, str) or hypothesis is not None):
            raise ValueError("annotations go with a list; call explain([text], annotations=[rationale])")
        if self.pairs:
            if hypothesis is not None:
                return self._explained(self._examples([(texts, hypothesis)]), constraints)[0]
            if isinstance(texts, str):
                raise ValueError("this model reads pairs of texts; call explain(premise, hypothesis)")
        elif hypothesis is not None:
            raise ValueError("this model reads single texts; call explain(text), or explain([text, text])")
        if isinstance(texts, str):
            return self._explained(self._examples([texts]), constraints)[0]
        if annotations is None and isinstance(texts, Iterator):
            return self._explain_as_they_come(texts, batch_size, constraints)
        if annotations is None and is_table(texts):
            return self._explain_table(texts, constraints)
        return self._explained(self._examples(texts, annotations), constraints)

    def _explain_as_they_come(
        self, texts: Iterator[Any], batch_size: int, constraints: Asked
    ) -> Iterator[AnyExplanation]:
        before = 0
        while batch := list(islice(texts, batch_size)):
            try:
                yield from self.explain_examples(self._examples(batch), constraints=constraints)
            except ConstraintConflict as error:
                raise error.after(before) from None
            before += len(batch)

    def _explain_table(self, table: Any, constraints: Asked) -> Any:
        """A copy of the table with columns added."""
        texts = texts_of(table, pairs=self.pairs, model_columns=self._columns)
        there = [k for k, row in enumerate(texts) if all(map(_is_there, row if self.pairs else (row,)))]
        try:
            found = self.explain_examples(self._examples([texts[k] for k in there]), constraints=constraints)
        except ConstraintConflict as error:
            raise error if error.position is None else error.at(f"row {there[error.position] + 1}") from None
        explained = dict(zip(there, found, strict=True))
        rows = [result_values(explained.get(k)) for k in range(len(texts))]
        added = result_columns(table.columns, pairs=self.pairs)
        return table.assign(**{name: [row[k] for row in rows] for k, name in enumerate(added)})

    @property
    def _columns(self) -> Mapping[str, str]:
        """What the columns were called that it was trained on."""
        return self.trained.description.columns

    def explain_examples(
        self,
        examples: Sequence[AnyExample],
        *,
        budget: Budget | float | str | None = None,
        constraints: Asked = None,
        batch_size: int = BATCH,
        predictions: Predictions | None = None,
    ) -> Explanations:
        """As `explain`, of examples that are already tokenized; `budget` and `constraints` if not the model's;
        `predictions` if `learn.predict` has been asked for them before."""
        how: dict[str, Any] = {"budget": budget, "constraints": constraints, "batch_size": batch_size}
        found = predictions or self._predicted("Explaining", examples, **how)
        rows = zip(examples, found.outputs, found.weights, strict=True)
        return Explanations(self._explanation(example, output, weights) for example, output, weights in rows)

    def explain_rows(self, rows: Sequence[InputRow], *, batch_size: int = BATCH) -> list[AnyExplanation | None]:
        """As `explain`, of rows of a file (see `data.iter_rows`): None for those that have nothing to explain."""
        there = [given for given in rows if given.example is not None]
        examples = [replace(given.example, label=None) for given in there if given.example is not None]
        try:
            explained = iter(self.explain_examples(examples, batch_size=batch_size))
        except ConstraintConflict as error:
            place = "" if error.position is None else there[error.position].place
            raise error.at(place) if place else error from None
        return [None if given.example is None else next(explained) for given in rows]

    def _predicted(self, title: str, examples: Sequence[AnyExample], **how: Any) -> Predictions:
        with show_notebook_progress(title, len(examples)) as done:
            return predict(self.trained, examples, on_batch=done, **how)

    def label_of(self, example: AnyExample) -> Label | None:
        """The true label of an example, in the user's own terms; None where it has none."""
        if example.label is None:
            return None
        return float(example.label) if self.classes is None else self.classes[int(example.label)]

    def _explanation(
        self, example: AnyExample, output: NDArray[np.float32], weights: NDArray[np.float32]
    ) -> AnyExplanation:
        classes = self.classes
        label = float(output) if classes is None else classes[int(output.argmax())]
        probabilities = dict(zip(classes, output.tolist(), strict=True)) if classes else None
        if isinstance(example, PairExample):
            return PairExplanation(
                premise=example.premise.text,
                hypothesis=example.hypothesis.text,
                label=label,
                probabilities=probabilities,
                premise_tokens=example.premise.tokens,
                premise_offsets=example.premise.offsets,
                hypothesis_tokens=example.hypothesis.tokens,
                hypothesis_offsets=example.hypothesis.offsets,
                alignment=weights,
                pairs=tuple((int(i), int(j)) for i, j in np.argwhere(weights)),
                faithful=self._config.faithful,
                annotation=example.alignment,
                premise_unknown=self._unknown(example.premise),
                hypothesis_unknown=self._unknown(example.hypothesis),
            )
        selected = weights != 0
        return Explanation(
            text=example.text,
            label=label,
            probabilities=probabilities,
            tokens=example.tokens,
            offsets=example.offsets,
            weights=tuple(weights.tolist()),
            selected=tuple(selected.tolist()),
            spans=_character_spans(selected, example.offsets),
            annotation=example.annotation,
            unknown=self._unknown(example),
            counted=tuple(self.trained.encoder.counted(example.tokens).tolist()),
        )

    def _unknown(self, text: Example) -> tuple[bool, ...]:
        return tuple((self.trained.encoder.kinds(text.tokens) == UNKNOWN).tolist())

    @property
    def trained(self) -> TrainedModel:
        """The trained model, for the functions of `learn`."""
        if self._trained is None:
            raise RuntimeError(
                "this Rationalizer is not trained yet; call fit(texts, labels), or use Rationalizer.load(directory)"
            )
        return self._trained

    @property
    def config(self) -> Config:
        return self._config

    @property
    def pairs(self) -> bool:
        """Whether it reads pairs of texts; before `fit`, whether its method is one for pairs."""
        return self._config.pairs

    @property
    def classes(self) -> tuple[Label, ...] | None:
        """The labels that can be predicted; None for regression."""
        description = self.trained.description
        if description.task == "regression":
            return None
        return tuple(_as_label(name, description.label_type) for name in description.classes)

    @property
    def budget(self) -> Budget:
        """How much may be selected. A trained model follows a new budget at once, without training."""
        return self._config.budget

    @budget.setter
    def budget(self, budget: Budget | float | str) -> None:
        budget = Budget.parse(budget)
        if self._trained is not None:
            self._trained = self._trained.with_budget(budget)
        self._given = {**self._given, "budget": budget}
        self._config = replace(self._config, budget=budget)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What selections keep to, beside the budget. A trained model follows new ones at once, without training."""
        return self._config.constraints

    @constraints.setter
    def constraints(self, constraints: Iterable[Constraint | str]) -> None:
        config = with_constraints(self._config, parse_constraints(constraints))
        if self._trained is not None:
            self._trained = self._trained.with_constraints(config.constraints)
        self._given = {**self._given, "constraints": config.constraints}
        self._config = config

    def __repr__(self) -> str:
        state = "trained" if self._trained is not None else "not trained"
        limits = f", constraints={list(map(str, self.constraints))}" if self.constraints else ""
        return f"Rationalizer(method={self._config.method!r}, budget='{self.budget}'{limits}), {state}"

    def _examples(self, texts: Iterable[Any], annotations: Iterable[Any] | None = None) -> Sequence[AnyExample]:
        if is_table(texts):
            texts = texts_of(texts, pairs=self.pairs, model_columns=self._columns)
        return make_examples(texts, marks=annotations, pairs=self.pairs, rule=self.trained.encoder.rule)


def _refuse_beside_a_corpus(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"a corpus has its own {name}; leave {name} out, or give texts and labels")


def _corpus(
    config: Config,
    texts: Iterable[Any],
    labels: Iterable[Any],
    annotations: Iterable[Any] | None,
    dev: tuple[Iterable[Any], Iterable[Any]] | None,
    task: Task | None,
) -> Corpus:
    known: dict[str, Any] = {
        "pairs": config.pairs,
        "seed": config.seed,
        "budget": config.budget,
        "rule": config.word_splitting,
    }
    names = names_of(texts, labels, pairs=config.pairs)
    corpus = make_corpus(texts, labels, annotations, task=task, dev=None if dev is None else (), **known)
    corpus = replace(corpus, columns=names)
    if dev is None:
        return corpus
    dev_texts, dev_labels = dev
    classes, task = corpus.classes or None, corpus.task
    held_out = make_examples(dev_texts, dev_labels, None, classes, pairs=config.pairs, task=task, rule=corpus.rule)
    return replace(corpus, dev=held_out)


def _is_there(text: Any) -> bool:
    """Whether a cell holds a text: not None, not pandas' NaN, not blanks only."""
    return (
        bool(text.strip()) if isinstance(text, str) else text is not None and not (np.ndim(text) == 0 and text != text)
    )


def _character_spans(selected: NDArray[np.bool_], offsets: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Where runs of selected tokens stand in the text."""
    edges = np.flatnonzero(np.diff(selected, prepend=False, append=False)).tolist()
    return tuple((offsets[first][0], offsets[end - 1][1]) for first, end in zip(edges[::2], edges[1::2], strict=True))


_PYTHON: dict[type, LabelType] = {bool: "bool", int: "int", float: "float"}


def _label_type(labels: Sequence[Any]) -> LabelType:
    """What the labels are as Python values; names where they are of several kinds."""
    kinds = {type(label.item() if isinstance(label, np.generic) else label) for label in labels}
    return _PYTHON.get(kinds.pop(), "str") if len(kinds) == 1 else "str"


def _as_label(name: str, kind: LabelType) -> Label:
    if kind == "bool":
        return name == "true"
    return {"int": int, "float": float, "str": str}[kind](name)
