"""A web application on a port, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import gc
import logging
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from rationalizer.server.connections import Connection
from rationalizer.server.monitoring import Metrics
from rationalizer.server.worker_processes import Workers

if TYPE_CHECKING:
    from fastapi import FastAPI

GRACE = 10  # seconds that requests under way have when the server stops
MakeApp = Callable[[Metrics], "FastAPI"]


def run(
    make: MakeApp,
    host: str,
    port: int,
    *,
    workers: int = 1,
    request_timeout: float = 30,
    access_log: bool = False,
    on_started: Callable[[str], None] = lambda address: None,
) -> None:
    """Serves until stopped; requests under way are still answered. Ctrl-C then is a KeyboardInterrupt.

    Args:
        make: makes the application (see `create_app`), which counts in the metrics it is given. For several processes
            it must be a function that can be pickled: each calls it for itself.
        host: where to listen.
        port: 0 for one that is free.
        workers: processes that answer at this port.
        request_timeout: seconds that a request may take to arrive.
        access_log: print a line a request: when, who, what, the status, and how long it took; never the texts.
        on_started: called with the address as soon as requests are answered.
    """
    with _listen(host, port, request_timeout) as listener:
        serve = partial(_serve, make, listener, request_timeout, access_log, _variables(workers))
        if workers == 1:
            serve(Metrics(), lambda: on_started(_address(listener)))
        else:
            Workers(serve, workers, patience=GRACE + 5).run(lambda: on_started(_address(listener)))


def _serve(
    make: MakeApp,
    listener: socket.socket,
    seconds: float,
    access_log: bool,
    variables: dict[str, str],
    metrics: Metrics,
    started: Callable[[], None],
) -> None:
    if access_log:
        _print_access()
    os.environ.update(variables | os.environ)  # before `make` imports PyTorch
    Server(make(metrics), seconds=seconds, started=started).run(sockets=[listener])


class Server(uvicorn.Server):
    """uvicorn's, with our connections, told when it has started."""

    def __init__(
        self, app: FastAPI, *, seconds: float, grace: int = GRACE, started: Callable[[], None] = lambda: None
    ) -> None:
        config = uvicorn.Config(
            app,
            http=cast(Any, partial(Connection, seconds=seconds)),
            log_level="warning",
            access_log=False,  # ours is of `Guard`, and tells the time a request took
            timeout_graceful_shutdown=grace,
        )
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            # What is loaded stays: looking through it for garbage would stop all requests for a third of a second.
            gc.collect()
            gc.freeze()
            self._started()


def _variables(workers: int) -> dict[str, str]:
    """Of the environment, where they are not set."""
    # oneDNN keeps what it made for each shape of a batch, 1,024 of them by default: tens of megabytes after some
    # thousands of requests.
    variables = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "32"}
    if workers > 1:  # each would have a thread on every core, and all wait for one another
        variables["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // workers))
    return variables


def _print_access() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("rationalizer.access")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def _listen(host: str, port: int, seconds: float) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except socket.gaierror as error:
        raise OSError(f"cannot listen on {host}: {error.strerror}; give another --host, such as 127.0.0.1") from None
    except OSError as error:
        remedy = "give another --port, or 0 for any" if port else "give another --host"
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(f"cannot listen on {host}, port {port}: {reason}; {remedy}") from None
    # Connections inherit both. Without the first a short answer waits 40 ms for the client to confirm its first part;
    # without the second one who asks and does not read the answer keeps it in memory for ever.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * seconds))
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "localhost", "::": "localhost"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"
