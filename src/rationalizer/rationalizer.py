"""The user's object: a classifier (or regressor) of texts, or of pairs of texts, that shows the words it used."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from rationalizer.data import Corpus, any_examples_from, are_pairs, corpus_from
from rationalizer.data.corpus import Task
from rationalizer.learn.config import Config, configure, flat
from rationalizer.learn.inference import Predictions, predict
from rationalizer.learn.runs import run
from rationalizer.learn.trained import LabelType, TrainedModel
from rationalizer.learn.watching import notebook_bar
from rationalizer.render import AnyExplanation, Explanation, Explanations, Label, PairExplanation
from rationalizer.text import AnyExample, Budget, Example, PairExample, is_punctuation


class Rationalizer:
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
        settings: any other setting of training, of the method or of the reader (see `learn.Config`, the method's
            class and `nn.VectorReader`), such as `seed=1`, `embeddings="vectors.txt"`, `epochs=10`,
            `temperature=0.5`, `punctuation="count"` or `faithful=False`.
    """

    def __init__(self, method: str | None = None, budget: Budget | float | str | None = None, **settings: Any) -> None:
        self._method = method
        self._settings = {**settings, **({} if budget is None else {"budget": Budget.of(budget)})}
        self._config = configure(method, self._settings)
        self._trained: TrainedModel | None = None

    def fit(
        self,
        texts: Iterable[Any],
        labels: Iterable[Any],
        *,
        rationales: Iterable[Any] | None = None,
        dev: tuple[Iterable[Any], Iterable[Any]] | None = None,
        task: Task | None = None,
        run_dir: str | Path | None = None,
        resume: bool = False,
        progress: bool | None = None,
        **trainer: Any,
    ) -> Rationalizer:
        """Trains on texts, or pairs of texts, and their labels: lists, arrays or pandas columns.

        Args:
            texts: strings, or lists of tokens; or tuples (premise, hypothesis) of two such texts, or a table
                with two columns.
            labels: names or integers are classes, floats are values.
            rationales: human rationales, a token mask or character spans per text, or for pairs the aligned
                words as (i, j) each; they are not learned from.
            dev: (texts, labels) to stop by; without it a tenth of the texts is held out.
            task: "classification" or "regression", where the labels leave it open.
            run_dir: where to keep the model, its scores, checkpoints and logs: a folder as of `rationalizer train`.
            resume: go on with the run in `run_dir`.
            progress: show a progress bar; by default on a terminal and in notebooks.
            trainer: `accelerator`, `devices`, `precision`, `strategy` of Lightning's Trainer.
        """
        texts = list(texts) if isinstance(texts, Iterator) else texts
        labels = list(labels)
        pairs = are_pairs(texts, expected=configure(self._method, self._settings).pairs)
        config = configure(self._method, self._settings, pairs=pairs)
        corpus = _corpus(config, texts, labels, rationales, dev, task)
        label_type = _label_type(labels) if corpus.classes else "str"
        done = run(corpus, config, run_dir, resume=resume, progress=progress, label_type=label_type, **trainer)
        self._config, self._trained = (
            config,
            done.trained,
        )  # together, at the end: a training that fails changes nothing
        return self

    def predict(self, texts: Iterable[Any]) -> NDArray[Any]:
        """The labels of the texts (or pairs), of the type they had in `fit`."""
        outputs = self._outputs(texts)
        return outputs if self.classes is None else np.array(self.classes)[outputs.argmax(-1)]

    def predict_proba(self, texts: Iterable[Any]) -> NDArray[np.float32]:
        """(texts, classes) probabilities, in the order of `classes`."""
        if self.classes is None:
            raise ValueError("a regression has no probabilities; use predict")
        return self._outputs(texts)

    def _outputs(self, texts: Iterable[Any]) -> NDArray[np.float32]:
        examples = self._examples(texts)
        strange = sum(not self._is_readable(example) for example in examples)
        if strange:
            warnings.warn(
                f"the model knows none of the words of {strange} of {len(examples)} texts; what it says of them is a "
                "guess (explain shows which words are unknown)",
                stacklevel=3,
            )
        return self._predicted("Predicting", examples).outputs

    def _is_readable(self, example: AnyExample) -> bool:
        knows = self.trained.reader.knows
        return all(any(knows(token) for token in text.tokens if not is_punctuation(token)) for text in example.texts)

    @overload
    def explain(self, texts: str) -> Explanation: ...
    @overload
    def explain(self, texts: str, hypothesis: str) -> PairExplanation: ...
    @overload
    def explain(self, texts: Iterable[Any], *, rationales: Iterable[Any] | None = ...) -> Explanations: ...
    def explain(
        self, texts: Any, hypothesis: str | None = None, *, rationales: Iterable[Any] | None = None
    ) -> AnyExplanation | Explanations:
        """Predictions with what they were made from: of one text, of a premise and its hypothesis, or of a list.

        What is explained of a list is a list that notebooks draw.

        Args:
            texts: a text; a premise; or a list of texts or of (premise, hypothesis) tuples.
            hypothesis: the second text, if the first argument is a premise.
            rationales: of a list, the human rationales (for pairs: alignments), to be shown beside the model's.
        """
        if rationales is not None and (isinstance(texts, str) or hypothesis is not None):
            raise ValueError("rationales go with a list; call explain([text], rationales=[rationale])")
        if self.pairs:
            if hypothesis is not None:
                return self.explain_examples(self._examples([(texts, hypothesis)]))[0]
            if isinstance(texts, str):
                raise ValueError("this model reads pairs of texts; call explain(premise, hypothesis)")
        elif hypothesis is not None:
            raise ValueError("this model reads single texts; call explain(text), or explain([text, text])")
        if isinstance(texts, str):
            return self.explain_examples(self._examples([texts]))[0]
        return self.explain_examples(self._examples(texts, rationales))

    def explain_examples(
        self,
        examples: Sequence[AnyExample],
        *,
        budget: Budget | float | str | None = None,
        predictions: Predictions | None = None,
    ) -> Explanations:
        """As `explain`, of examples that are already tokenized; `budget` if not the model's; `predictions` if
        `learn.predict` has been asked for them before."""
        found = predictions or self._predicted("Explaining", examples, budget)
        rows = zip(examples, found.outputs, found.weights, strict=True)
        return Explanations(self._explanation(example, output, weights) for example, output, weights in rows)

    def _predicted(
        self, title: str, examples: Sequence[AnyExample], budget: Budget | float | str | None = None
    ) -> Predictions:
        with notebook_bar(title, len(examples)) as done:
            return predict(self.trained, examples, budget=budget, done=done)

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
                gold=example.alignment,
                premise_unknown=self._unknown(example.premise),
                hypothesis_unknown=self._unknown(example.hypothesis),
            )
        selected = tuple((weights != 0).tolist())
        return Explanation(
            text=example.text,
            label=label,
            probabilities=probabilities,
            tokens=example.tokens,
            offsets=example.offsets,
            weights=tuple(weights.tolist()),
            selected=selected,
            spans=_character_spans(selected, example.offsets),
            rationale=example.rationale,
            unknown=self._unknown(example),
            counted=tuple(self.trained.reader.counted(example.tokens).tolist()),
        )

    def _unknown(self, text: Example) -> tuple[bool, ...]:
        knows = self.trained.reader.knows
        return tuple(not (is_punctuation(token) or knows(token)) for token in text.tokens)

    def save(self, directory: str | Path) -> None:
        self.trained.save(directory)

    @classmethod
    def load(cls, directory: str | Path, device: str = "cpu") -> Rationalizer:
        """A model that was saved, or the result of a training run."""
        return cls.of(TrainedModel.load(directory, device))

    @classmethod
    def of(cls, trained: TrainedModel) -> Rationalizer:
        model = cls.__new__(cls)
        model._method = trained.config.method
        model._settings = flat(trained.config.to_json())
        model._config = trained.config
        model._trained = trained
        return model

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
        budget = Budget.of(budget)
        if self._trained is not None:
            self._trained = self._trained.with_budget(budget)
        self._settings["budget"] = budget
        self._config = replace(self._config, budget=budget)

    def __repr__(self) -> str:
        state = "trained" if self._trained is not None else "not trained"
        return f"Rationalizer(method={self._config.method!r}, budget='{self.budget}'), {state}"

    def _examples(self, texts: Iterable[Any], rationales: Iterable[Any] | None = None) -> Sequence[AnyExample]:
        return any_examples_from(texts, marks=rationales, pairs=self.pairs, rule=self.trained.reader.rule)


