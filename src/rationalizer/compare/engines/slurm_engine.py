"""Execute runs as Slurm jobs, submitted by submitit (extra `slurm`)."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rationalizer.compare.single_run import RunOutcome, RunTask
from rationalizer.subprocesses import ResumableCommand
from rationalizer.text.errors import InputError
from rationalizer.training.runs import read_run_record

JOB_NAME = "rationalizer"  # name shown by squeue
TIME_LIMIT = "60"  # minutes; a run that needs more is submitted again and resumes from its checkpoint
POLL_SECONDS = 1.0  # interval between checks for result files
SQUEUE_SECONDS = 20.0  # interval between calls of squeue
DURATION = re.compile(r"(?:(?P<days>\d+)-)?(?P<parts>\d+(?::\d+){0,2})")


@dataclass(frozen=True)
class SlurmEngine:
    """One array of Slurm jobs, one job per run. A job reserves one CPU per thread.

    Args:
        folder: for submitit's scripts and logs. Every node must be able to read it, the data and the runs' folders.
        options: of sbatch, by their long names: {"partition": "gpu", "gres": "gpu:1", "time": "2:00:00"}.
        workers: number of runs at once; None: as many as Slurm starts.
        cluster: "local" executes the jobs on this machine without Slurm.
    """

    folder: Path
    options: Mapping[str, str] = field(default_factory=dict)
    workers: int | None = None
    cluster: str = "slurm"

    def __post_init__(self) -> None:
        for key, value in self.options.items():
            if not f"{key}{value}".isprintable():  # a line break would add lines to the script
                raise InputError(
                    f"the option {key!r} of sbatch has a control character in its value {value!r}", "remove it"
                )

    def run(self, tasks: Sequence[RunTask]) -> Generator[RunOutcome]:
        waiting = dict(zip(self._submit(tasks), tasks, strict=True))
        last_check, missing = time.monotonic(), set[Any]()
        try:
            while waiting:
                time.sleep(POLL_SECONDS)
                for job in [job for job in waiting if job.paths.result_pickle.exists()]:
                    yield _outcome(job, waiting.pop(job))
                if time.monotonic() - last_check < SQUEUE_SECONDS:
                    continue
                last_check, missing_before = time.monotonic(), missing
                missing = {job for job in waiting if not self._is_queued(job)}
                for job in missing & missing_before:  # twice: result files arrive late on network disks
                    yield _outcome_of_lost_job(job, waiting.pop(job))
        finally:
            for job in waiting:
                job.cancel(check=False)

    def _submit(self, tasks: Sequence[RunTask]) -> list[Any]:
        try:
            import submitit
        except ImportError:
            raise ImportError(
                'the engine slurm needs the package submitit: pip install ".[slurm]" in a checkout'
            ) from None
        if self.cluster == "slurm" and shutil.which("sbatch") is None:
            raise OSError("there is no command sbatch on this machine; run this on a login node of the Slurm cluster")
        options = {key.replace("-", "_"): value for key, value in self.options.items()}
        executor = submitit.AutoExecutor(self.folder.absolute(), cluster=self.cluster, slurm_max_num_timeout=1000)
        executor.update_parameters(
            name=JOB_NAME,
            timeout_min=_minutes(options.pop("time", TIME_LIMIT)),
            cpus_per_task=max(task.threads for task in tasks),
            slurm_array_parallelism=self.workers or len(tasks),
            slurm_additional_parameters={key: value or True for key, value in options.items()},
        )
        try:
            return list(executor.map_array(ResumableCommand(), [task.command() for task in tasks]))
        except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
            raise ValueError(f"Slurm rejected the jobs: {' '.join(str(error).split())}") from None

    def _is_queued(self, job: Any) -> bool:
        """Whether a job is waiting or running; True if squeue fails."""
        if self.cluster != "slurm":
            return not job.done()
        squeue = subprocess.run(
            ["squeue", "--me", "--array", "--noheader", "--format=%i"], capture_output=True, text=True
        )
        return squeue.returncode != 0 or job.job_id in squeue.stdout.split()


def _outcome(job: Any, task: RunTask) -> RunOutcome:
    error = job.exception()
    if error is None:
        return RunOutcome.from_result(task.run, job.result())
    return RunOutcome(task.run, error=f"job {job.job_id}: {str(error).strip().splitlines()[-1]}")


def _outcome_of_lost_job(job: Any, task: RunTask) -> RunOutcome:
    record = read_run_record(task.run.directory)
    error = f"Slurm ended job {job.job_id} before the run was finished; see {job.paths.stderr}"
    return RunOutcome(task.run, record, None if record else error)


def _minutes(limit: str) -> int:
    """Parse a time limit of sbatch: minutes, minutes:seconds, hours:minutes:seconds, days-hours and so on."""
    match = DURATION.fullmatch(limit)
    if match is None:
        raise ValueError(f"invalid time limit {limit!r} for sbatch; write 120, 2:00:00 or 1-12")
    parts = [int(part) for part in match["parts"].split(":")]
    if match["days"] is None and len(parts) < 3:
        parts = [0, *parts]
    hours, minutes, seconds = (*parts, 0, 0)[:3]
    return max(1, 1440 * int(match["days"] or 0) + 60 * hours + minutes + (seconds > 0))
