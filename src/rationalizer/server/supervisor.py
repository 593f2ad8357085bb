"""Several worker processes at one port, supervised by uvicorn."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from socket import socket

import uvicorn
from prometheus_client.multiprocess import mark_process_dead
from starlette.types import ASGIApp
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import SIGNALS

from rationalizer.server.monitoring import SHARED_FOLDER

READY = "ready"
MAX_REPORT = 2000  # characters: pipes write this much at once, so that reports of several workers do not mix

log = logging.getLogger("rationalizer")


def start_in_worker(create: Callable[[], ASGIApp], report: Connection) -> ASGIApp:
    """Create the application in a worker process; report to the supervisor if that fails."""
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    try:
        return create()
    except Exception as error:
        is_input_error = isinstance(error, (ValueError, OSError, ImportError))
        if not is_input_error:
            log.exception("a worker process cannot start")
        send_report(report, str(error) if is_input_error else f"a worker process cannot start: {error!r}")
        sys.exit(STARTUP_FAILURE)


def send_report(report: Connection, message: str) -> None:
    with suppress(BrokenPipeError):  # the parent has ended, and this process is about to
        report.send(message[:MAX_REPORT])


def _stop_with_parent() -> None:
    """Stop this worker when its parent has ended, however that happened: uvicorn's workers would go on."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def supervise(config: uvicorn.Config, listener: socket, reports: Connection, on_started: Callable[[], None]) -> None:
    """Serve with `config.workers` processes until Ctrl-C (`KeyboardInterrupt`) or SIGTERM (`SystemExit`).

    Args:
        config: creates the application by `start_in_worker`.
        listener: the socket that all workers listen on.
        reports: receives `READY` from each worker, or the reason why it cannot start; then `ValueError` is raised.
        on_started: called once, when all workers are ready.
    """
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    with tempfile.TemporaryDirectory(prefix="rationalizer-metrics-") as folder:
        os.environ[SHARED_FOLDER] = folder  # inherited by the workers
        supervisor = _Supervisor(config, listener, reports, on_started)
        try:
            supervisor.run()
        finally:
            supervisor.terminate_all()
            supervisor.join_all()
            del os.environ[SHARED_FOLDER]
            for number, handler in handlers.items():
                signal.signal(number, handler)
    supervisor.read_reports()
    if supervisor.failure is not None:
        raise ValueError(supervisor.failure)
    raise KeyboardInterrupt if supervisor.stopped_by == signal.SIGINT else SystemExit(128 + signal.SIGTERM)


class _Supervisor(Multiprocess):
    """uvicorn's supervisor, which replaces workers that die or hang; this one also reads the workers' reports."""

    def __init__(
        self, config: uvicorn.Config, listener: socket, reports: Connection, on_started: Callable[[], None]
    ) -> None:
        super().__init__(config, [listener])
        self._reports, self._on_started = reports, on_started
        self._ready, self._started = 0, False
        self.failure: str | None = None
        self.stopped_by = signal.SIGTERM

    def init_processes(self) -> None:
        with _sigint_blocked():
            super().init_processes()

    def keep_subprocess_alive(self) -> None:
        self.read_reports()
        before = list(self.processes)
        with _sigint_blocked():
            super().keep_subprocess_alive()
        for old, new in zip(before, self.processes, strict=True):
            if old is not new:
                mark_process_dead(old.pid)  # type: ignore[no-untyped-call]
                log.warning("worker process %s ended with code %s and was replaced", old.pid, old.exitcode)
                if not self._started:
                    self._fail("a worker process ended before it was ready; see its output")

    def read_reports(self) -> None:
        while self._reports.poll():
            report = self._reports.recv()
            if report == READY:
                self._ready += 1
                if not self._started and self._ready == len(self.processes):
                    self._started = True
                    self._on_started()
            else:
                self._fail(report)

    def _fail(self, problem: str) -> None:
        self.failure = self.failure or problem
        self.should_exit.set()

    def handle_int(self) -> None:
        self.stopped_by = signal.SIGINT
        super().handle_int()


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Start workers with SIGINT blocked: the parent stops them by SIGTERM after Ctrl-C, also while they import."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
