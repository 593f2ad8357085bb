"""Plausibility: agreement of the model's rationales with people's annotations.

Annotations are given per document as a mask or as spans; None means that nobody annotated the document. Such documents
are skipped and counted (`skipped`). An annotation without any token is different: ERASER's averages (`"eraser"`,
`"micro"`, the IOU scores) count what the model selects there as wrong; the others skip it, since recall is undefined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from rationalizer.metrics._validation import (
    Floats,
    Mask,
    as_annotations,
    as_masks,
    as_scores,
    require_same_count,
    require_same_lengths,
)
from rationalizer.metrics.evaluation import TextEvaluation
from rationalizer.metrics.registry import Metric, computes
from rationalizer.metrics.token_spans import Span, as_spans, mask_to_spans

Convention = Literal["macro", "eraser", "micro", "paper"]


@dataclass(frozen=True)
class Agreement:
    """Precision, recall and F1, and the number of documents behind them."""

    precision: float
    recall: float
    f1: float
    documents: int  # number of documents in the averages
    skipped: int


@dataclass(frozen=True)
class RankingAgreement:
    """Area under the precision–recall curve, and the number of documents in the average."""

    auprc: float
    documents: int
    skipped: int


def f1_of(precision: float, recall: float) -> float:
    """The harmonic mean; 0 if either is 0."""
    if precision == 0 or recall == 0:
        return 0.0
    return 2 * precision * recall / (precision + recall)


def token_scores(
    predicted: Sequence[Any], annotations: Sequence[Any], *, convention: Convention = "macro"
) -> Agreement:
    """Token precision, recall and F1 of the selected tokens against the annotation.

    Args:
        predicted: per document, the selection: one 0/1 per token.
        annotations: per document, the annotation: one 0/1 per token, or None.
        convention: what is averaged:
            `"macro"`: the mean of the documents' P, R and F1; an empty selection scores 0 in all three.
            `"eraser"`: ERASER's instance macro: as above, over the documents where either side has a token; a
            document with an empty annotation and a selection scores 0.
            `"micro"`: ERASER's instance micro: tokens pooled over the documents.
            `"paper"`: the F1 of mean precision and mean recall, both without the documents with an empty selection
            (counted as skipped); it rewards a model for selecting nothing when it is unsure.
    """
    if convention not in get_args(Convention):
        raise ValueError(f"convention must be one of {', '.join(get_args(Convention))}, got {convention!r}")
    selections, people = as_masks(predicted, "predicted"), as_annotations(annotations, "annotations")
    require_same_lengths(predicted=selections, annotations=people)
    counts = np.array(
        [
            (np.sum(mask & truth), np.sum(mask), np.sum(truth))
            for mask, truth in zip(selections, people, strict=True)
            if truth is not None and _enters(mask, truth, convention)
        ],
        dtype=np.float64,
    ).reshape(-1, 3)
    documents, skipped = len(counts), len(selections) - len(counts)
    if convention == "micro":
        counts = counts.sum(axis=0, keepdims=True)
    elif documents == 0:
        if convention == "paper" and any(truth is not None and truth.any() for truth in people):
            return Agreement(0.0, 0.0, 0.0, 0, skipped)
        raise ValueError(_nothing_to_compare(len(selections)))
    precision, recall, f1 = _rates(counts)
    p, r = float(precision.mean()), float(recall.mean())
    return Agreement(p, r, f1_of(p, r) if convention == "paper" else float(f1.mean()), documents, skipped)


def _enters(mask: Mask, truth: Mask, convention: str) -> bool:
    match convention:
        case "macro":
            return bool(truth.any())
        case "eraser":
            return bool(truth.any() or mask.any())
        case "micro":
            return True
        case _:
            return bool(truth.any() and mask.any())


def _rates(counts: Floats) -> tuple[Floats, Floats, Floats]:
    """P, R and F1 of rows (hits, selected, annotated); an empty side scores 0."""
    hits, selected, annotated = counts.T
    precision = hits / np.maximum(selected, 1)
    recall = hits / np.maximum(annotated, 1)
    return precision, recall, 2 * hits / np.maximum(selected + annotated, 1)


def iou_scores(
    predicted: Sequence[Iterable[Span]],
    annotations: Sequence[Iterable[Span] | None],
    *,
    threshold: float = 0.5,
    average: Literal["macro", "micro"] = "macro",
) -> Agreement:
    """ERASER's IOU-F1: a predicted span is a hit if it overlaps some human span with |∩| / |∪| >= threshold.

    P = hits / predicted spans and R = hits / human spans: pooled over the documents (`"micro"`), or P averaged over
    the documents with predictions and R over those with human spans (`"macro"`). F1 is computed from the averages.

    Adjacent human spans are not merged. If predicted spans touch or overlap, several of them can hit the same human
    span and recall can exceed 1, as in ERASER; the maximal runs of `mask_to_spans` do not touch, and any two of them
    hit different human spans if the threshold is at least 0.5.

    Args:
        predicted: per document, its half-open token spans; see `mask_to_spans`.
        annotations: per document, the human spans, or None.
        threshold: the overlap that counts as a hit, in (0, 1].
        average: `"macro"` or `"micro"`.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must lie in (0, 1], got {threshold}")
    if average not in ("macro", "micro"):
        raise ValueError(f"average must be 'macro' or 'micro', got {average!r}")
    total = require_same_count(predicted=predicted, annotations=annotations)
    rows = []
    for i, (spans, truth) in enumerate(zip(predicted, annotations, strict=True)):
        guesses = as_spans(spans, "predicted", i)
        if truth is not None:
            human = as_spans(truth, "annotations", i)
            rows.append((_hits(guesses, human, threshold), len(guesses), len(human)))
    if not rows:
        raise ValueError(_nothing_to_compare(total))
    hits, guessed, annotated = np.array(rows, dtype=np.float64).T
    if average == "micro":
        p, r = float(hits.sum() / max(guessed.sum(), 1)), float(hits.sum() / max(annotated.sum(), 1))
    else:
        p, r = _mean_where(guessed > 0, hits, guessed), _mean_where(annotated > 0, hits, annotated)
    return Agreement(p, r, f1_of(p, r), len(rows), total - len(rows))


