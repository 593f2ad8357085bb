"""All scores of one model on one set of documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rationalizer.metrics.degeneration import Finding, find_degeneration, find_unpredicted_classes
from rationalizer.metrics.evaluation import Evaluation, TextEvaluation
from rationalizer.metrics.registry import METRICS, compute_values


class Scores(Mapping[str, float]):
    """The measured scores by name; the names are those of `METRICS`.

    `scores["macro_f1"]` raises a KeyError if it was not measured; `scores.macro_f1` is then None.

    Args:
        findings: signs of degeneration.
        by_label: the scores of each of several labels or targets; `values` are then over all of them.
        values: scores by name; None: not measured.
    """

    def __init__(
        self,
        *,
        findings: tuple[Finding, ...] = (),
        by_label: Mapping[str, Scores] | None = None,
        **values: float | None,
    ) -> None:
        for name in values:
            METRICS[name]  # an unknown name is an error
        self._values = {name: value for name, value in values.items() if value is not None}
        self.findings = findings
        self.by_label: Mapping[str, Scores] = by_label or {}

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> float | None:
        if name in METRICS:
            return self._values.get(name)
        raise AttributeError(f"there is no metric {name!r}")

    def __repr__(self) -> str:
        return f"Scores({', '.join(f'{name}={value!r}' for name, value in self.items())}, findings={self.findings!r})"

    def replace(self, **values: float | None) -> Scores:
        """A copy with other values; None removes a score."""
        return Scores(findings=self.findings, by_label=self.by_label, **{**self._values, **values})

    def as_dict(self) -> dict[str, float]:
        """The measured scores as one flat row of a table; without the findings."""
        return dict(self._values)


def compute_scores(evaluation: Evaluation) -> Scores:
    """Compute all metrics that the evaluation allows, and look for signs of degeneration."""
    values: dict[str, Any] = dict(compute_values(evaluation))
    return Scores(findings=_findings(evaluation), **values)


def _findings(evaluation: Evaluation) -> tuple[Finding, ...]:
    findings: list[Finding] = []
    if isinstance(evaluation, TextEvaluation):
        labels: dict[str, Any] = {}
        if evaluation.task is not None:
            labels = {"task": evaluation.task, "truth": evaluation.truth, "predictions": evaluation.predictions}
        findings += find_degeneration(evaluation.rationales, **labels)
    if evaluation.task == "classification" and evaluation.truth is not None:
        missing = find_unpredicted_classes(evaluation.truth, evaluation.predictions, evaluation.class_names)
        findings += [] if missing is None else [missing]
    return tuple(findings)
