"""A web application on a port, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI


def run(app: FastAPI, host: str, port: int, started: Callable[[str], None] = lambda address: None) -> None:
    """Serves until stopped; requests under way are still answered. Ctrl-C then is a KeyboardInterrupt.

    Args:
        app: of `create_app`.
        host: where to listen.
        port: 0 for one that is free.
        started: called with the address as soon as requests are answered.
    """
    listener = _listen(host, port)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=10)
    server = _Server(config, lambda: started(_address(listener)))
    with listener:
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            # What is loaded stays: looking through it for garbage would stop all requests for a third of a second.
            gc.collect()
            gc.freeze()
            self._started()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
        # Connections inherit it: without it a short answer waits 40 ms for the client to confirm its first part.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except socket.gaierror as error:
        raise OSError(f"cannot listen on {host}: {error.strerror}; give another --host, such as 127.0.0.1") from None
    except OSError as error:
        remedy = "give another --port, or 0 for any" if port else "give another --host"
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(f"cannot listen on {host}, port {port}: {reason}; {remedy}") from None


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "localhost", "::": "localhost"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"
