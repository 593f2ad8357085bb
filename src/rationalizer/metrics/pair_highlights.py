"""Whether alignments touch the words that people marked in either text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rationalizer.metrics._validation import Mask, as_annotations, as_masks, require_same_count, require_same_lengths


@dataclass(frozen=True)
class HighlightCoverage:
    """Of the texts in which words are marked, all together."""

    marked: float  # share of the marked words that are aligned
    words: float  # share of all words that are: what marks that mean nothing would get
    documents: int
    skipped: int


def highlight_coverage(
    aligned: Sequence[Any], highlights: Sequence[Any], counted: Sequence[Any] | None = None
) -> HighlightCoverage | None:
    """Marked words that are aligned, and all words that are; None where nothing is marked.

    Args:
        aligned: per text, which of its words are aligned: one 0/1 per token.
        highlights: per text, what people marked: one 0/1 per token, or None.
        counted: per text, which tokens can be aligned; others are left aside.
    """
    total = require_same_count(aligned=aligned, highlights=highlights)
    chosen, marks = as_masks(aligned, "aligned"), as_annotations(highlights, "highlights")
    able: list[Mask] = [np.ones_like(one) for one in chosen] if counted is None else as_masks(counted, "counted")
    require_same_lengths(aligned=chosen, highlights=marks, counted=able)
    rows = [
        ((own & marked & can).sum(), (marked & can).sum(), (own & can).sum(), can.sum())
        for own, marked, can in zip(chosen, marks, able, strict=True)
        if marked is not None and (marked & can).any()
    ]
    if not rows:
        return None
    hits, marked_words, aligned_words, words = np.sum(rows, axis=0).tolist()
    return HighlightCoverage(hits / marked_words, aligned_words / words, len(rows), total - len(rows))
