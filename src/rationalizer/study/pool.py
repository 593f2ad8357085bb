"""Runs side by side, each in a process with its own share of threads."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from rationalizer.learn.runs import Record
from rationalizer.study.grid import Job
from rationalizer.study.run import run_job
from rationalizer.text import DataError

# Something the runs share is missing or wrong: the study stops. Any other error concerns one run.
INPUT_ERRORS = (DataError, OSError, ImportError)


@dataclass(frozen=True)
class Outcome:
    """What became of a job: its record, or why there is none."""

    job: Job
    record: Record | None = None
    error: str | None = None


def run_all(jobs: Sequence[Job], *, workers: int, threads: int, trainer: Mapping[str, Any]) -> Generator[Outcome]:
    """Runs the jobs, `workers` at a time, and yields each one's outcome as it comes.

    Every training has `threads` threads, however many run at once: what it learns depends on its seed alone.
    """
    if workers == 1 or len(jobs) <= 1:
        yield from _here(jobs, threads, trainer)
    else:
        yield from _beside(jobs, min(workers, len(jobs)), threads, trainer)


def _here(jobs: Sequence[Job], threads: int, trainer: Mapping[str, Any]) -> Generator[Outcome]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for job in jobs:
            try:
                outcome = Outcome(job, run_job(job, **trainer))
            except INPUT_ERRORS:
                raise
            except Exception as error:
                outcome = Outcome(job, error=_words(error))
            yield outcome
    finally:
        torch.set_num_threads(before)


def _beside(jobs: Sequence[Job], workers: int, threads: int, trainer: Mapping[str, Any]) -> Generator[Outcome]:
    waiting = list(jobs)[::-1]
    crew: dict[Connection, tuple[Any, Job]] = {}
    try:
        for _ in range(workers):
            _hire(crew, waiting.pop(), threads, trainer)
        while crew:
            for ready in wait(list(crew)):
                assert isinstance(ready, Connection)
                process, job = crew.pop(ready)
                try:
                    outcome, problem = ready.recv()
                    if problem is not None:
                        crew[ready] = (process, job)  # to be ended with the others
                        raise problem
                    alive = True
                except (EOFError, OSError):  # one that dies before it has read its job resets the connection
                    process.join()
                    outcome, alive = Outcome(job, error=f"its process ended with code {process.exitcode}"), False
                if alive and waiting:
                    crew[ready] = (process, waiting.pop())
                    _hand_over(ready, crew[ready][1])
                else:
                    ready.close()
                    process.join()
                    if waiting:
                        _hire(crew, waiting.pop(), threads, trainer)
                yield outcome
    finally:
        for connection, (process, _) in crew.items():
            process.terminate()
            process.join()
            connection.close()


def _hire(crew: dict[Connection, tuple[Any, Job]], job: Job, threads: int, trainer: Mapping[str, Any]) -> None:
    context = get_context("spawn")  # a fork would inherit locks of threads it does not have
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, threads, dict(trainer)))
    process.start()
    theirs.close()
    crew[ours] = (process, job)
    _hand_over(ours, job)


def _hand_over(connection: Connection, job: Job) -> None:
    # A worker that has died since its last word is noticed where its answer is waited for, as any other.
    with suppress(BrokenPipeError, ConnectionResetError):
        connection.send(job)


def _work(connection: Connection, threads: int, trainer: dict[str, Any]) -> None:
    """A worker's life: jobs come in and outcomes go out until the other side hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the first one ends the others
    torch.set_num_threads(threads)
    while True:
        try:
            job = connection.recv()
        except (EOFError, ConnectionResetError):
            return
        problem: Exception | None = None
        outcome: Outcome | None = None
        try:
            outcome = Outcome(job, run_job(job, progress=False, **trainer))
        except INPUT_ERRORS as error:
            problem = DataError(str(error))  # errors of other kinds may not survive the way
        except Exception as error:
            outcome = Outcome(job, error=_words(error))
        try:
            connection.send((outcome, problem))
        except (BrokenPipeError, ConnectionResetError):
            return


def _words(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({last.filename}, line {last.lineno})"
