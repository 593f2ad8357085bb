"""Methods compared on the same footing: every run, the tables, the plots; from where an earlier call stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rationalizer.compare.comparison_charts import pictures
from rationalizer.compare.engines import Engine, Here
from rationalizer.compare.grid import Job
from rationalizer.compare.result_tables import Row, summarize, write_tables
from rationalizer.compare.single_run import Order, Outcome, finished
from rationalizer.models.atomic_files import write_bytes
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
        notes: by dataset, what a encoder must know of the data, where it is not what `Source.note` finds.
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
    found = {job.source.name: job.source.note(job.config.cut) for job, _ in done}
    rows = summarize(done, split=split, notes=found | dict(notes or {}))
    drawn = _draw(rows, out)
    written = write_tables(rows, out, {name: [path.name for path in paths] for name, paths in drawn.items()})
    written += [path for paths in drawn.values() for path in paths]
    return Comparison(rows, len(missing) - len(failed), failed, written)


def _draw(rows: Sequence[Row], out: Path) -> dict[str, list[Path]]:
    """The pictures of each dataset."""
    drawn: dict[str, list[Path]] = {}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        for name, picture in pictures([row for row in rows if row.dataset == dataset]):
            write_bytes(out / name, picture.encode())
            drawn.setdefault(dataset, []).append(out / name)
    return drawn
