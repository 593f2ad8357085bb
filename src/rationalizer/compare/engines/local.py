"""The engine interface, and the engines that need only this machine."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass
from subprocess import Popen
from typing import Protocol

from rationalizer.compare.single_run import RunOutcome, RunTask, execute
from rationalizer.subprocesses import run_module, terminate


class Engine(Protocol):
    def run(self, tasks: Sequence[RunTask]) -> Generator[RunOutcome]:
        """Execute all tasks and yield each outcome when it is known. Closing the generator ends what it started."""
        ...


class InProcessEngine:
    """One run after the other in this process, which saves the start-up seconds of subprocesses."""

    def run(self, tasks: Sequence[RunTask]) -> Generator[RunOutcome]:
        for task in tasks:
            yield execute(task)


@dataclass(frozen=True)
class LocalEngine:
    """One subprocess per run, `workers` at a time."""

    workers: int

    def run(self, tasks: Sequence[RunTask]) -> Generator[RunOutcome]:
        processes: list[Popen[str]] = []
        with ThreadPoolExecutor(self.workers) as pool:  # each thread only waits for its process
            futures = {pool.submit(run_module, task.command(), processes.append): task.run for task in tasks}
            try:
                for future in as_completed(futures):
                    yield RunOutcome.from_result(futures[future], future.result())
            finally:
                for future in futures:
                    future.cancel()
                while wait(futures, timeout=0).not_done:  # a process may be starting just now
                    for process in processes:
                        terminate(process)
                    wait(futures, timeout=0.1)
