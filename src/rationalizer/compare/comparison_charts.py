"""Pictures of a comparison: what the table says, one file for each thing that it is drawn against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rationalizer.compare.result_tables import ResultRow
from rationalizer.drawing.charts import Bar, Dot, Point, Series, bar_plot, line_plot, scatter_plot
from rationalizer.metrics import METRICS, Summary

AGREEMENT = ("token_f1", "iou_f1", "auprc", "alignment_f1")  # with people, where they marked something
COST = "seconds_per_epoch"


def charts(rows: Sequence[ResultRow]) -> Iterator[tuple[str, str]]:
    """What can be drawn of one dataset's rows: names of files and SVG documents.

    The task's score and the agreement with people against the budget where there are several budgets, the score against
    the size of the rationales, and the seconds of an epoch.
    """
    name = rows[0].dataset
    scores = [rows[0].task_score, *AGREEMENT]
    found = {
        f"{name}-score-size": score_against_size(rows),
        **{f"{name}-{score.replace('_', '-')}": score_against_budget(rows, score) for score in scores},
        f"{name}-cost": training_cost(rows),
    }
    yield from ((f"{file}.svg", picture) for file, picture in found.items() if picture is not None)


def score_against_size(rows: Sequence[ResultRow]) -> str | None:
    """The task score of one dataset's methods against what they select, with the range over the seeds.

    Sizes are shares of the words; of pairs, counts of aligned words. None if no row has both.
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


def score_against_budget(rows: Sequence[ResultRow], score: str) -> str | None:
    """A score against the budget, with the band of the seeds; None unless some method was trained with several.

    A method that has no use for a budget is a level line.
    """
    points: dict[str, list[Point]] = {}
    level = {row.method for row in rows if row.budget is None}
    for row in rows:
        if score not in row.scores or (row.budget is not None and row.budget.kind == "count"):
            continue
        x = 0.0 if row.budget is None else round(100 * row.budget.amount, 6)
        points.setdefault(row.method, []).append(Point(x, row.scores[score]))
    if all(len(found) < 2 for found in points.values()):
        return None
    series = [
        Series(method, tuple(sorted(found, key=lambda point: point.x)), everywhere=method in level)
        for method, found in points.items()
    ]
    name = METRICS[score].short_name
    title = _title(rows, f"{name} against budget")
    return line_plot(series, title=title, x_label="budget, % of the words", y_label=name)


def training_cost(rows: Sequence[ResultRow]) -> str | None:
    """Seconds per epoch of each method, over its seeds and budgets; None unless there are several methods."""
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


def _title(rows: Sequence[ResultRow], what: str) -> str:
    return f"{rows[0].data}, {rows[0].split}: {what}"


def _scaled(score: Summary, scale: float) -> Summary:
    return Summary(scale * score.mean, scale * score.low, scale * score.high)
