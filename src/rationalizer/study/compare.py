"""Methods compared on the same footing: every run, the tables, the plots; from where an earlier call stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rationalizer.learn.storage import write_bytes
from rationalizer.study.grid import Job
from rationalizer.study.pictures import pictures
from rationalizer.study.pool import Outcome, run_all
from rationalizer.study.run import finished
from rationalizer.study.table import Row, summarize, write_tables


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
    workers: int = 1,
    threads: int = 1,
    split: str | None = None,
    notes: Mapping[str, str] | None = None,
    ended: Callable[[int, Outcome], None] = lambda count, outcome: None,
    **trainer: Any,
) -> Comparison:
    """Runs what is not yet done of `jobs` (see `plan`), and writes tables of all of them.

    Args:
        jobs: the runs.
        out: where tables and plots go.
        workers: how many trainings run at once.
        threads: of each training. More of them may change the order of sums, and so the last digits of a result.
        split: what is scored: "test" or "dev"; by default test, or dev where there is none.
        notes: by dataset, what a reader must know of the data, where it is not what `Source.note` finds.
        ended: told of every run that ends: how many have ended, and how.
        trainer: `accelerator` and `precision` of Lightning's Trainer.
    """
    records = {job.directory: record for job in jobs if (record := finished(job)) is not None}
    missing = [job for job in jobs if job.directory not in records]
    failed = []
    with closing(run_all(missing, workers=workers, threads=threads, trainer=trainer)) as outcomes:
        for count, outcome in enumerate(outcomes, 1):
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
