"""The user's object: a classifier (or regressor) of texts that shows the words it used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from rationalizer.data import Corpus, Example, corpus_from, examples_from
from rationalizer.data.corpus import Task
from rationalizer.learn.config import Config, configure
from rationalizer.learn.inference import predict
from rationalizer.learn.trained import LabelType, TrainedModel
from rationalizer.nn import check_budget
from rationalizer.render import Explanation, Label


class Rationalizer:
    """Learns to label texts from the words it shows.

    >>> model = Rationalizer(method="spectra", budget=0.2).fit(texts, labels)
    >>> model.predict(["A warm, funny film."])
    >>> model.explain("A warm, funny film.").spans

    Args:
        method: "spectra", "pair-budget", "sfe", "sfe-baseline", "gumbel", "hardkuma", "sparsemax", "fusedmax"
            or "full-text".
        budget: how much may be selected: a share of each text (a float up to 1) or a count of tokens (int).
        settings: any other setting of training or of the method (see `learn.Config` and the method's class),
            such as `seed=1`, `embeddings="glove-6b-50d"`, `epochs=10` or `temperature=0.5`.
    """

    def __init__(self, method: str = "spectra", budget: float | int = 0.2, **settings: Any) -> None:
        self._config = configure(method, {"budget": check_budget(budget), **settings})
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
        """Trains on texts and their labels: lists, arrays or pandas columns.

        Args:
            texts: strings, or lists of tokens.
            labels: names or integers are classes, floats are values.
            rationales: human rationales, a token mask or character spans per text; they are not learned from.
            dev: (texts, labels) to stop by; without it a tenth of the texts is held out.
            task: "classification" or "regression", where the labels leave it open.
            run_dir: where to keep checkpoints, logs and the model.
            resume: go on with the run in `run_dir`.
            progress: show a progress bar; by default on a terminal.
            trainer: `accelerator`, `devices`, `precision`, `strategy` of Lightning's Trainer.
        """
        from rationalizer.learn.training import train

        labels = list(labels)
        corpus = self._corpus(texts, labels, rationales, dev, task)
        self._trained = train(
            corpus,
            self._config,
            run_dir,
            resume=resume,
            progress=progress,
            label_type=_label_type(labels) if corpus.classes else "str",
            **trainer,
        )
        return self

    def predict(self, texts: Iterable[Any]) -> NDArray[Any]:
        """The labels of the texts, of the type they had in `fit`."""
        outputs = predict(self.trained, examples_from(texts)).outputs
        return outputs if self.classes is None else np.array(self.classes)[outputs.argmax(-1)]

    def predict_proba(self, texts: Iterable[Any]) -> NDArray[np.float32]:
        """(texts, classes) probabilities, in the order of `classes`."""
        if self.classes is None:
            raise ValueError("a regression has no probabilities; use predict")
        return predict(self.trained, examples_from(texts)).outputs

    @overload
    def explain(self, texts: str) -> Explanation: ...
    @overload
    def explain(self, texts: Iterable[Any], rationales: Iterable[Any] | None = ...) -> list[Explanation]: ...
    def explain(
        self, texts: str | Iterable[Any], rationales: Iterable[Any] | None = None
    ) -> Explanation | list[Explanation]:
        """Predictions with the words they were made from: of one text, or of a list of texts."""
        if isinstance(texts, str):
            return self.explain_examples(examples_from([texts]))[0]
        return self.explain_examples(examples_from(texts, rationales=rationales))

    def explain_examples(self, examples: Sequence[Example]) -> list[Explanation]:
        """As `explain`, of examples that are already tokenized."""
        found = predict(self.trained, examples)
        classes = self.classes
        explanations = []
        for example, output, weights in zip(examples, found.outputs, found.weights, strict=True):
            selected = tuple((weights != 0).tolist())
            explanations.append(
                Explanation(
                    text=example.text,
                    label=float(output) if classes is None else classes[int(output.argmax())],
                    probabilities=dict(zip(classes, output.tolist(), strict=True)) if classes else None,
                    tokens=example.tokens,
                    offsets=example.offsets,
                    weights=tuple(weights.tolist()),
                    selected=selected,
                    spans=_character_spans(selected, example.offsets),
                    rationale=example.rationale,
                )
            )
        return explanations

    def save(self, directory: str | Path) -> None:
        self.trained.save(directory)

    @classmethod
    def load(cls, directory: str | Path, device: str = "cpu") -> Rationalizer:
        """A model that was saved, or the result of a training run."""
        return cls.of(TrainedModel.load(directory, device))

    @classmethod
    def of(cls, trained: TrainedModel) -> Rationalizer:
        model = cls.__new__(cls)
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
    def classes(self) -> tuple[Label, ...] | None:
        """The labels that can be predicted; None for regression."""
        description = self.trained.description
        if description.task == "regression":
            return None
        return tuple(_as_label(name, description.label_type) for name in description.classes)

    @property
    def budget(self) -> float | int:
        """How much may be selected. A trained model follows a new budget at once, without training."""
        return self._config.budget

    @budget.setter
    def budget(self, budget: float | int) -> None:
        if self._trained is not None:
            self._trained = self._trained.with_budget(budget)
        self._config = replace(self._config, budget=check_budget(budget))

    def __repr__(self) -> str:
        state = "trained" if self._trained is not None else "not trained"
        return f"Rationalizer(method={self._config.method!r}, budget={self.budget!r}), {state}"

    def _corpus(
        self,
        texts: Iterable[Any],
        labels: list[Any],
        rationales: Iterable[Any] | None,
        dev: tuple[Iterable[Any], Iterable[Any]] | None,
        task: Task | None,
    ) -> Corpus:
        seed, budget = self._config.seed, self._config.budget
        if dev is None:
            return corpus_from(texts, labels, rationales, task=task, seed=seed, budget=budget)
        corpus = corpus_from(texts, labels, rationales, task=task, dev=(), seed=seed, budget=budget)
        dev_texts, dev_labels = dev
        return replace(corpus, dev=examples_from(dev_texts, dev_labels, None, corpus.classes or None, task=corpus.task))


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
