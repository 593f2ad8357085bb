"""Every score in one table: what it is called, how it is printed, which way is better, where it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from rationalizer.metrics.scores import Scores

Format = Literal["share", "error", "mean", "count", "seconds", "violation"]
Group = Literal["Task", "Agreement with people", "Faithfulness", "Rationales"]


@dataclass(frozen=True)
class Metric:
    """One field of `Scores`."""

    name: str
    description: str
    group: Group
    format: Format = "share"
    lower_is_better: bool = False
    heading: str = ""  # over its column where methods are compared; empty: it has none
    headline: bool = False  # shown after a training
    large: bool = False  # in large print over a report
    paper: str = ""  # the measure that the paper reports it as

    def format_value(self, value: float) -> str:
        """The value as it stands in tables: .812, 1.000, an error in its own unit, seconds as 12.3, counts whole."""
        if self.format == "count":
            return str(int(value))
        if self.format == "seconds":
            return f"{value:.2f}" if value < 10 else f"{value:.1f}"
        if self.format == "mean":
            return f"{value:.2f}"
        if self.format == "violation":  # 0 only if there is none
            return f"{value:.1e}" if value else "0"
        if self.format == "error":
            return f"{value:.4f}".removeprefix("0") if 0.001 <= value < 1 else f"{value:.3g}"
        return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.3f}"

    @property
    def short_name(self) -> str:
        """The name without what stands in brackets."""
        return self.description.partition(" (")[0]


_PEOPLE: Group = "Agreement with people"
_SHAPE: Group = "Rationales"
_METRICS = (
    Metric("documents", "texts", "Task", "count"),
    Metric("accuracy", "accuracy", "Task", headline=True, large=True),
    Metric("macro_f1", "macro-F1", "Task", heading="macro-F1", headline=True, large=True, paper="task"),
    Metric("ece", "expected calibration error (10 bins)", "Task", lower_is_better=True),
    Metric(
        "mse",
        "mean squared error",
        "Task",
        "error",
        lower_is_better=True,
        heading="MSE (lower is better)",
        headline=True,
        large=True,
        paper="task",
    ),
    Metric("annotated", "texts with a human rationale", _PEOPLE, "count"),
    Metric("token_precision", "token precision (macro)", _PEOPLE),
    Metric("token_recall", "token recall (macro)", _PEOPLE),
    Metric("token_f1", "token-F1 (macro, empty = 0)", _PEOPLE, heading="token-F1", headline=True, large=True),
    Metric("token_f1_eraser", "token-F1 (ERASER)", _PEOPLE),
    Metric("token_f1_micro", "token-F1 (micro)", _PEOPLE),
    Metric(
        "token_f1_paper",
        "token-F1 (paper: empty left out)",
        _PEOPLE,
        heading="token-F1, paper's convention",
        paper="token_f1",
    ),
    Metric("iou_precision", "IOU precision", _PEOPLE),
    Metric("iou_recall", "IOU recall", _PEOPLE),
    Metric("iou_f1", "IOU-F1", _PEOPLE, heading="IOU-F1", headline=True),
    Metric("iou_f1_micro", "IOU-F1 (micro)", _PEOPLE),
    Metric("auprc", "AUPRC", _PEOPLE, heading="AUPRC", headline=True),
    Metric("comprehensiveness", "comprehensiveness", "Faithfulness"),
    Metric("sufficiency", "sufficiency", "Faithfulness", lower_is_better=True),
    Metric("aopc_comprehensiveness", "comprehensiveness, AOPC", "Faithfulness"),
    Metric("aopc_sufficiency", "sufficiency, AOPC", "Faithfulness", lower_is_better=True),
    Metric("size", "rationale size", _SHAPE, heading="size", headline=True, large=True, paper="size"),
    Metric("size_min", "smallest size", _SHAPE),
    Metric("size_max", "largest size", _SHAPE),
    Metric("tokens", "words selected", _SHAPE, "mean"),
    Metric("spans", "spans", _SHAPE, "mean", headline=True),
    Metric("aligned", "pairs with a gold alignment", _PEOPLE, "count"),
    Metric("alignment_precision", "alignment precision", _PEOPLE),
    Metric("alignment_recall", "alignment recall", _PEOPLE),
    Metric("alignment_f1", "alignment-F1", _PEOPLE, heading="alignment-F1", headline=True, large=True),
    Metric("alignment_exact", "alignment, exact match", _PEOPLE),
    Metric("highlighted", "pairs with marked words", _PEOPLE, "count"),
    Metric("premise_marked", "marked words aligned, premise", _PEOPLE),
    Metric("premise_words", "all words aligned, premise", _PEOPLE),
    Metric("hypothesis_marked", "marked words aligned, hypothesis", _PEOPLE),
    Metric("hypothesis_words", "all words aligned, hypothesis", _PEOPLE),
    Metric("alignments", "word pairs aligned", _SHAPE, "mean", heading="pairs aligned", headline=True, large=True),
    Metric(
        "violation",
        "largest violation of a constraint",
        _SHAPE,
        "violation",
        lower_is_better=True,
        heading="violation",
        headline=True,
    ),
    Metric("empty", "empty rationales", _SHAPE, lower_is_better=True),
    Metric("full", "complete rationales", _SHAPE, lower_is_better=True),
    Metric("seconds_per_epoch", "seconds per epoch", "Task", "seconds", lower_is_better=True, heading="s/epoch"),
)
_MAY_LACK = ("annotated", "aligned")
METRICS: dict[str, Metric] = {metric.name: metric for metric in _METRICS}


def score_rows(scores: Mapping[str, Scores], metrics: Iterable[Metric] = _METRICS) -> list[list[str]]:
    """Per score that was measured somewhere, its name in words and its value in each column; a count of what is not
    there at all, such as human rationales, is left out."""
    columns = [found.as_dict() for found in scores.values()]
    columns = [{name: value for name, value in column.items() if value or name not in _MAY_LACK} for column in columns]
    return [
        [
            metric.description,
            *(metric.format_value(column[metric.name]) if metric.name in column else "" for column in columns),
        ]
        for metric in metrics
        if any(metric.name in column for column in columns)
    ]


def headline_metrics() -> list[Metric]:
    return [metric for metric in _METRICS if metric.headline]