def _hits(guesses: list[Span], human: list[Span], threshold: float) -> int:
    if not guesses or not human:
        return 0
    start, end = np.array(guesses).T
    other_start, other_end = np.array(human).T
    shared = np.minimum.outer(end, other_end) - np.maximum.outer(start, other_start)
    shared = np.maximum(shared, 0)
    union = np.add.outer(end - start, other_end - other_start) - shared
    return int(np.sum((shared / union).max(axis=1) >= threshold))


def _mean_where(counted: Mask, hits: Floats, spans: Floats) -> float:
    return float(np.mean(hits[counted] / spans[counted])) if counted.any() else 0.0


def auprc(scores: Sequence[Any], annotations: Sequence[Any]) -> RankingAgreement:
    """ERASER's AUPRC: how well token scores rank the annotated tokens above the others.

    Per document, the area under the precision–recall curve over all thresholds (tied scores enter together), starting
    at recall 0 and precision 1, by the trapezoid rule; then the mean over documents. Equal to scikit-learn's `auc` of
    `precision_recall_curve`. The trapezoid from (0, 1) favours ties: constant scores get (1 + ρ)/2, where ρ is the
    share of annotated tokens, so scores that are mostly 0 look better than their ranking is.

    Args:
        scores: per document, one finite number per token; larger means more important.
        annotations: per document, the annotation: one 0/1 per token, or None.
    """
    rankings, people = as_scores(scores, "scores"), as_annotations(annotations, "annotations")
    require_same_lengths(scores=rankings, annotations=people)
    areas = [
        _area(ranking, truth)
        for ranking, truth in zip(rankings, people, strict=True)
        if truth is not None and truth.any()
    ]
    if not areas:
        raise ValueError(_nothing_to_compare(len(rankings)))
    return RankingAgreement(float(np.mean(areas)), len(areas), len(rankings) - len(areas))


def _area(scores: Floats, truth: Mask) -> float:
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(truth[order])
    last_of_tie = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
    precision = np.concatenate([[1.0], hits[last_of_tie] / (last_of_tie + 1)])
    recall = np.concatenate([[0.0], hits[last_of_tie] / hits[-1]])
    return float(np.sum(np.diff(recall) * (precision[1:] + precision[:-1]) / 2))


def _nothing_to_compare(documents: int) -> str:
    return f"none of the {documents} documents has an annotation to compare with"


_GROUP = "Agreement with people"


@computes(
    Metric("annotated", "texts with an annotation", _GROUP, "count"),
    Metric("token_precision", "token precision (macro)", _GROUP),
    Metric("token_recall", "token recall (macro)", _GROUP),
    Metric("token_f1", "token-F1 (macro, empty = 0)", _GROUP, heading="token-F1", headline=True, large=True),
    Metric("token_f1_eraser", "token-F1 (ERASER)", _GROUP),
    Metric("token_f1_micro", "token-F1 (micro)", _GROUP, heading="token-F1, pooled"),
    Metric(
        "token_f1_paper",
        "token-F1 (paper: empty left out)",
        _GROUP,
        heading="token-F1, paper's convention",
        paper="token_f1",
    ),
    Metric("iou_precision", "IOU precision", _GROUP),
    Metric("iou_recall", "IOU recall", _GROUP),
    Metric("iou_f1", "IOU-F1", _GROUP, heading="IOU-F1", headline=True),
    Metric("iou_f1_micro", "IOU-F1 (micro)", _GROUP),
    Metric("auprc", "AUPRC", _GROUP, heading="AUPRC", headline=True),
    of=TextEvaluation,
)
def _plausibility(evaluation: TextEvaluation) -> dict[str, float | None]:
    masks, annotations = evaluation.masks, evaluation.annotations
    if annotations is None:
        return {}
    annotated = sum(truth is not None and bool(truth.any()) for truth in annotations)
    if not annotated:
        return {"annotated": 0}
    spans, human = [mask_to_spans(mask) for mask in masks], evaluation.annotated_spans
    if human is None:
        human = [None if truth is None else mask_to_spans(truth) for truth in annotations]
    token, iou = token_scores(masks, annotations), iou_scores(spans, human)
    conventions: tuple[Convention, ...] = ("eraser", "micro", "paper")
    return {
        "annotated": annotated,
        "token_precision": token.precision,
        "token_recall": token.recall,
        "token_f1": token.f1,
        **{f"token_f1_{name}": token_scores(masks, annotations, convention=name).f1 for name in conventions},
        "iou_precision": iou.precision,
        "iou_recall": iou.recall,
        "iou_f1": iou.f1,
        "iou_f1_micro": iou_scores(spans, human, average="micro").f1,
        "auprc": None if evaluation.weights is None else auprc(evaluation.weights, annotations).auprc,
    }
