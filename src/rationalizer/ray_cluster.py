"""Ray (extra `ray`): of a cluster, or of this machine alone."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Of shared memory, on a machine where we start Ray. Texts do not pass through it; models do, once. What it cannot hold
# goes to the disk. Ray's own default is a third of the machine.
OBJECT_STORE = 512 * 2**20


def require_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    try:
        import ray
    except ImportError:
        raise ImportError('the engine ray needs the package ray: pip install ".[ray]" in a checkout') from None
    return ray


@contextmanager
def connected(address: str | None, cores: int | None = None) -> Iterator[Any]:
    """Ray as this process has it already; that of a cluster; or one of our own with so many cores (None: all of them).
    What was begun here ends here, and is silent but for its exceptions.

    Args:
        address: of a running cluster; None: that of the variable RAY_ADDRESS, or a Ray of this machine's own.
        cores: of our own.
    """
    ray = require_ray()
    begun = not ray.is_initialized()
    if begun:
        where: dict[str, Any] = {"address": address}
        if not is_elsewhere(address):
            where = {"address": "local", "num_cpus": cores}
            where |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE}
            # Ray's own 15 is next to nothing beside any other program that works.
            os.environ.setdefault("RAY_worker_niceness", "0")
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        with _nothing_on_stderr():  # where Ray tells that the level was set
            ray.init(**where, logging_level=logging.ERROR, log_to_driver=False)
    try:
        yield ray
    finally:
        if begun:
            ray.shutdown()


def is_elsewhere(address: str | None) -> bool:
    """Whether it is a cluster that runs without us, and may grow."""
    return bool(address or os.environ.get("RAY_ADDRESS"))


@contextmanager
def _nothing_on_stderr() -> Iterator[None]:
    """Not even of compiled code."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
