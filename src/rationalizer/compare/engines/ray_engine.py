"""Runs as tasks of Ray, on this machine or on a cluster (extra `ray`)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from rationalizer.compare.single_run import Order, Outcome
from rationalizer.ray_cluster import connected, is_elsewhere
from rationalizer.subprocesses import PATIENCE, run_module


@dataclass(frozen=True)
class Ray:
    """Each run is a task that takes as many CPUs as it has threads, and `gpus`, a part of one if below 1.

    Args:
        address: of a running cluster; None: that of the variable RAY_ADDRESS, or a Ray of this machine's own.
        gpus: of each run.
        workers: how many run at once; None: as many as there is room for.
    """

    address: str | None = None
    gpus: float = 0
    workers: int | None = None

    def run(self, orders: Sequence[Order]) -> Generator[Outcome]:
        waiting, running = list(orders)[::-1], dict[Any, Order]()
        with connected(self.address) as ray:
            self._check_room(ray, max(order.threads for order in orders))
            task = ray.remote(run_module)
            try:
                while waiting or running:
                    while waiting and len(running) < (self.workers or len(orders)):
                        order = waiting.pop()
                        options = {"num_cpus": order.threads, "num_gpus": self.gpus, "name": order.job.title}
                        # What dies is reported, and goes on with the next call, as on the other engines.
                        running[task.options(**options, max_retries=0).remote(order.call())] = order
                    for ended in ray.wait(list(running))[0]:
                        yield _outcome(ray, ended, running.pop(ended))
            finally:
                for reference in running:
                    ray.cancel(reference)
                if running:  # they end their processes first
                    ray.wait(list(running), num_returns=len(running), timeout=2 * PATIENCE)

    def _check_room(self, ray: Any, threads: int) -> None:
        """Ray would wait for ever for what no machine has; only a cluster that is elsewhere may grow."""
        if is_elsewhere(self.address):
            return
        there = ray.cluster_resources()
        for kind, wanted, option in (("CPU", threads, "--threads"), ("GPU", self.gpus, "--gpus")):
            if wanted > there.get(kind, 0):
                raise ValueError(
                    f"Ray has {there.get(kind, 0):g} {kind}s here, but {option} asks for {wanted:g}; ask for less"
                )


def _outcome(ray: Any, reference: Any, order: Order) -> Outcome:
    try:
        return Outcome.of(order.job, ray.get(reference))
    except ray.exceptions.RayError as error:  # a worker or a machine is gone
        lines = str(error).strip().splitlines()
        return Outcome(order.job, error=f"Ray: {lines[-1] if lines else type(error).__name__}")
