"""Runs as jobs of Slurm, submitted by submitit (extra `slurm`)."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rationalizer.compare.single_run import Order, Outcome
from rationalizer.subprocesses import Resumed
from rationalizer.training.runs import record_of

NAME = "rationalizer"  # of the jobs, as squeue shows it
TIME = "60"  # minutes; a run that needs more is put into the queue again and goes on from its checkpoint
LOOK, ASK = 1.0, 20.0  # seconds between looks at the folder, and between questions to Slurm
DURATION = re.compile(r"(?:(?P<days>\d+)-)?(?P<parts>\d+(?::\d+){0,2})")


@dataclass(frozen=True)
class Slurm:
    """One array of jobs, each of which takes as many CPUs as it has threads.

    Args:
        folder: for submitit's scripts and logs; every node must see it, as it must see data and runs.
        options: of sbatch, by their long names: {"partition": "gpu", "gres": "gpu:1", "time": "2:00:00"}.
        workers: how many run at once; None: as many as Slurm starts.
        cluster: "local" runs the jobs on this machine without Slurm.
    """

    folder: Path
    options: Mapping[str, str] = field(default_factory=dict)
    workers: int | None = None
    cluster: str = "slurm"

    def run(self, orders: Sequence[Order]) -> Generator[Outcome]:
        waiting = dict(zip(self._submit(orders), orders, strict=True))
        asked, missed = time.monotonic(), set[Any]()
        try:
            while waiting:
                time.sleep(LOOK)
                for job in [job for job in waiting if job.paths.result_pickle.exists()]:
                    yield _outcome(job, waiting.pop(job))
                if time.monotonic() - asked < ASK:
                    continue
                asked, before = time.monotonic(), missed
                missed = {job for job in waiting if not self._knows(job)}
                for job in missed & before:  # twice, because files come late on disks that are far away
                    yield _lost(job, waiting.pop(job))
        finally:
            for job in waiting:
                job.cancel(check=False)

    def _submit(self, orders: Sequence[Order]) -> list[Any]:
        try:
            import submitit
        except ImportError:
            raise ImportError(
                'the engine slurm needs the package submitit: pip install ".[slurm]" in a checkout'
            ) from None
        if self.cluster == "slurm" and shutil.which("sbatch") is None:
            raise OSError("there is no command sbatch here; call this where Slurm's jobs are submitted")
        options = {key.replace("-", "_"): value for key, value in self.options.items()}
        executor = submitit.AutoExecutor(self.folder.absolute(), cluster=self.cluster, slurm_max_num_timeout=1000)
        executor.update_parameters(
            name=NAME,
            timeout_min=_minutes(options.pop("time", TIME)),
            cpus_per_task=max(order.threads for order in orders),
            slurm_array_parallelism=self.workers or len(orders),
            slurm_additional_parameters={key: value or True for key, value in options.items()},
        )
        try:
            return list(executor.map_array(Resumed(), [order.call() for order in orders]))
        except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
            raise ValueError(f"Slurm does not take the jobs: {' '.join(str(error).split())}") from None

    def _knows(self, job: Any) -> bool:
        """Whether a job is still waiting or running; True where Slurm gives no answer."""
        if self.cluster != "slurm":
            return not job.done()
        asked = subprocess.run(
            ["squeue", "--me", "--array", "--noheader", "--format=%i"], capture_output=True, text=True
        )
        return asked.returncode != 0 or job.job_id in asked.stdout.split()


def _outcome(job: Any, order: Order) -> Outcome:
    error = job.exception()
    if error is None:
        return Outcome.of(order.job, job.result())
    return Outcome(order.job, error=f"job {job.job_id}: {str(error).strip().splitlines()[-1]}")


def _lost(job: Any, order: Order) -> Outcome:
    record = record_of(order.job.directory)
    why = f"Slurm ended job {job.job_id} before it was done; see {job.paths.stderr}"
    return Outcome(order.job, record, None if record else why)


def _minutes(time: str) -> int:
    """A time limit as sbatch takes it: minutes, minutes:seconds, hours:minutes:seconds, or days-hours and so on."""
    found = DURATION.fullmatch(time)
    if found is None:
        raise ValueError(f"the time limit {time!r} is none that sbatch knows; write 120, 2:00:00 or 1-12")
    parts = [int(part) for part in found["parts"].split(":")]
    if found["days"] is None and len(parts) < 3:
        parts = [0, *parts]
    hours, minutes, seconds = (*parts, 0, 0)[:3]
    return max(1, 1440 * int(found["days"] or 0) + 60 * hours + minutes + (seconds > 0))
