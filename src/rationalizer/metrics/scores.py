"""All scores of one model on one set of documents, as one flat row of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from rationalizer.metrics._validation import (
    as_annotations,
    as_masks,
    as_scores,
    require_same_count,
    require_same_lengths,
)
from rationalizer.metrics.alignment import alignment_scores, violations
from rationalizer.metrics.degeneration import Finding, check
from rationalizer.metrics.faithfulness import Probabilities, aopc, faithfulness
from rationalizer.metrics.pair_highlights import highlight_coverage
from rationalizer.metrics.plausibility import auprc, iou_scores, token_scores
from rationalizer.metrics.rationale_size import rationale_statistics
from rationalizer.metrics.task_scores import Task, score_task
from rationalizer.metrics.token_spans import Span, mask_to_spans


@dataclass(frozen=True, kw_only=True)
class Scores:
    """What was measured, None where it was not. The field names are the columns' names, and are stable."""

    documents: int
    accuracy: float | None = None
    macro_f1: float | None = None
    ece: float | None = None  # expected calibration error
    mse: float | None = None

    annotated: int | None = None  # documents with a human rationale of at least one token
    token_precision: float | None = None  # per-document means, empty selections count as 0
    token_recall: float | None = None
    token_f1: float | None = None
    token_f1_eraser: float | None = None
    token_f1_micro: float | None = None
    token_f1_paper: float | None = None
    iou_precision: float | None = None  # ERASER's macro at 0.5
    iou_recall: float | None = None
    iou_f1: float | None = None
    iou_f1_micro: float | None = None
    auprc: float | None = None

    comprehensiveness: float | None = None
    sufficiency: float | None = None
    aopc_comprehensiveness: float | None = None
    aopc_sufficiency: float | None = None

    size: float | None = None  # mean share of the tokens that is selected
    size_min: float | None = None
    size_max: float | None = None
    tokens: float | None = None  # mean number of selected tokens
    spans: float | None = None  # mean number of runs of selected tokens

    aligned: int | None = None  # pairs of texts with an annotated alignment
    alignment_precision: float | None = None  # per-pair means, empty alignments count as 0
    alignment_recall: float | None = None
    alignment_f1: float | None = None
    alignment_exact: float | None = None  # share of pairs aligned exactly as annotated
    highlighted: int | None = None  # pairs of texts with words that people marked
    premise_marked: float | None = None  # share of the marked words that are aligned,
    premise_words: float | None = None  # and of all words of those texts
    hypothesis_marked: float | None = None
    hypothesis_words: float | None = None
    alignments: float | None = None  # mean number of aligned word pairs
    violation: float | None = None  # by how much an alignment breaks its constraints at worst

    empty: float  # share of documents with nothing selected
    full: float  # share of documents with everything selected

    seconds_per_epoch: float | None = None
    findings: tuple[Finding, ...] = ()

    def as_dict(self) -> dict[str, float]:
        """The measured scores by name, in the order above; the findings are not among them."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "findings"}
        return {name: value for name, value in values.items() if value is not None}


def evaluate(
    *,
    task: Task | None,
    truth: Sequence[Any] | None,
    predictions: Sequence[Any],
    masks: Sequence[Any],
    classes: Sequence[Any] | None = None,
    weights: Sequence[Any] | None = None,
    annotations: Sequence[Any] | None = None,
    annotated_spans: Sequence[Iterable[Span] | None] | None = None,
    counted: Sequence[Any] | None = None,
    probabilities: Probabilities | None = None,
    full: Any = None,
    outputs: Any = None,
    seconds_per_epoch: float | None = None,
) -> Scores:
    """Measure everything that the arguments allow.

    Args:
        task: `"classification"` or `"regression"`; None where there is none to measure.
        truth: per document, the true class or number; None without a task.
        predictions: per document, the predicted class or number.
        masks: per document, which tokens were selected: one 0/1 per token.
        classes: all classes of the task, for macro-F1.
        weights: per document, one number per token, larger for more important ones; AUPRC and AOPC need them.
        annotations: per document, the human rationale: one 0/1 per token, or None. If no document has one, agreement
            with people is not measured.
        annotated_spans: the human rationales as the annotators' spans, for IOU; by default the runs of tokens in
            `annotations`.
        counted: per document, which tokens count as words, where sizes and degeneration shall leave others (punctuation
            that is read along) aside.
        probabilities: the model as a function of keep-masks (see `faithfulness`), classification only;
            without it faithfulness is not measured.
        full: (documents, classes), a full-text model's probabilities, if not this model's own are meant.
        outputs: (documents, classes), the probabilities that the predictions were made by; calibration needs them.
        seconds_per_epoch: training time, handed through.
    """
    rationales = as_masks(masks, "masks")
    count = require_same_count(masks=rationales, truth=predictions if truth is None else truth, predictions=predictions)
    if weights is not None:
        weights = as_scores(weights, "weights")
        require_same_lengths(masks=rationales, weights=weights)
    found = _measured_on_task(task, truth, predictions, classes, outputs)
    found |= _measured_against_people(rationales, weights, annotations, annotated_spans)
    if probabilities is not None:
        found |= _measured_on_model(task, probabilities, rationales, weights, full)
    if counted is not None:
        require_same_lengths(masks=rationales, counted=as_masks(counted, "counted"))
        rationales = [mask[np.asarray(words, dtype=bool)] for mask, words in zip(rationales, counted, strict=True)]
    shape = rationale_statistics(rationales)
    return Scores(
        documents=count,
        **found,
        size=shape.fraction.mean,
        size_min=shape.fraction.low,
        size_max=shape.fraction.high,
        tokens=shape.tokens.mean,
        spans=shape.spans.mean,
        empty=float(np.mean(np.array(shape.tokens.values) == 0)),
        full=float(np.mean(np.array(shape.fraction.values) == 1)),
        seconds_per_epoch=seconds_per_epoch,
        findings=tuple(
            check(rationales) if task is None else check(rationales, truth=truth, predictions=predictions, task=task)
        ),
    )


def evaluate_pairs(
    *,
    task: Task | None,
    truth: Sequence[Any] | None,
    predictions: Sequence[Any],
    alignments: Sequence[Any],
    classes: Sequence[Any] | None = None,
    annotations: Sequence[Iterable[tuple[int, int]] | None] | None = None,
    constraints: Sequence[Mapping[str, Any]] | None = None,
    highlights: Sequence[tuple[Any, Any]] | None = None,
    counted: Sequence[tuple[Any, Any]] | None = None,
    outputs: Any = None,
    seconds_per_epoch: float | None = None,
) -> Scores:
    """As `evaluate`, for pairs of texts.

    Args:
        task: `"classification"` or `"regression"`; None where there is none to measure.
        truth: per pair, the true class or number; None without a task.
        predictions: per pair, the predicted class or number.
        alignments: per pair, an (m, n) matrix of weights; words with a weight other than 0 are aligned.
        classes: all classes of the task, for macro-F1.
        annotations: per pair, the word pairs (i, j) that should be aligned, or None.
        constraints: per pair, what its alignment should keep to: arguments of `violations`.
        highlights: per pair, what people marked in the premise and in the hypothesis: one 0/1 per token each, or None.
        counted: per pair, which tokens of either text can be aligned; the constraints hold among these. By default all.
        outputs: as of `evaluate`.
        seconds_per_epoch: training time, handed through.
    """
    matrices = [np.asarray(alignment) for alignment in alignments]
    count = require_same_count(
        alignments=matrices, truth=predictions if truth is None else truth, predictions=predictions
    )
    found = _measured_on_task(task, truth, predictions, classes, outputs)
    chosen = [matrix != 0 for matrix in matrices]
    if annotations is not None:
        found["aligned"] = sum(bool(pairs) for pairs in annotations)
    if annotations is not None and found["aligned"]:
        scores = alignment_scores(chosen, annotations)
        found |= {
            "alignment_precision": scores.precision,
            "alignment_recall": scores.recall,
            "alignment_f1": scores.f1,
            "alignment_exact": scores.exact,
        }
    if highlights is not None:
        found |= _measured_on_highlights(chosen, highlights, counted)
    inner = matrices if counted is None else [m[np.ix_(*sides)] for m, sides in zip(matrices, counted, strict=True)]
    if constraints is not None:
        require_same_count(alignments=matrices, constraints=constraints)
        worst = (violations(matrix, **kept).worst for matrix, kept in zip(inner, constraints, strict=True))
        found["violation"] = max(worst, default=0.0)
    return Scores(
        documents=count,
        **found,
        alignments=float(np.mean([matrix.sum() for matrix in chosen])),
        empty=float(np.mean([not matrix.any() for matrix in chosen])),
        full=float(np.mean([matrix.all() for matrix in inner])),
        seconds_per_epoch=seconds_per_epoch,
    )


def _measured_on_task(
    task: Task | None, truth: Sequence[Any] | None, predictions: Sequence[Any], classes: Any, outputs: Any
) -> dict[str, Any]:
    if (task is None) != (truth is None):
        raise ValueError("task and truth go together; give both, or None for both where nothing is to be predicted")
    if task is None or truth is None:
        return {}
    return dict(score_task(task, truth, predictions, classes, outputs))


def _measured_against_people(masks: Any, weights: Any, annotations: Any, annotated_spans: Any) -> dict[str, Any]:
    if annotations is None:
        if annotated_spans is not None:
            raise ValueError("annotated_spans without annotations; convert them with spans_to_mask")
        return {}
    annotations = as_annotations(annotations, "annotations")
    require_same_lengths(masks=masks, annotations=annotations)
    annotated = sum(truth is not None and bool(truth.any()) for truth in annotations)
    if not annotated:
        return {"annotated": 0}
    if annotated_spans is None:
        annotated_spans = [None if truth is None else mask_to_spans(truth) for truth in annotations]
    spans = [mask_to_spans(mask) for mask in masks]
    token, iou = token_scores(masks, annotations), iou_scores(spans, annotated_spans)
    return {
        "annotated": annotated,
        "token_precision": token.precision,
        "token_recall": token.recall,
        "token_f1": token.f1,
        "token_f1_eraser": token_scores(masks, annotations, convention="eraser").f1,
        "token_f1_micro": token_scores(masks, annotations, convention="micro").f1,
        "token_f1_paper": token_scores(masks, annotations, convention="paper").f1,
        "iou_precision": iou.precision,
        "iou_recall": iou.recall,
        "iou_f1": iou.f1,
        "iou_f1_micro": iou_scores(spans, annotated_spans, average="micro").f1,
        "auprc": None if weights is None else auprc(weights, annotations).auprc,
    }


def _measured_on_highlights(
    chosen: Sequence[Any], highlights: Sequence[tuple[Any, Any]], counted: Sequence[tuple[Any, Any]] | None
) -> dict[str, Any]:
    require_same_count(alignments=chosen, highlights=highlights)
    marked = sum(any(np.any(marks) for marks in sides) for sides in highlights)
    found: dict[str, Any] = {"highlighted": marked} if marked else {}
    for side, name in enumerate(("premise", "hypothesis")):
        aligned = [matrix.any(axis=1 - side) for matrix in chosen]
        words = None if counted is None else [sides[side] for sides in counted]
        scores = highlight_coverage(aligned, [sides[side] for sides in highlights], words)
        if scores is not None:
            found |= {f"{name}_marked": scores.marked, f"{name}_words": scores.words}
    return found


def _measured_on_model(
    task: Task | None, probabilities: Probabilities, masks: Any, weights: Any, full: Any
) -> dict[str, Any]:
    if task != "classification":
        raise ValueError("faithfulness is defined on class probabilities; leave `probabilities` out of others")
    hard = faithfulness(probabilities, masks, full=full)
    found = {"comprehensiveness": hard.comprehensiveness, "sufficiency": hard.sufficiency}
    if weights is not None:
        curve = aopc(probabilities, weights, full=full)
        found |= {"aopc_comprehensiveness": curve.comprehensiveness, "aopc_sufficiency": curve.sufficiency}
    return found
