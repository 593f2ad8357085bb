"""Connect to Ray (extra `ray`): a running cluster, or a Ray started on this machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Bytes of shared memory when we start Ray; its own default is a third of the machine's memory. Texts do not pass
# through it, and models do once. Ray spills to disk what does not fit.
OBJECT_STORE_BYTES = 512 * 2**20


def require_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no usage statistics
    try:
        import ray
    except ImportError:
        raise ImportError('the engine ray needs the package ray: pip install ".[ray]" in a checkout') from None
    return ray


@contextmanager
def ray_session(address: str | None, cores: int | None = None) -> Iterator[Any]:
    """Use the Ray this process is connected to, else connect to a cluster, else start Ray on this machine.

    A connection that is opened here is closed at the end. Ray writes nothing but its exceptions.

    Args:
        address: of a running cluster; None: the environment variable RAY_ADDRESS, or start Ray on this machine.
        cores: number of cores of a Ray that is started here; None: all.
    """
    ray = require_ray()
    starts_here = not ray.is_initialized()
    if starts_here:
        options: dict[str, Any] = {"address": address}
        if not is_remote(address):
            options = {"address": "local", "num_cpus": cores}
            options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
            # Ray's default niceness of 15 starves its workers beside any other busy program.
            os.environ.setdefault("RAY_worker_niceness", "0")
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        with _silent_stderr():  # Ray logs that the level was set
            ray.init(**options, logging_level=logging.ERROR, log_to_driver=False)
    try:
        yield ray
    finally:
        if starts_here:
            ray.shutdown()


def is_remote(address: str | None) -> bool:
    """Whether the address, or RAY_ADDRESS, names a cluster that was started elsewhere and may grow."""
    return bool(address or os.environ.get("RAY_ADDRESS"))


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Discard standard error, including the output of compiled code."""
    original = os.dup(2)
    try:
        with open(os.devnull, "wb") as null:
            os.dup2(null.fileno(), 2)
        yield
    finally:
        os.dup2(original, 2)
        os.close(original)
