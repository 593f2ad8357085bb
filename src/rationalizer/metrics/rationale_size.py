"""What the rationales look like, whatever they say: how long they are and in how many pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rationalizer.metrics._validation import as_masks, require_same_count
from rationalizer.metrics.summary import Summary
from rationalizer.metrics.token_spans import mask_to_spans


@dataclass(frozen=True)
class RationaleStatistics:
    """Sizes and spans of a set of rationales."""

    fraction: Summary  # selected tokens / tokens
    tokens: Summary  # selected tokens
    spans: Summary  # maximal runs of selected tokens


def rationale_statistics(masks: Sequence[Any]) -> RationaleStatistics:
    """Size (share and count of selected tokens) and number of spans, per document and in summary.

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
