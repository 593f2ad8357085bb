"""Compare methods under the same conditions: execute every run, write tables and charts, resume an earlier call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rationalizer.compare.comparison_charts import charts
from rationalizer.compare.engines import Engine, InProcessEngine
from rationalizer.compare.grid import PlannedRun
from rationalizer.compare.result_tables import ResultRow, summarize, write_tables
from rationalizer.compare.single_run import RunOutcome, RunTask, finished_record
from rationalizer.models.atomic_files import write_bytes
from rationalizer.text import DataError


@dataclass(frozen=True)
class Comparison:
    rows: list[ResultRow]
    trained: int  # number of runs that this call trained; the others were finished before
    failed: list[RunOutcome]
    files: list[Path]


def compare(
    runs: Sequence[PlannedRun],
    out: Path,
    *,
    engine: Engine | None = None,
    threads: int = 1,
    device: str = "auto",
    precision: str | None = None,
    split: str | None = None,
    notes: Mapping[str, str] | None = None,
    on_run_end: Callable[[int, RunOutcome], None] = lambda count, outcome: None,
) -> Comparison:
    """Execute the runs that are not finished, and write tables and charts of all of them.

    Args:
        runs: see `plan_runs`.
        out: folder for tables and charts.
        engine: executes the runs; None: this process, one run after the other.
        threads: of each training. Another number may change the order of sums, and so the last digits of a result.
        device, precision: of each training, on the machine where it runs.
        split: the scored split: "test" or "dev"; default: test, or dev if there is none.
        notes: by dataset, a remark on the data for the tables; default: `DataSource.note`.
        on_run_end: called after each run with the number of runs that have ended and the run's outcome.
    """
    records = {run.directory: record for run in runs if (record := finished_record(run)) is not None}
    tasks = [RunTask(run, threads, device, precision) for run in runs if run.directory not in records]
    failed = []
    with closing((engine if engine and tasks else InProcessEngine()).run(tasks)) as outcomes:
        for count, outcome in enumerate(outcomes, 1):
            if outcome.is_fatal:
                raise DataError(outcome.error or "")
            if outcome.record is None:
                failed.append(outcome)
            else:
                records[outcome.run.directory] = outcome.record
            on_run_end(count, outcome)
    finished = [(run, records[run.directory]) for run in runs if run.directory in records]
    default_notes = {run.source.name: run.source.note(run.config.word_splitting) for run, _ in finished}
    rows = summarize(finished, split=split, notes=default_notes | dict(notes or {}))
    drawn = _draw(rows, out)
    files = write_tables(rows, out, {name: [path.name for path in paths] for name, paths in drawn.items()})
    files += [path for paths in drawn.values() for path in paths]
    return Comparison(rows, len(tasks) - len(failed), failed, files)


def _draw(rows: Sequence[ResultRow], out: Path) -> dict[str, list[Path]]:
    """Write the charts of each dataset; return their files by dataset."""
    drawn: dict[str, list[Path]] = {}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        for name, chart in charts([row for row in rows if row.dataset == dataset]):
            write_bytes(out / name, chart.encode())
            drawn.setdefault(dataset, []).append(out / name)
    return drawn
