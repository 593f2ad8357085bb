"""Several processes that answer at one port, none of which outlives the one that started them."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from rationalizer.server.monitoring import ROW, Metrics

Serve = Callable[[Metrics, Callable[[], None]], None]
READY = "ready"

log = logging.getLogger("rationalizer")


class Workers:
    """Starts processes, waits for them, and puts a new one where one died.

    Args:
        serve: what each does, told what to count in and whom to tell that it is ready; must be fit for pickling.
        count: how many.
        patience: seconds that they have to finish in when all shall stop.
    """

    def __init__(self, serve: Serve, count: int, *, patience: float) -> None:
        self._serve, self._patience = serve, patience
        # Each loads its own model: threads of PyTorch and Numba do not survive a fork.
        self._context = multiprocessing.get_context("spawn")
        self._table: Any = self._context.RawArray("d", count * ROW)
        # The other end is in this process alone, and closes with it however it ends.
        self._lifeline, self._held = self._context.Pipe(duplex=False)
        self._processes: list[BaseProcess | None] = [None] * count

    def run(self, started: Callable[[], None]) -> None:
        """Until SIGTERM or Ctrl-C; `started` is called once all are ready."""
        with _sigterm_as_exception():
            try:
                for told in [self._start(row) for row in range(len(self._processes))]:
                    _until_ready(told)
                started()
                while True:
                    self._replace_the_dead()
            finally:
                self._stop()

    def _start(self, row: int) -> Connection:
        told, tell = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=_work, args=(self._serve, self._table, row, self._lifeline, tell), name=f"worker {row + 1}"
        )
        # Until the worker has handlers of its own, Ctrl-C is this process's to handle.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            process.start()
        finally:
            signal.signal(signal.SIGINT, before)
        tell.close()
        self._processes[row] = process
        return told

    def _replace_the_dead(self) -> None:
        wait([process.sentinel for process in self._processes if process is not None])
        for row, process in enumerate(self._processes):
            if process is not None and not process.is_alive():
                log.warning("%s ended with code %s; another takes its place", process.name, process.exitcode)
                _until_ready(self._start(row))

    def _stop(self) -> None:
        started = [process for process in self._processes if process is not None]
        for process in started:
            process.terminate()
        for process in started:
            process.join(self._patience)
            process.kill()  # no more than a formality, most of the time


def _until_ready(told: Connection) -> None:
    try:
        said = told.recv()
    except EOFError:
        raise RuntimeError("a worker ended before it was ready; what it printed says why") from None
    if said != READY:
        raise ValueError(said)


def _work(serve: Serve, table: Any, row: int, lifeline: Connection, tell: Connection) -> None:
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    try:
        with suppress(KeyboardInterrupt):  # Ctrl-C is meant for all processes; the first one says so
            serve(Metrics(table, row), lambda: _say(tell, READY))
    except (ValueError, OSError, ImportError) as error:  # of the input: the first process tells it
        _say(tell, str(error))


def _say(tell: Connection, said: str) -> None:
    with suppress(BrokenPipeError):  # nobody is there any more, and the lifeline ends this process, too
        tell.send(said)


def _end_with(lifeline: Connection) -> None:
    with suppress(EOFError):
        lifeline.recv()
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _sigterm_as_exception() -> Any:
    """SIGTERM ends the block in order, and the process after it."""

    def stop(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
