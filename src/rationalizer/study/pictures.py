"""Pictures of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from rationalizer.metrics import METRICS, Spread
from rationalizer.plot import Dot, scatter_plot
from rationalizer.study.table import Row


def score_against_size(rows: Sequence[Row]) -> str | None:
    """The task score of one dataset's methods against what they select, with the range over the seeds, as SVG.

    Sizes are shares of the words; of pairs, counts of aligned words. None if no row has both.
    """
    for size, label, scale in (("size", "rationale size, % of the words", 100.0), ("alignments", "aligned words", 1.0)):
        dots = [
            Dot(row.method, _scaled(row.scores[size], scale), row.scores[row.task_score])
            for row in rows
            if size in row.scores and row.task_score in row.scores
        ]
        if dots:
            first = rows[0]
            note = f" ({first.note})" if first.note else ""
            name = METRICS[first.task_score].words
            title = f"{first.dataset}{note}, {first.split}: {name} against rationale size"
            return scatter_plot(dots, title=title, x_label=label, y_label=name)
    return None


def _scaled(score: Spread, scale: float) -> Spread:
    return Spread(scale * score.mean, scale * score.low, scale * score.high)
