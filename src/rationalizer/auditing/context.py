"""What the checks of an audit share: the texts, the model's rationales and predictions, an independent reader."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rationalizer.auditing.altered_texts import main_text, selected_words
from rationalizer.auditing.audited_model import AuditedModel, Weights
from rationalizer.auditing.independent_reader import IndependentReader
from rationalizer.text import AnyExample

Codes = NDArray[np.int64]


class AuditContext:
    """The audited model on the audited texts.

    Args:
        model: the model.
        examples: the texts, or pairs of texts; labels as class numbers (or values), where known.
        train: the texts that the model was trained on, if known.
        seed: of everything random.
    """

    def __init__(
        self,
        model: AuditedModel,
        examples: Sequence[AnyExample],
        train: Sequence[AnyExample] | None = None,
        seed: int = 0,
    ) -> None:
        self.model, self.examples, self.train, self.seed = model, list(examples), train, seed

    def random(self, purpose: str) -> np.random.Generator:
        """A generator for one purpose: the numbers of a check do not depend on which other checks run."""
        return np.random.default_rng([self.seed, zlib.crc32(purpose.encode())])

    def sample(self, purpose: str, size: int) -> list[int]:
        """The numbers of at most `size` random texts."""
        chosen = self.random(purpose).permutation(len(self.examples))[:size]
        return sorted(chosen.tolist())

    @cached_property
    def weights(self) -> list[Weights]:
        return self.model.select(self.examples)

    @cached_property
    def selected(self) -> list[NDArray[np.bool_]]:
        """Which words of the main text are selected."""
        return [selected_words(weights) for weights in self.weights]

    @cached_property
    def outputs(self) -> NDArray[np.float32]:
        return self.model.predict_from(self.examples, self.weights)

    @cached_property
    def second_run(self) -> tuple[list[Weights], NDArray[np.float32]]:
        """Rationales and predictions of the same texts once more; others if the model draws words at random."""
        weights = self.model.select(self.examples)
        return weights, self.model.predict_from(self.examples, weights)

    @cached_property
    def tokens(self) -> list[tuple[str, ...]]:
        return [main_text(example).tokens for example in self.examples]

    @property
    def has_dropped_words(self) -> bool:
        return any(not selected.all() for selected in self.selected)

    @cached_property
    def predicted(self) -> Codes:
        """The predicted classes; for a regression, whether a value is above the median."""
        return self.classes_of(self.outputs)

    def classes_of(self, outputs: NDArray[np.float32]) -> Codes:
        if outputs.ndim == 2:
            return outputs.argmax(-1).astype(np.int64)
        return (outputs > np.median(self.outputs)).astype(np.int64)

    def label_changes(self, outputs: NDArray[np.float32], numbers: Sequence[int]) -> NDArray[np.bool_]:
        """Whether each label differs from the original prediction; values: by over half a standard deviation."""
        before = self.outputs[list(numbers)]
        if outputs.ndim == 2:
            return outputs.argmax(-1) != before.argmax(-1)
        return np.abs(outputs - before) > self.outputs.std() / 2

    @cached_property
    def codes(self) -> Codes:
        """The labels that a code would carry: the predicted ones, numbered without gaps."""
        return np.unique(self.predicted, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def targets(self) -> Codes:
        """What an independent reader learns: the true classes, or the predicted ones if a label is missing."""
        labels = [example.label for example in self.examples]
        if any(label is None for label in labels):
            return self.predicted
        if self.outputs.ndim == 2:
            return np.array(labels, dtype=np.int64)
        return (np.array(labels, dtype=np.float64) > np.median(self.outputs)).astype(np.int64)

    @cached_property
    def reader(self) -> IndependentReader | None:
        """None for pairs, which a bag of words cannot judge, and if there is one class only."""
        if self.model.pairs or len(np.unique(self.targets)) < 2 or np.bincount(self.targets).max() < 5:
            return None
        train = [example for example in self.train or () if example.label is not None]
        if len(train) < len(self.examples) or self.targets is self.predicted:
            return IndependentReader(self.tokens, self.targets)
        values = np.array([example.label for example in train], dtype=np.float64)
        codes = values if self.outputs.ndim == 2 else values > np.median(self.outputs)
        texts = [main_text(example).tokens for example in train]
        return IndependentReader(self.tokens, self.targets, texts, codes.astype(np.int64))

    @cached_property
    def control(self) -> list[NDArray[np.bool_]]:
        """Rationales of the same sizes that carry no code of the model: the most important words of the independent
        reader, or, without one, random words."""
        rng = self.random("control")
        chosen = []
        for number, (tokens, selected) in enumerate(zip(self.tokens, self.selected, strict=True)):
            ties = rng.random(len(tokens))
            rank = ties if self.reader is None else self.reader.importance(tokens, number) + 1e-9 * ties
            mask = np.zeros(len(tokens), dtype=np.bool_)
            mask[np.argsort(-rank, kind="stable")[: int(selected.sum())]] = True
            chosen.append(mask)
        return chosen
