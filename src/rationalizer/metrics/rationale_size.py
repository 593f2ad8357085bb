"""Sizes of rationales: selected tokens and spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rationalizer.metrics._validation import as_masks, require_same_count
from rationalizer.metrics.evaluation import PairEvaluation, TextEvaluation
from rationalizer.metrics.registry import Metric, computes
from rationalizer.metrics.summary import Summary
from rationalizer.metrics.token_spans import mask_to_spans


@dataclass(frozen=True)
class RationaleStatistics:
    """Sizes and spans of a set of rationales."""

    fraction: Summary  # selected tokens / tokens
    tokens: Summary  # selected tokens
    spans: Summary  # maximal runs of selected tokens


def rationale_statistics(masks: Sequence[Any]) -> RationaleStatistics:
    """Size (share and count of selected tokens) and number of spans, per document and summarized.

    A text without tokens has size 0.

    Args:
        masks: per document, the rationale: one 0/1 per token.
    """
    rationales = as_masks(masks, "masks")
    require_same_count(masks=rationales)
    tokens = [int(np.sum(mask)) for mask in rationales]
    return RationaleStatistics(
        fraction=Summary.from_values(
            [count / max(len(mask), 1) for count, mask in zip(tokens, rationales, strict=True)]
        ),
        tokens=Summary.from_values(tokens),
        spans=Summary.from_values([len(mask_to_spans(mask)) for mask in rationales]),
    )


@computes(
    Metric("size", "rationale size", "Rationales", heading="size", headline=True, large=True, paper="size"),
    Metric("size_min", "smallest size", "Rationales"),
    Metric("size_quarter", "size, first quartile", "Rationales"),
    Metric("size_median", "median size", "Rationales"),
    Metric("size_three_quarters", "size, third quartile", "Rationales"),
    Metric("size_max", "largest size", "Rationales"),
    Metric("tokens", "words selected", "Rationales", "mean"),
    Metric("spans", "spans", "Rationales", "mean", headline=True),
    of=TextEvaluation,
)
def _sizes(evaluation: TextEvaluation) -> dict[str, float]:
    sizes = rationale_statistics(evaluation.rationales)
    shares = [float(mask.sum()) / max(len(mask), 1) for mask in evaluation.rationales]
    quarter, median, three_quarters = map(float, np.quantile(shares, (0.25, 0.5, 0.75)))
    return {
        "size": sizes.fraction.mean,
        "size_quarter": quarter,
        "size_median": median,
        "size_three_quarters": three_quarters,
        "size_min": sizes.fraction.low,
        "size_max": sizes.fraction.high,
        "tokens": sizes.tokens.mean,
        "spans": sizes.spans.mean,
    }


@computes(
    Metric("empty", "empty rationales", "Rationales", lower_is_better=True),
    Metric("full", "complete rationales", "Rationales", lower_is_better=True),
    of=(TextEvaluation, PairEvaluation),
)
def _extremes(evaluation: TextEvaluation | PairEvaluation) -> dict[str, float]:
    return {
        "empty": float(np.mean([not np.any(rationale) for rationale in evaluation.rationales])),
        "full": float(np.mean([rationale.size > 0 and bool(np.all(rationale)) for rationale in evaluation.rationales])),
    }
