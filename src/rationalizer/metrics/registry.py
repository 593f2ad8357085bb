"""The registry of metrics: what each score is called, how it is printed, and the function that computes it.

Each module of this package registers its metrics, so a new metric is one new file in this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from rationalizer.discovery import Registry

Format = Literal["share", "error", "mean", "count", "seconds", "violation"]
GROUPS = ("Task", "Agreement with people", "Faithfulness", "Rationales", "Training")  # in the order of reports

_Compute = TypeVar("_Compute", bound=Callable[[Any], Mapping[str, float | None]])


@dataclass(frozen=True)
class Metric:
    """A score: its name in Python, JSON and CSV, and where and how it is shown."""

    name: str
    description: str
    group: str  # one of `GROUPS`, or a new one
    format: Format = "share"
    lower_is_better: bool = False
    heading: str = ""  # column heading in tables that compare methods; no column if empty
    headline: bool = False  # whether it is printed after training
    large: bool = False  # whether it is shown in large print at the top of a report
    abbreviation: str = ""  # in place of a long description
    paper: str = ""  # the measure of the paper's tables that it corresponds to

    def format_value(self, value: float) -> str:
        """Format a value for tables: .812, 1.000, errors with 4 digits, seconds as 12.3, counts as integers."""
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
        """The abbreviation, or the description without what follows in parentheses."""
        return self.abbreviation or self.description.partition(" (")[0]


METRICS: Registry[Metric] = Registry("metric")
# By metric: the types of evaluations it is defined for, and the function that computes it.
_COMPUTATIONS: dict[str, tuple[type | tuple[type, ...], Callable[[Any], Mapping[str, float | None]]]] = {}


def computes(*metrics: Metric, of: type | tuple[type, ...]) -> Callable[[_Compute], _Compute]:
    """Register metrics and the function that computes their values.

    Args:
        metrics: what the function returns. They are listed by group, and within a group in the order of registration.
        of: the function is called with evaluations of this type: `Evaluation`, `TextEvaluation` or `PairEvaluation`.
            It returns values by name, and leaves out (or maps to None) what this evaluation does not allow.
    """

    def add(compute: _Compute) -> _Compute:
        for metric in metrics:
            METRICS.register(metric.name)(metric)
            _COMPUTATIONS[metric.name] = of, compute
        ordered = sorted(METRICS.items(), key=lambda item: _group_order(item[1].group))
        METRICS.clear()
        METRICS.update(ordered)
        return compute

    return add


def _group_order(group: str) -> int:
    return GROUPS.index(group) if group in GROUPS else len(GROUPS)


def compute_values(evaluation: Any) -> dict[str, float]:
    """Compute all registered metrics that the evaluation allows, in the order of `METRICS`."""
    values: dict[str, float] = {}
    for of, compute in dict.fromkeys(_COMPUTATIONS[name] for name in METRICS):
        if isinstance(evaluation, of):
            values |= {name: value for name, value in compute(evaluation).items() if value is not None}
    if unknown := values.keys() - METRICS.keys():
        raise ValueError(f"metrics without a registered `Metric`: {', '.join(sorted(unknown))}")
    return {name: values[name] for name in METRICS if name in values}


def score_rows(scores: Mapping[str, Mapping[str, float]], metrics: Iterable[Metric] | None = None) -> list[list[str]]:
    """Table rows: per metric its description and its value in each column of `scores`.

    Metrics that no column has are left out, as are numbers of annotated documents that are 0.
    """
    columns = [
        {name: value for name, value in column.items() if value or METRICS[name].format != "count"}
        for column in scores.values()
    ]
    return [
        [
            metric.description,
            *(metric.format_value(column[metric.name]) if metric.name in column else "" for column in columns),
        ]
        for metric in (METRICS.values() if metrics is None else metrics)
        if any(metric.name in column for column in columns)
    ]


def headline_metrics() -> list[Metric]:
    return [metric for metric in METRICS.values() if metric.headline]
