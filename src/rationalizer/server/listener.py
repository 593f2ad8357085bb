"""Serve a web application at a port until Ctrl-C or SIGTERM."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rationalizer.server.connections import DeadlineProtocol
from rationalizer.server.supervisor import READY, send_report, start_in_worker, supervise

GRACE_SECONDS = 10  # that accepted requests have to finish when the server stops
HUNG_SECONDS = 30  # without a sign of life, until a worker process is replaced


def run(
    create: Callable[[], ASGIApp],
    host: str,
    port: int,
    *,
    workers: int = 1,
    request_timeout: float = 30,
    access_log: bool = False,
    on_started: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until stopped; accepted requests are still answered. Ctrl-C then raises `KeyboardInterrupt`.

    Args:
        create: creates the application (see `create_app`). With several workers each process calls it, so it must be
            picklable.
        host: the address to listen on.
        port: 0 for any free port.
        workers: number of processes at this port.
        request_timeout: seconds that a request may take to arrive.
        access_log: print a line per request: time, client, path, status and duration; never the texts.
        on_started: called with the server's URL as soon as requests are answered.
    """
    # oneDNN caches a primitive per batch shape, 1,024 by default: tens of megabytes after some thousands of requests.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")
    with _listen(host, port, request_timeout) as listener:

        def report_started() -> None:
            on_started(_url(listener))

        if workers == 1:
            app = _create(create, access_log, report_started)
            uvicorn.Server(server_config(app, request_timeout=request_timeout)).run([listener])
            return
        # Otherwise each worker has a thread per core, and all of them compete.
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
        reports, report = multiprocessing.Pipe(duplex=False)
        create_here = partial(_create, create, access_log, partial(send_report, report, READY))
        factory = partial(start_in_worker, create_here, report)
        config = server_config(factory, request_timeout=request_timeout, factory=True, workers=workers)
        supervise(config, listener, reports, report_started)


def server_config(
    app: Any, *, request_timeout: float, grace_seconds: int = GRACE_SECONDS, **options: Any
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=cast(Any, partial(DeadlineProtocol, seconds=request_timeout)),
        log_level="warning",
        access_log=False,  # `RequestMiddleware` writes one that includes the duration
        timeout_graceful_shutdown=grace_seconds,
        timeout_worker_healthcheck=HUNG_SECONDS,
        **options,
    )


def _create(create: Callable[[], ASGIApp], access_log: bool, on_started: Callable[[], None]) -> ASGIApp:
    """Create the application; `on_started` is called when its startup is complete."""
    if access_log:
        _print_access_log()
    app = create()

    async def app_with_callback(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_and_call(message: Message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                # Nothing that is loaded now becomes garbage, and searching it would stop all requests for 0.3 seconds.
                gc.collect()
                gc.freeze()
                on_started()

        await app(scope, receive, send_and_call if scope["type"] == "lifespan" else send)

    return app_with_callback


def _print_access_log() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("rationalizer.access")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def _listen(host: str, port: int, timeout: float) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except socket.gaierror as error:
        raise OSError(f"cannot listen on {host}: {error.strerror}; give another --host, such as 127.0.0.1") from None
    except OSError as error:
        remedy = "give another --port, or 0 for any free one" if port else "give another --host"
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(f"cannot listen on {host}, port {port}: {reason}; {remedy}") from None
    # Connections inherit both options. TCP_NODELAY: otherwise a short answer waits 40 ms for the acknowledgement of its
    # first part. TCP_USER_TIMEOUT: otherwise the answer to a client that never reads it stays in memory forever.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * timeout))
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    name = {"0.0.0.0": "localhost", "::": "localhost"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}"
