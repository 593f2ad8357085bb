"""Alignments of sentence pairs: agreement with annotated alignments, and whether the constraints hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rationalizer.metrics._validation import Floats, require_same_count
from rationalizer.metrics.evaluation import PairEvaluation
from rationalizer.metrics.plausibility import f1_of
from rationalizer.metrics.registry import Metric, computes

Kind = Literal["exactly_one", "at_most_one"]


@dataclass(frozen=True)
class PairScores:
    """One document's agreement with its annotation."""

    precision: float
    recall: float
    f1: float

    @property
    def exact(self) -> bool:
        """Whether all annotated pairs are predicted, and no others."""
        return self.precision == self.recall == 1


@dataclass(frozen=True)
class AlignmentScores:
    """Means over the annotated documents, and each document's scores."""

    precision: float
    recall: float
    f1: float
    exact: float  # share of documents whose predicted alignment is the annotated one
    alignments: float  # mean number of predicted alignments, over all documents
    documents: int  # number of documents in the means of precision, recall and F1
    skipped: int
    by_document: tuple[PairScores | None, ...]  # None where the document is not annotated


@dataclass(frozen=True)
class Violations:
    """The largest violation of each constraint by a matrix; 0 if it holds."""

    rows: float
    columns: float
    budget: float
    bounds: float  # below 0 or above 1

    @property
    def worst(self) -> float:
        return max(self.rows, self.columns, self.budget, self.bounds)


def alignment_scores(
    predicted: Sequence[Any], annotations: Sequence[Iterable[tuple[int, int]] | None]
) -> AlignmentScores:
    """Precision, recall, F1 and exact match of predicted alignments against annotated ones, per document and as means
    over documents.

    An empty prediction scores 0. Documents without an annotation (None, or no pair at all) are skipped and
    counted.

    Args:
        predicted: per document, an (m, n) matrix of 0/1; 1: word i is aligned with word j.
        annotations: per document, the pairs (row, column) that should be aligned, or None.
    """
    total = require_same_count(predicted=predicted, annotations=annotations)
    rows: list[PairScores | None] = []
    counts = []
    for i, (matrix, pairs) in enumerate(zip(predicted, annotations, strict=True)):
        alignment = _as_alignment(matrix, i)
        counts.append(int(alignment.sum()))
        wanted = set() if pairs is None else _as_pairs(pairs, alignment.shape, i)
        rows.append(_score(alignment, wanted) if wanted else None)
    scored = [row for row in rows if row is not None]
    if not scored:
        raise ValueError(f"none of the {total} documents has an annotated alignment")
    table = np.array([(row.precision, row.recall, row.f1, row.exact) for row in scored])
    precision, recall, f1, exact = table.mean(axis=0).tolist()
    mean, skipped = float(np.mean(counts)), total - len(scored)
    return AlignmentScores(precision, recall, f1, exact, mean, len(scored), skipped, tuple(rows))


def violations(
    matrix: Any,
    *,
    rows: Kind = "at_most_one",
    columns: Kind = "at_most_one",
    budget: float | None = None,
    exact: bool = False,
) -> Violations:
    """Violations by an (m, n) alignment matrix of its constraints: 0 <= Z <= 1, the sum of every row and column at most
    (or exactly) 1, ΣZ <= budget, or with `exact` ΣZ = budget.
    """
    z = np.asarray(matrix, dtype=np.float64)
    if z.ndim != 2:
        raise ValueError(f"an alignment matrix has two dimensions, got shape {z.shape}")
    if not np.isfinite(z).all():
        i, j = (int(k) for k in np.argwhere(~np.isfinite(z))[0])
        raise ValueError(f"matrix[{i}, {j}] is {z[i, j]}; an alignment matrix must be finite")
    if budget is not None and not budget >= 0:
        raise ValueError(f"budget must be at least 0, got {budget}")
    if exact and budget is None:
        raise ValueError("exact=True needs a budget")
    return Violations(
        rows=_excess(z.sum(axis=1), rows, "rows"),
        columns=_excess(z.sum(axis=0), columns, "columns"),
        budget=0.0 if budget is None else _largest(abs(z.sum() - budget) if exact else z.sum() - budget),
        bounds=_largest(np.maximum(-z, z - 1)),
    )


