"""A program in a process of its own. Light to import, because Ray and Slurm start processes that do nothing but wait
for this one: none of them needs PyTorch."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 10.0  # seconds to end in


@dataclass(frozen=True)
class Call:
    """A module to run, which must end when its standard input does: whoever started it is gone then."""

    module: str
    line: str  # for its standard input
    folder: str  # to stand in
    log: str  # for its standard error; relative to the folder


@dataclass(frozen=True)
class Ended:
    code: int
    said: str  # on its standard output

    @property
    def how(self) -> str:
        number = -self.code if self.code < 0 else self.code - 128  # the latter is how shells say it, and trainings
        with suppress(ValueError):
            return f"by {signal.Signals(number).name}"
        return f"with code {self.code}"


def run_module(call: Call, started: Callable[[subprocess.Popen[str]], None] = lambda process: None) -> Ended:
    """Runs it to its end. `started` is told of the process, so that another thread can end it."""
    log = Path(call.folder, call.log)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        # A session of its own: Ctrl-C is meant for whoever started all this, and that one ends the others.
        process = subprocess.Popen(
            [sys.executable, "-m", call.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            cwd=call.folder,
            text=True,
            start_new_session=True,
        )
    started(process)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(BrokenPipeError):  # it died already, and its code says so
            process.stdin.write(call.line + "\n")
            process.stdin.flush()
        return Ended(said=process.stdout.read().strip(), code=process.wait())
    finally:
        end(process)
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()


def end(process: subprocess.Popen[str]) -> None:
    """Ends a process that may have ended already."""
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Resumed:
    """`run_module` for submitit, which puts it into Slurm's queue again when its time is up."""

    def __call__(self, call: Call) -> Ended:
        return run_module(call)

    def checkpoint(self, call: Call) -> Any:
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, call)
