"""Methods compared on the same footing: every run, the tables, the plots; from where an earlier call stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rationalizer.learn.storage import write_bytes
from rationalizer.metrics import METRICS
from rationalizer.plot import Point, Series, line_plot
from rationalizer.study.engines import Engine, Here
from rationalizer.study.grid import Job
from rationalizer.study.pictures import score_against_size
from rationalizer.study.run import Order, Outcome, finished
from rationalizer.study.table import Row, summarize, write_tables
from rationalizer.text import DataError


@dataclass(frozen=True)
class Comparison:
    rows: list[Row]
    ran: int  # runs that this call trained; the others were there
    failed: list[Outcome]
    files: list[Path]


def compare(
    jobs: Sequence[Job],
    out: Path,
    *,
    engine: Engine | None = None,
    threads: int = 1,
    device: str = "auto",
    precision: str | None = None,
    split: str | None = None,
    notes: Mapping[str, str] | None = None,
    plots: bool = False,
    ended: Callable[[int, Outcome], None] = lambda count, outcome: None,
) -> Comparison:
    """Runs what is not yet done of `jobs` (see `plan`), and writes tables of all of them.

    Args:
        jobs: the runs.
        out: where tables and plots go.
        engine: what carries the runs out; None: this process, one after the other.
        threads: of each training. More of them may change the order of sums, and so the last digits of a result.
        device, precision: of each training, where it runs.
        split: what is scored: "test" or "dev"; by default test, or dev where there is none.
        notes: by dataset, what a reader must know of the data ("reduced").
        plots: draw scores against budgets, beside the score against the rationales' size.
        ended: told of every run that ends: how many have ended, and how.
    """
    records = {job.directory: record for job in jobs if (record := finished(job)) is not None}
    missing = [job for job in jobs if job.directory not in records]
    failed = []
    orders = [Order(job, threads, device, precision) for job in missing]
    with closing((engine if engine and orders else Here()).run(orders)) as outcomes:
        for count, outcome in enumerate(outcomes, 1):
            if outcome.stops:
                raise DataError(outcome.error or "")
            if outcome.record is None:
                failed.append(outcome)
            else:
                records[outcome.job.directory] = outcome.record
            ended(count, outcome)
    done = [(job, records[job.directory]) for job in jobs if job.directory in records]
    rows = summarize(done, split=split, notes=notes)
    drawn = _draw(rows, out, sweep=plots)
    written = write_tables(rows, out, {name: [path.name for path in paths] for name, paths in drawn.items()})
    pictures = [path for paths in drawn.values() for path in paths]
    return Comparison(rows, len(missing) - len(failed), failed, written + pictures)


def _draw(rows: Sequence[Row], out: Path, *, sweep: bool) -> dict[str, list[Path]]:
    """Per dataset, the task score against the rationales' size, and for a sweep against the budget, with token-F1."""
    drawn: dict[str, list[Path]] = {}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        members = [row for row in rows if row.dataset == dataset]
        if (picture := score_against_size(members)) is not None:
            path = out / f"{dataset}-score-size.svg"
            write_bytes(path, picture.encode())
            drawn.setdefault(dataset, []).append(path)
        for score in dict.fromkeys([members[0].task_score, "token_f1"]) if sweep else ():
            series = _series(members, score)
            if not any(not one.everywhere for one in series):
                continue
            note = f" ({members[0].note})" if members[0].note else ""
            path = out / f"{dataset}-{score.replace('_', '-')}.svg"
            title = f"{dataset}{note}, {members[0].split}: {METRICS[score].short} against budget"
            picture = line_plot(series, title=title, x_label="budget, % of the words", y_label=METRICS[score].short)
            write_bytes(path, picture.encode())
            drawn.setdefault(dataset, []).append(path)
    return drawn


def _series(rows: Sequence[Row], score: str) -> list[Series]:
    points: dict[str, list[Point]] = {}
    level = set()
    for row in rows:
        summary = row.scores.get(score)
        if summary is None or (row.budget is not None and row.budget.kind == "count"):
            continue
        x = 0.0 if row.budget is None else round(100 * row.budget.amount, 6)
        points.setdefault(row.method, []).append(Point(x, summary))
        if row.budget is None:
            level.add(row.method)
    return [
        Series(method, tuple(sorted(found, key=lambda p: p.x)), everywhere=method in level)
        for method, found in points.items()
    ]
