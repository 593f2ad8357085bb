"""Conversion between token masks and half-open spans [start, end)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from rationalizer.metrics._validation import Mask, as_mask

Span: TypeAlias = tuple[int, int]


def mask_to_spans(mask: Any) -> list[Span]:
    """The maximal runs of selected tokens, in order: [0, 1, 1, 0, 1] -> [(1, 3), (4, 5)]."""
    selected = as_mask(mask, "mask", 0)
    steps = np.diff(selected.astype(np.int8), prepend=0, append=0)
    starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    return [(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]


def spans_to_mask(spans: Iterable[Span], length: int) -> Mask:
    """The union of the spans as a mask of `length` tokens; spans may overlap."""
    mask = np.zeros(length, dtype=np.bool_)
    for start, end in as_spans(spans, "spans", 0):
        if end > length:
            raise ValueError(f"span [{start}, {end}) exceeds the text's {length} tokens")
        mask[start:end] = True
    return mask


def as_spans(spans: Iterable[Any], name: str, document: int) -> list[Span]:
    """Check one document's spans and remove duplicates."""
    checked: dict[Span, None] = {}
    for span in spans:
        try:
            start, end = (int(bound) for bound in span)
        except (TypeError, ValueError):
            raise ValueError(f"document {document}: {name} contains {span!r}; a span is a pair (start, end)") from None
        if not 0 <= start < end:
            raise ValueError(
                f"document {document}: {name} contains [{start}, {end}); a half-open span needs 0 <= start < end"
            )
        checked[start, end] = None
    return list(checked)