def _excess(sums: Floats, kind: str, side: str) -> float:
    if kind not in get_args(Kind):
        raise ValueError(f"{side} must be 'exactly_one' or 'at_most_one', got {kind!r}")
    return _largest(np.abs(sums - 1) if kind == "exactly_one" else sums - 1)


def _largest(excess: Any) -> float:
    return float(np.max(excess, initial=0.0))


def _score(alignment: NDArray[np.bool_], wanted: set[tuple[int, int]]) -> PairScores:
    hits = sum(bool(alignment[pair]) for pair in wanted)
    precision, recall = hits / max(int(alignment.sum()), 1), hits / len(wanted)
    return PairScores(precision, recall, f1_of(precision, recall))


def _as_alignment(matrix: Any, document: int) -> NDArray[np.bool_]:
    array = np.asarray(matrix)
    if array.ndim != 2:
        raise ValueError(f"document {document}: predicted must be an (m, n) matrix, got shape {array.shape}")
    bad = (array != 0) & (array != 1)
    if bad.any():
        i, j = (int(k) for k in np.argwhere(bad)[0])
        raise ValueError(
            f"document {document}: predicted[{i}, {j}] is {array[i, j]!s}; an alignment contains only 0 and 1 "
            "(decode soft alignments first, for example with ops.matching_map)"
        )
    return array.astype(np.bool_)


def _as_pairs(pairs: Iterable[Any], shape: tuple[int, ...], document: int) -> set[tuple[int, int]]:
    checked = set()
    for pair in pairs:
        row, column = (int(k) for k in pair)
        if not (0 <= row < shape[0] and 0 <= column < shape[1]):
            raise ValueError(
                f"document {document}: the annotated pair ({row}, {column}) lies outside the {shape[0]} x {shape[1]} "
                "matrix"
            )
        checked.add((row, column))
    return checked


_GROUP = "Agreement with people"


@computes(
    Metric("aligned", "pairs with an annotated alignment", _GROUP, "count"),
    Metric("alignment_precision", "alignment precision", _GROUP),
    Metric("alignment_recall", "alignment recall", _GROUP),
    Metric("alignment_f1", "alignment-F1", _GROUP, heading="alignment-F1", headline=True, large=True),
    Metric("alignment_exact", "alignment, exact match", _GROUP),
    of=PairEvaluation,
)
def _agreement(evaluation: PairEvaluation) -> dict[str, float]:
    if evaluation.annotations is None:
        return {}
    aligned = sum(bool(pairs) for pairs in evaluation.annotations)
    if not aligned:
        return {"aligned": 0}
    scores = alignment_scores([matrix != 0 for matrix in evaluation.alignments], evaluation.annotations)
    values = {name: getattr(scores, name) for name in ("precision", "recall", "f1", "exact")}
    return {"aligned": aligned, **{f"alignment_{name}": value for name, value in values.items()}}


@computes(
    Metric(
        "alignments", "word pairs aligned", "Rationales", "mean", heading="pairs aligned", headline=True, large=True
    ),
    Metric(
        "violation",
        "largest violation of a constraint",
        "Rationales",
        "violation",
        lower_is_better=True,
        heading="violation",
        headline=True,
    ),
    of=PairEvaluation,
)
def _sizes(evaluation: PairEvaluation) -> dict[str, float]:
    scores = {"alignments": float(np.mean([np.count_nonzero(matrix) for matrix in evaluation.alignments]))}
    if evaluation.constraints is not None:
        pairs = zip(evaluation.rationales, evaluation.constraints, strict=True)
        scores["violation"] = max(violations(matrix, **constraints).worst for matrix, constraints in pairs)
    return scores
