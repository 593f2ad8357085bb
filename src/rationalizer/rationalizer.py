"""The user's object: a classifier (or regressor) of texts, or of pairs of texts, that shows the words it used."""

from __future__ import annotations

import tempfile
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
from rationalizer.learn.inference import predict
from rationalizer.learn.runs import SCORES, Record, record_of, run
from rationalizer.learn.storage import write_record
from rationalizer.learn.trained import LabelType, TrainedModel
from rationalizer.render import AnyExplanation, Explanation, Label, PairExplanation
from rationalizer.sharing import hub, locate, write_card
from rationalizer.text import AnyExample, Budget, Example, PairExample, is_punctuation

# What a card shows without a wish: sentences of nobody's data.
TEXT = "The room was spotless but the staff was rude."
PAIR = ("A man plays a guitar on the street.", "A musician performs outside.")


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
        self._record: Record | None = None

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
            progress: show a progress bar; by default on a terminal.
            trainer: `accelerator`, `devices`, `precision`, `strategy` of Lightning's Trainer.
        """
        texts = list(texts) if isinstance(texts, Iterator) else texts
        labels = list(labels)
        pairs = are_pairs(texts, expected=configure(self._method, self._settings).pairs)
        config = configure(self._method, self._settings, pairs=pairs)
        corpus = _corpus(config, texts, labels, rationales, dev, task)
        label_type = _label_type(labels) if corpus.classes else "str"
        done = run(corpus, config, run_dir, resume=resume, progress=progress, label_type=label_type, **trainer)
        # Together, at the end: a training that fails changes nothing.
        self._config, self._trained = config, done.trained
        self._record = None if run_dir is None else record_of(Path(run_dir))
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
        return predict(self.trained, examples).outputs

    def _is_readable(self, example: AnyExample) -> bool:
        knows = self.trained.reader.knows
        return all(any(knows(token) for token in text.tokens if not is_punctuation(token)) for text in example.texts)

    @overload
    def explain(self, texts: str) -> Explanation: ...
    @overload
    def explain(self, texts: str, hypothesis: str) -> PairExplanation: ...
    @overload
    def explain(self, texts: Iterable[Any], *, rationales: Iterable[Any] | None = ...) -> list[Any]: ...
    def explain(
        self, texts: Any, hypothesis: str | None = None, *, rationales: Iterable[Any] | None = None
    ) -> AnyExplanation | list[Any]:
        """Predictions with what they were made from: of one text, of a premise and its hypothesis, or of a list.

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
        self, examples: Sequence[AnyExample], *, budget: Budget | float | str | None = None
    ) -> list[AnyExplanation]:
        """As `explain`, of examples that are already tokenized; `budget` if not the model's."""
        found = predict(self.trained, examples, budget=budget)
        rows = zip(examples, found.outputs, found.weights, strict=True)
        return [self._explanation(example, output, weights) for example, output, weights in rows]

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

    def save(self, directory: str | Path, *, example: Any = None, compact: bool = False) -> None:
        """Writes the model and its card, `README.md`: data, scores, budget, limits, an example.

        Args:
            directory: where to; made if need be.
            example: a text, or a (premise, hypothesis) tuple, to be drawn on the card. By default a sentence that is
                in nobody's data, if the model knows its words.
            compact: in less space: weights are rounded to 16 and 8 bits, and the package's word vectors not copied.
        """
        self._save(Path(directory), None, example, compact)

    def push_to_hub(
        self,
        name: str,
        *,
        private: bool = False,
        revision: str | None = None,
        token: str | None = None,
        example: Any = None,
        compact: bool = False,
    ) -> str:
        """Saves the model to the Hugging Face Hub (extra `hub`), where `Rationalizer.load(name)` finds it.

        Args:
            name: "org/name"; the repository is made if there is none.
            private: whether one that is made is seen by its owners only.
            revision: the branch to send to, if not the main one.
            token: of the Hub, if not the one of `hf auth login` or HF_TOKEN.
            example, compact: see `save`.

        Returns:
            The address of what was sent.
        """
        with tempfile.TemporaryDirectory() as folder:
            self._save(Path(folder), name, example, compact)
            return hub.push(Path(folder), name, private=private, revision=revision, token=token)

    def _save(self, folder: Path, name: str | None, example: Any, compact: bool) -> None:
        self.trained.save(folder, compact=compact)
        if self._record is not None:
            record = self._record
            if name is not None:  # it travels: without the place of the data, a path of this machine
                record = {**record, "data": {**record["data"], "source": None}}
            write_record(folder / SCORES, record)
        drawn = self._example(example)
        write_card(folder, self.trained, name=name, record=self._record, example=drawn)

    def _example(self, given: Any) -> AnyExplanation | None:
        if given is not None:
            return self.explain([given])[0]
        (usual,) = self._examples([PAIR if self.pairs else TEXT])
        words = [word for text in usual.texts for word in text.tokens if not is_punctuation(word)]
        return self.explain_examples([usual])[0] if all(map(self.trained.reader.knows, words)) else None

    @classmethod
    def load(cls, model: str | Path, device: str = "cpu", *, revision: str | None = None) -> Rationalizer:
        """A model that was saved or trained, one that comes with the package, or one of the Hugging Face Hub.

        Args:
            model: a folder; "sentiment" or "nli"; or "org/name" (extra `hub`).
            device: "cpu", "cuda" and so on.
            revision: of a model of the Hub: a branch, tag or commit; also as "org/name@revision".
        """
        folder = locate(model, revision)
        loaded = cls.of(TrainedModel.load(folder, device))
        loaded._record = record_of(folder)
        return loaded

    @classmethod
    def of(cls, trained: TrainedModel) -> Rationalizer:
        model = cls.__new__(cls)
        model._method = trained.config.method
        model._settings = flat(trained.config.to_json())
        model._config = trained.config
        model._trained = trained
        model._record = None
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
