"""What an engine is; those that need nothing but this machine."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass
from subprocess import Popen
from typing import Protocol

from rationalizer.compare.single_run import Order, Outcome, carry_out
from rationalizer.subprocesses import end, run_module


class Engine(Protocol):
    def run(self, orders: Sequence[Order]) -> Generator[Outcome]:
        """Carries all orders out and yields each one's outcome as it comes. Closed early, it ends what it started."""
        ...


class Here:
    """One after the other in this process, which spares each the seconds that a new one takes to start."""

    def run(self, orders: Sequence[Order]) -> Generator[Outcome]:
        for order in orders:
            yield carry_out(order)


@dataclass(frozen=True)
class Local:
    """A process for each run, `workers` at a time."""

    workers: int

    def run(self, orders: Sequence[Order]) -> Generator[Outcome]:
        processes: list[Popen[str]] = []
        with ThreadPoolExecutor(self.workers) as pool:  # a thread does nothing but wait for its process
            futures = {pool.submit(run_module, order.call(), processes.append): order.job for order in orders}
            try:
                for future in as_completed(futures):
                    yield Outcome.of(futures[future], future.result())
            finally:
                for future in futures:
                    future.cancel()
                while wait(futures, timeout=0).not_done:  # one of them may be about to start
                    for process in processes:
                        end(process)
                    wait(futures, timeout=0.1)
