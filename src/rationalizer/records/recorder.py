"""Make the records of a model's decisions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rationalizer.constraints import Constraint
from rationalizer.inference.predict import OnBatch, Predictions, with_settings
from rationalizer.models.trained_model import TrainedModel
from rationalizer.records.canonical_prediction import predict_canonically
from rationalizer.records.decision_record import (
    FORMAT,
    DecisionRecord,
    RecordedLink,
    RecordedText,
    RecordedWord,
    text_hash,
)
from rationalizer.records.machine_facts import machine_facts, package_versions
from rationalizer.records.model_hash import model_hash
from rationalizer.text import AnyExample, Budget, Example
from rationalizer.text.errors import InputError

RecordArgument = bool | Literal["with-text"]  # of `explain`


class Recorder:
    """Predicts in the way that can be repeated bit for bit, and records the decisions.

    The hash of the model is computed once: make a new recorder after a change of its weights.

    Args:
        trained: the model.
        with_text: whether records contain the texts themselves, besides their hashes and the selected words.
    """

    def __init__(self, trained: TrainedModel, *, with_text: bool = False) -> None:
        trained.require_single("a decision record")
        self.trained, self.with_text = trained, with_text

    @classmethod
    def for_argument(cls, trained: TrainedModel, record: RecordArgument) -> Recorder | None:
        """Return the recorder that the argument `record` of `explain` asks for; None for False."""
        if record not in (False, True, "with-text"):
            raise InputError(f"record is True, False or 'with-text', got {record!r}")
        return cls(trained, with_text=record == "with-text") if record else None

    @cached_property
    def hash(self) -> str:
        """The hash of the model."""
        return model_hash(self.trained)

    def predict(
        self,
        examples: Sequence[AnyExample],
        *,
        budget: Budget | float | str | None = None,
        constraints: Any = None,
        on_batch: OnBatch | None = None,
    ) -> tuple[Predictions, list[DecisionRecord]]:
        """Predict, with other settings than the model's where they are not None, and record each decision."""
        trained = with_settings(self.trained, budget, constraints)
        written = tuple(map(write_constraint, trained.config.constraints))  # raises before the work is done
        predictions = predict_canonically(trained, examples, on_batch=on_batch)
        rows = zip(examples, predictions.outputs, predictions.weights, strict=True)
        versions, machine = package_versions(trained), machine_facts(trained)
        shared: dict[str, Any] = {"constraints": written, "versions": versions, "machine": machine}
        return predictions, [self._record(trained, *row, **shared) for row in rows]

    def _record(
        self,
        trained: TrainedModel,
        example: AnyExample,
        output: NDArray[np.float32],
        weights: NDArray[np.float32],
        **shared: Any,
    ) -> DecisionRecord:
        if not (np.isfinite(output).all() and np.isfinite(weights).all()):
            raise InputError("the prediction is not a finite number, which a record cannot hold", "train again")
        config, encoder = trained.config, trained.encoder
        classes = trained.classes
        follows = trained.model.method.follows_budget
        counted = [encoder.word_masks([text.tokens])[1] for text in example.texts]
        probabilities = dict(zip(classes, output.tolist(), strict=True)) if classes else None
        return DecisionRecord(
            format=FORMAT,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            model=self.hash,
            texts=tuple(self._text(text, int(words.sum())) for text, words in zip(example.texts, counted, strict=True)),
            word_splitting=encoder.rule,
            budget=str(config.budget) if follows else None,
            budget_words=int(config.budget.word_limit(*counted)) if follows else None,
            rationale=None if trained.pairs else tuple(_words(example.texts[0], weights)),
            alignment=tuple(_links(example.texts, weights)) if trained.pairs else None,
            faithful=config.faithful or not trained.pairs,
            label=classes[int(output.argmax())] if classes else float(output),
            probabilities=probabilities,
            **shared,
        )

    def _text(self, text: Example, words: int) -> RecordedText:
        is_split_by_rule = self.trained.encoder.split_words(text.text)[1] == text.offsets
        return RecordedText(
            sha256=text_hash(text.text),
            characters=len(text.text),
            tokens=len(text.tokens),
            words=words,
            offsets=None if is_split_by_rule else text.offsets,
            sentence_lengths=text.sentence_lengths,
            text=text.text if self.with_text else None,
        )


def _words(text: Example, weights: NDArray[np.float32]) -> Iterator[RecordedWord]:
    for index in np.flatnonzero(weights).tolist():
        yield _word(text, index, float(weights[index]))


def _links(texts: Sequence[Example], weights: NDArray[np.float32]) -> Iterator[RecordedLink]:
    premise, hypothesis = texts
    for i, j in np.argwhere(weights).tolist():
        yield RecordedLink(_word(premise, i), _word(hypothesis, j), float(weights[i, j]))


def _word(text: Example, index: int, weight: float | None = None) -> RecordedWord:
    start, end = text.offsets[index]
    return RecordedWord(index, start, end, text.tokens[index], weight)


def write_constraint(constraint: Constraint) -> str | dict[str, Any]:
    """Return the text form of a constraint if it can be read again, otherwise its JSON form.

    Raises:
        InputError: if neither form gives the same constraint again.
    """
    forms: list[Any] = [str(constraint), constraint.to_json()]
    for form in forms:
        if _gives_again(form, constraint):
            return form
    raise InputError(
        f"the constraint {constraint!r} cannot be written into a decision record",
        "its settings must be numbers, texts or lists of them, and its class must be registered; or omit record",
    )


def _gives_again(form: str | dict[str, Any], constraint: Constraint) -> bool:
    try:
        return Constraint.parse(json.loads(json.dumps(form))) == constraint
    except (ValueError, TypeError):
        return False
