"""The input of all metrics: predictions, rationales and annotations of one set of documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.metrics._validation import (
    Mask,
    Probabilities,
    Task,
    as_annotations,
    as_masks,
    as_scores,
    require_same_count,
    require_same_lengths,
)
from rationalizer.metrics.registry import Metric, computes
from rationalizer.metrics.token_spans import Span


@dataclass(kw_only=True)
class Evaluation:
    """What texts and pairs of texts have in common.

    Args:
        task: `"classification"` or `"regression"`; None if there are no labels to compare with.
        truth: per document, the true class or number; None without a task.
        predictions: per document, the predicted class or number.
        classes: all classes of the task, for macro-F1.
        class_names: their names in messages, if the classes are the numbers 0, 1, ...
        outputs: (documents, classes), the probabilities behind the predictions, for calibration.
        seconds_per_epoch: training time, copied to the scores.
    """

    task: Task | None
    truth: Sequence[Any] | None
    predictions: Sequence[Any]
    classes: Sequence[Any] | None = None
    class_names: Sequence[str] | None = None
    outputs: Any = None
    seconds_per_epoch: float | None = None

    def _check(self, **per_document: Sequence[Any]) -> None:
        truth = self.predictions if self.truth is None else self.truth
        require_same_count(**per_document, truth=truth, predictions=self.predictions)
        if (self.task is None) != (self.truth is None):
            raise ValueError("task and truth go together: give both, or None for both")


@dataclass(kw_only=True)
class TextEvaluation(Evaluation):
    """Predictions and rationales of single texts.

    Args:
        masks: per document, which tokens were selected: one 0/1 per token.
        weights: per document, one number per token, larger for more important ones; AUPRC and AOPC need them.
        annotations: per document, what people marked: one 0/1 per token, or None.
        annotated_spans: the annotators' spans, for IOU; by default the runs of tokens in `annotations`.
        counted: per document, which tokens are words. Sizes and degeneration ignore the others (punctuation that is
            selected together with words).
        limits: per document, the largest number of words that the budget allows; None without a budget.
        probabilities: the model as a function of keep-masks (see `faithfulness`), classification only;
            without it faithfulness is not measured.
        full: (documents, classes), probabilities of a full-text model; by default the model's own on whole texts.
    """

    masks: Sequence[Any]
    weights: Sequence[Any] | None = None
    annotations: Sequence[Any] | None = None
    annotated_spans: Sequence[Iterable[Span] | None] | None = None
    counted: Sequence[Any] | None = None
    limits: Sequence[int] | None = None
    probabilities: Probabilities | None = None
    full: Any = None

    def __post_init__(self) -> None:
        self.masks = as_masks(self.masks, "masks")
        self._check(masks=self.masks)
        if self.weights is not None:
            self.weights = as_scores(self.weights, "weights")
            require_same_lengths(masks=self.masks, weights=self.weights)
        if self.annotations is not None:
            self.annotations = as_annotations(self.annotations, "annotations")
            require_same_lengths(masks=self.masks, annotations=self.annotations)
        elif self.annotated_spans is not None:
            raise ValueError("annotated_spans without annotations; convert them with spans_to_mask")
        if self.counted is not None:
            self.counted = as_masks(self.counted, "counted")
            require_same_lengths(masks=self.masks, counted=self.counted)
        if self.probabilities is not None and self.task != "classification":
            raise ValueError("faithfulness is defined on class probabilities only; leave `probabilities` out")

    @cached_property
    def rationales(self) -> list[Mask]:
        """The masks on the tokens that count."""
        if self.counted is None:
            return list(self.masks)
        return [mask[counted] for mask, counted in zip(self.masks, self.counted, strict=True)]


@dataclass(kw_only=True)
class PairEvaluation(Evaluation):
    """Predictions and alignments of pairs of texts.

    Args:
        alignments: per pair, an (m, n) matrix of weights; words with a nonzero weight are aligned.
        annotations: per pair, the word pairs (i, j) that people aligned, or None.
        constraints: per pair, the constraints of its alignment: arguments of `violations`.
        highlights: per pair, the words that people marked in premise and hypothesis: one 0/1 per token each, or None.
        counted: per pair, which tokens of either text can be aligned; the constraints hold on these. Default: all.
    """

    alignments: Sequence[Any]
    annotations: Sequence[Iterable[tuple[int, int]] | None] | None = None
    constraints: Sequence[Mapping[str, Any]] | None = None
    highlights: Sequence[tuple[Any, Any]] | None = None
    counted: Sequence[tuple[Any, Any]] | None = None

    def __post_init__(self) -> None:
        self.alignments = [np.asarray(matrix) for matrix in self.alignments]
        self._check(alignments=self.alignments)
        for name in ("constraints", "highlights", "counted"):
            if (values := getattr(self, name)) is not None:
                require_same_count(alignments=self.alignments, **{name: values})

    @cached_property
    def rationales(self) -> list[NDArray[Any]]:
        """The matrices on the tokens that count."""
        if self.counted is None:
            return list(self.alignments)
        return [matrix[np.ix_(*sides)] for matrix, sides in zip(self.alignments, self.counted, strict=True)]


@computes(Metric("documents", "texts", "Task", "count"), of=Evaluation)
def _documents(evaluation: Evaluation) -> dict[str, float]:
    return {"documents": len(evaluation.predictions)}


@computes(
    Metric("seconds_per_epoch", "seconds per epoch", "Training", "seconds", lower_is_better=True, heading="s/epoch"),
    of=Evaluation,
)
def _seconds_per_epoch(evaluation: Evaluation) -> dict[str, float | None]:
    return {"seconds_per_epoch": evaluation.seconds_per_epoch}
