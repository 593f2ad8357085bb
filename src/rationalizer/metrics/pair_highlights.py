"""Coverage of the words that people marked in pairs of texts by the model's alignments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rationalizer.metrics._validation import Mask, as_annotations, as_masks, require_same_count, require_same_lengths
from rationalizer.metrics.evaluation import PairEvaluation
from rationalizer.metrics.registry import Metric, computes

_GROUP = "Agreement with people"


@dataclass(frozen=True)
class HighlightCoverage:
    """Pooled over the texts with marked words."""

    marked: float  # share of the marked words that are aligned
    words: float  # share of all words that are aligned: the expected share if people had marked words at random
    documents: int
    skipped: int


def highlight_coverage(
    aligned: Sequence[Any], highlights: Sequence[Any], counted: Sequence[Any] | None = None
) -> HighlightCoverage | None:
    """The shares of marked words and of all words that are aligned; None if no word is marked.

    Args:
        aligned: per text, which of its words are aligned: one 0/1 per token.
        highlights: per text, what people marked: one 0/1 per token, or None.
        counted: per text, which tokens can be aligned; the others are ignored.
    """
    total = require_same_count(aligned=aligned, highlights=highlights)
    selected, annotated = as_masks(aligned, "aligned"), as_annotations(highlights, "highlights")
    able: list[Mask] = [np.ones_like(one) for one in selected] if counted is None else as_masks(counted, "counted")
    require_same_lengths(aligned=selected, highlights=annotated, counted=able)
    rows = [
        ((own & marked & can).sum(), (marked & can).sum(), (own & can).sum(), can.sum())
        for own, marked, can in zip(selected, annotated, able, strict=True)
        if marked is not None and (marked & can).any()
    ]
    if not rows:
        return None
    hits, marked_words, aligned_words, words = np.sum(rows, axis=0).tolist()
    return HighlightCoverage(hits / marked_words, aligned_words / words, len(rows), total - len(rows))


@computes(
    Metric("highlighted", "pairs with marked words", _GROUP, "count"),
    Metric("premise_marked", "marked words aligned, premise", _GROUP),
    Metric("premise_words", "all words aligned, premise", _GROUP),
    Metric("hypothesis_marked", "marked words aligned, hypothesis", _GROUP),
    Metric("hypothesis_words", "all words aligned, hypothesis", _GROUP),
    of=PairEvaluation,
)
def _coverage(evaluation: PairEvaluation) -> dict[str, float | None]:
    if evaluation.highlights is None:
        return {}
    marked = sum(any(np.any(mask) for mask in sides) for sides in evaluation.highlights)
    scores: dict[str, float | None] = {"highlighted": marked or None}
    for side, name in enumerate(("premise", "hypothesis")):
        aligned = [(matrix != 0).any(axis=1 - side) for matrix in evaluation.alignments]
        counted = None if evaluation.counted is None else [sides[side] for sides in evaluation.counted]
        coverage = highlight_coverage(aligned, [sides[side] for sides in evaluation.highlights], counted)
        if coverage is not None:
            scores |= {f"{name}_marked": coverage.marked, f"{name}_words": coverage.words}
    return scores
