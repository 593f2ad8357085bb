"""Scores in words and figures, as they stand in tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rationalizer.metrics import Scores

WORDS = {
    "documents": "texts",
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "mse": "mean squared error",
    "annotated": "texts with a human rationale",
    "token_precision": "token precision (macro)",
    "token_recall": "token recall (macro)",
    "token_f1": "token-F1 (macro, empty = 0)",
    "token_f1_eraser": "token-F1 (ERASER)",
    "token_f1_micro": "token-F1 (micro)",
    "token_f1_paper": "token-F1 (paper: empty left out)",
    "iou_precision": "IOU precision",
    "iou_recall": "IOU recall",
    "iou_f1": "IOU-F1",
    "iou_f1_micro": "IOU-F1 (micro)",
    "auprc": "AUPRC",
    "comprehensiveness": "comprehensiveness",
    "sufficiency": "sufficiency",
    "aopc_comprehensiveness": "comprehensiveness, AOPC",
    "aopc_sufficiency": "sufficiency, AOPC",
    "size": "rationale size",
    "size_min": "smallest size",
    "size_max": "largest size",
    "tokens": "words selected",
    "spans": "spans",
    "aligned": "pairs with a gold alignment",
    "alignment_precision": "alignment precision",
    "alignment_recall": "alignment recall",
    "alignment_f1": "alignment-F1",
    "alignments": "word pairs aligned",
    "violation": "largest violation of a constraint",
    "empty": "empty rationales",
    "full": "complete rationales",
    "seconds_per_epoch": "seconds per epoch",
}
HEADLINES = (
    "accuracy",
    "macro_f1",
    "mse",
    "token_f1",
    "iou_f1",
    "auprc",
    "size",
    "spans",
    "alignment_f1",
    "alignments",
    "violation",
)


def number(name: str, value: float) -> str:
    """A score as it stands in a table: .812, 1.000, an error in its own unit, seconds as 12.3, counts whole; a
    violation is 0 only if there is none."""
    if name in ("documents", "annotated", "aligned"):
        return str(int(value))
    if name == "seconds_per_epoch":
        return f"{value:.2f}" if value < 10 else f"{value:.1f}"
    if name in ("tokens", "spans", "alignments"):
        return f"{value:.2f}"
    if name == "violation":
        return f"{value:.1e}" if value else "0"
    if name == "mse":
        return f"{value:.4f}".removeprefix("0") if 0.001 <= value < 1 else f"{value:.3g}"
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.3f}"


def score_lines(scores: Mapping[str, Scores], names: Sequence[str]) -> list[list[str]]:
    """Per score that was measured somewhere, its name in words and its value in each column."""
    columns = [found.as_dict() for found in scores.values()]
    return [
        [WORDS[name], *(number(name, column[name]) if name in column else "" for column in columns)]
        for name in names
        if any(name in column for column in columns)
    ]
