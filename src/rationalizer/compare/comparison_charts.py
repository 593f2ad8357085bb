"""Charts of a comparison: scores against rationale size and against budget, and the training cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rationalizer.compare.result_tables import ResultRow
from rationalizer.drawing.charts import Bar, Dot, Point, Series, bar_plot, line_plot, scatter_plot
from rationalizer.metrics import METRICS, Summary

AGREEMENT = ("token_f1", "iou_f1", "auprc", "alignment_f1")  # scores of agreement with annotations
COST = "seconds_per_epoch"


def charts(rows: Sequence[ResultRow]) -> Iterator[tuple[str, str]]:
    """Yield file names and SVG documents for the rows of one dataset.

    The task score against the rationale size; the task score and the agreement with annotations against the budget, if
    there are several budgets; the seconds per epoch.
    """
    name = rows[0].dataset
    scores = [rows[0].task_score, *AGREEMENT]
    drawn = {
        f"{name}-score-size": score_against_size(rows),
        **{f"{name}-{score.replace('_', '-')}": score_against_budget(rows, score) for score in scores},
        f"{name}-cost": training_cost(rows),
    }
    yield from ((f"{file}.svg", chart) for file, chart in drawn.items() if chart is not None)


def score_against_size(rows: Sequence[ResultRow]) -> str | None:
    """Draw the task score against the rationale size, with the range over the seeds.

    The size is a share of the words; for pairs, the number of aligned words. Return None if no row has both.
    """
    for size, label, scale in (("size", "rationale size, % of the words", 100.0), ("alignments", "aligned words", 1.0)):
        dots = [
            Dot(row.method, _scaled(row.scores[size], scale), row.scores[row.task_score])
            for row in rows
            if size in row.scores and row.task_score in row.scores
        ]
        if dots:
            name = METRICS[rows[0].task_score].description
            return scatter_plot(dots, title=_title(rows, f"{name} against rationale size"), x_label=label, y_label=name)
    return None


def score_against_budget(
    rows: Sequence[ResultRow], score: str, levels: Mapping[str, Summary] | None = None
) -> str | None:
    """Draw a score against the budget, with the range over the seeds; a method without a budget is a level line.

    `levels` are further level lines, such as the agreement among people. Return None unless some method was trained
    with several budgets.
    """
    points: dict[str, list[Point]] = {}
    level = {row.method for row in rows if row.budget is None}
    for row in rows:
        if score not in row.scores or (row.budget is not None and row.budget.kind in ("count", "enough")):
            continue
        x = 0.0 if row.budget is None else round(100 * row.budget.amount, 6)
        points.setdefault(row.method, []).append(Point(x, row.scores[score]))
    if all(len(own) < 2 for own in points.values()):
        return None
    series = [
        Series(method, tuple(sorted(own, key=lambda point: point.x)), everywhere=method in level)
        for method, own in points.items()
    ]
    series += [Series(label, (Point(0.0, value),), everywhere=True) for label, value in (levels or {}).items()]
    name = METRICS[score].short_name
    title = _title(rows, f"{name} against budget")
    return line_plot(series, title=title, x_label="budget, % of the words", y_label=name)


def training_cost(rows: Sequence[ResultRow]) -> str | None:
    """Draw the seconds per epoch of each method over seeds and budgets. Return None if there is only one method."""
    seconds: dict[str, list[float]] = {}
    for row in rows:
        if COST in row.scores:
            seconds.setdefault(row.method, []).extend(row.scores[COST].values)
    if len(seconds) < 2:
        return None
    bars = [Bar(method, Summary.from_values(values)) for method, values in seconds.items()]
    metric = METRICS[COST]
    label = f"{metric.description}, training and validation"
    return bar_plot(
        bars, title=f"{rows[0].data}: {metric.description}", x_label=label, format_value=metric.format_value
    )


def _title(rows: Sequence[ResultRow], text: str) -> str:
    return f"{rows[0].data}, {rows[0].split}: {text}"


def _scaled(score: Summary, scale: float) -> Summary:
    return Summary(scale * score.mean, scale * score.low, scale * score.high)
