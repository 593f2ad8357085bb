"""Execute runs as Ray tasks, on this machine or on a cluster (extra `ray`)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from rationalizer.compare.single_run import RunOutcome, RunTask
from rationalizer.ray_cluster import is_remote, ray_session
from rationalizer.subprocesses import GRACE_SECONDS, run_module


@dataclass(frozen=True)
class RayEngine:
    """One Ray task per run. A task reserves one CPU per thread, and `gpus`.

    Args:
        address: of a running cluster; None: the environment variable RAY_ADDRESS, or a Ray started on this machine.
        gpus: of each run; 0.25 is a quarter of one.
        workers: number of runs at once; None: as many as fit.
    """

    address: str | None = None
    gpus: float = 0
    workers: int | None = None

    def run(self, tasks: Sequence[RunTask]) -> Generator[RunOutcome]:
        waiting, running = list(tasks)[::-1], dict[Any, RunTask]()
        with ray_session(self.address) as ray:
            self._check_resources(ray, max(task.threads for task in tasks))
            remote = ray.remote(run_module)
            try:
                while waiting or running:
                    while waiting and len(running) < (self.workers or len(tasks)):
                        task = waiting.pop()
                        options = {"num_cpus": task.threads, "num_gpus": self.gpus, "name": task.run.title}
                        # A failed run is reported and resumed by the next call, as with the other engines.
                        running[remote.options(**options, max_retries=0).remote(task.command())] = task
                    for reference in ray.wait(list(running))[0]:
                        yield _outcome(ray, reference, running.pop(reference))
            finally:
                for reference in running:
                    ray.cancel(reference)
                if running:  # each task ends its subprocess first
                    ray.wait(list(running), num_returns=len(running), timeout=2 * GRACE_SECONDS)

    def _check_resources(self, ray: Any, threads: int) -> None:
        """Raise ValueError if this machine lacks the resources: Ray would wait for ever. A remote cluster may grow."""
        if is_remote(self.address):
            return
        available = ray.cluster_resources()
        for kind, wanted, option in (("CPU", threads, "--threads"), ("GPU", self.gpus, "--gpus")):
            if wanted > available.get(kind, 0):
                raise ValueError(
                    f"{option} {wanted:g} exceeds the {available.get(kind, 0):g} {kind}s that Ray has here; "
                    f"use a smaller {option}"
                )


def _outcome(ray: Any, reference: Any, task: RunTask) -> RunOutcome:
    try:
        return RunOutcome.from_result(task.run, ray.get(reference))
    except ray.exceptions.RayError as error:  # a worker or a machine was lost
        lines = str(error).strip().splitlines()
        return RunOutcome(task.run, error=f"Ray: {lines[-1] if lines else type(error).__name__}")
