"""What `rationalizer evaluate --report` writes, and what `rationalizer serve --dataset` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.drawing import AnyExplanation, Label
    from rationalizer.drawing.attribution_section import AttributionReport
    from rationalizer.metrics import Finding, Scores
    from rationalizer.model import Rationalizer
    from rationalizer.models import TrainedModel
    from rationalizer.text import AnyExample, Budget

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)
COUNTS = (1, 2, 3, 5, 10, 20)


def write_report(
    path: Path,
    trained: TrainedModel,
    examples: Sequence[AnyExample],
    explanations: Sequence[AnyExplanation],
    truths: Sequence[Label] | None,
    scores: Scores,
    findings: Sequence[Finding],
    facts: Mapping[str, str],
    beside: AttributionReport | None = None,
) -> None:
    """One HTML page about a model on examples: its scores, what it selects, how it fares at other budgets."""
    from rationalizer.drawing.evaluation_report import Report, evaluation_report
    from rationalizer.models.atomic_files import write_bytes

    report = Report(
        title=f"{facts['model']} on {facts['data']}",
        scores=scores,
        explanations=explanations,
        truths=truths,
        findings=findings,
        facts=facts,
        budgets=_scores_by_budget(trained, examples, scores),
        attribution=beside,
    )
    write_bytes(path, evaluation_report(report).encode())


def dataset_view(model: Rationalizer, examples: Sequence[AnyExample], name: str) -> str:
    """A model on a whole dataset, for the web page; without scores where a true label is missing."""
    from rationalizer.drawing.evaluation_report import Report, report_sections
    from rationalizer.drawing.html import to_html_fragment
    from rationalizer.inference import evaluate, predict
    from rationalizer.training import degeneration_findings

    if not examples:
        raise ValueError("the dataset has no rows; give one that has")
    with show_progress(f"Explaining by {name}", len(examples)) as done:
        predictions = predict(model.trained, examples, on_batch=done)
    truths = [label for example in examples if (label := model.label_of(example)) is not None]
    labelled = len(truths) == len(examples)
    scores = evaluate(model.trained, examples, predictions=predictions) if labelled else None
    report = Report(
        title=name,
        scores=scores,
        explanations=model.explain_examples(examples, predictions=predictions),
        truths=truths if labelled else None,
        findings=degeneration_findings(model.config.method, scores) if scores else (),
    )
    return to_html_fragment(report_sections(report))


def _scores_by_budget(trained: TrainedModel, examples: Sequence[AnyExample], own: Scores) -> dict[Budget, Scores]:
    """The same model at several budgets, its own among them; nothing where it follows none."""
    from rationalizer.inference import evaluate

    if not trained.model.method.follows_budget:
        return {}
    budget = trained.config.budget
    others = [other for other in _scale(budget) if other != budget]
    found: dict[Budget, Scores] = {budget: own}
    with show_progress("Scoring at other budgets", len(others) * len(examples)) as done:
        for other in others:
            found[other] = evaluate(trained, examples, budget=other, on_batch=done)
    return found


def _scale(budget: Budget) -> list[Budget]:
    from rationalizer.text import Budget

    return [*map(Budget.count, COUNTS)] if budget.kind == "count" else [*map(Budget.share, SHARES)]
