"""A run in a process of its own (`__main__.py`), from the side of whoever wants it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

from rationalizer.learn.runs import record_of
from rationalizer.learn.trained import LOGS
from rationalizer.study.run import Order, Outcome

LOG = "process.log"
DONE, FAILED, STOPS = 0, 1, 2  # exit codes
PATIENCE = 10.0  # seconds to end in


def run_apart(order: Order, started: Callable[[subprocess.Popen[str]], None] = lambda process: None) -> Outcome:
    """Carries an order out in a process of its own; one that dies costs this run only.

    Args:
        order: what to run.
        started: told of the process, so that it can be ended from another thread.
    """
    logs = order.directory / LOGS
    logs.mkdir(parents=True, exist_ok=True)
    with (logs / LOG).open("ab") as log:
        # A session of its own: Ctrl-C is meant for the process that gives the orders, and that one ends the others.
        process = subprocess.Popen(
            [sys.executable, "-m", "rationalizer.study"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=order.folder,
            text=True,
            start_new_session=True,
        )
    started(process)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(BrokenPipeError):  # it died already, and its exit code says so
            process.stdin.write(json.dumps(order.to_json()) + "\n")
            process.stdin.flush()
        said = process.stdout.read().strip()
        code = process.wait()
    finally:
        end(process)
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
    if code == DONE:
        return Outcome(order.job, record_of(order.directory))
    return Outcome(order.job, error=said or f"its process ended {_how(code)}; see {logs / LOG}", stops=code == STOPS)


def end(process: subprocess.Popen[str]) -> None:
    """Ends a process that may have ended already."""
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _how(code: int) -> str:
    number = -code if code < 0 else code - 128  # the latter is how shells, and a training that was ended, say it
    with suppress(ValueError):
        return f"by {signal.Signals(number).name}"
    return f"with code {code}"