def _corpus(
    config: Config,
    texts: Iterable[Any],
    labels: list[Any],
    rationales: Iterable[Any] | None,
    dev: tuple[Iterable[Any], Iterable[Any]] | None,
    task: Task | None,
) -> Corpus:
    known: dict[str, Any] = {"pairs": config.pairs, "seed": config.seed, "budget": config.budget, "rule": config.cut}
    if dev is None:
        return corpus_from(texts, labels, rationales, task=task, **known)
    corpus = corpus_from(texts, labels, rationales, task=task, dev=(), **known)
    dev_texts, dev_labels = dev
    classes, task = corpus.classes or None, corpus.task
    held_out = any_examples_from(dev_texts, dev_labels, None, classes, pairs=config.pairs, task=task, rule=corpus.rule)
    return replace(corpus, dev=held_out)


def _character_spans(selected: Sequence[bool], offsets: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    spans: list[tuple[int, int]] = []
    for k, (start, end) in enumerate(offsets):
        if not selected[k]:
            continue
        if k and selected[k - 1]:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return tuple(spans)


_PYTHON: dict[type, LabelType] = {bool: "bool", int: "int", float: "float"}


def _label_type(labels: Sequence[Any]) -> LabelType:
    """What the labels are as Python values; names where they are of several kinds."""
    kinds = {type(label.item() if isinstance(label, np.generic) else label) for label in labels}
    return _PYTHON.get(kinds.pop(), "str") if len(kinds) == 1 else "str"


def _as_label(name: str, kind: LabelType) -> Label:
    if kind == "bool":
        return name == "true"
    return {"int": int, "float": float, "str": str}[kind](name)
