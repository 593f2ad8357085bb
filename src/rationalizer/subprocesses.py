"""Run a module in a subprocess.

Does not import PyTorch: Ray and Slurm start processes that only wait for this subprocess.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRACE_SECONDS = 10.0  # between SIGTERM and SIGKILL


@dataclass(frozen=True)
class Command:
    """A module to run. It must exit when its standard input is closed: then the parent process has died."""

    module: str
    stdin: str  # one line
    cwd: str
    log: str  # receives standard error; a path relative to `cwd`


@dataclass(frozen=True)
class CommandResult:
    code: int
    output: str  # standard output

    def describe(self) -> str:
        """How the process ended: "by SIGKILL", "with code 3"."""
        number = -self.code if self.code < 0 else self.code - 128  # shells and training runs report 128 + signal
        with suppress(ValueError):
            return f"by {signal.Signals(number).name}"
        return f"with code {self.code}"


def run_module(
    command: Command, on_start: Callable[[subprocess.Popen[str]], None] = lambda process: None
) -> CommandResult:
    """Run the command and wait for it. `on_start` is called with the process, so that another thread can end it."""
    log = Path(command.cwd, command.log)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        # A session of its own: Ctrl-C goes to the parent process only, which then ends its subprocesses.
        process = subprocess.Popen(
            [sys.executable, "-m", command.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            cwd=command.cwd,
            text=True,
            start_new_session=True,
        )
    on_start(process)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(BrokenPipeError):  # the process has died already; its exit code says so
            process.stdin.write(command.stdin + "\n")
            process.stdin.flush()
        return CommandResult(output=process.stdout.read().strip(), code=process.wait())
    finally:
        terminate(process)
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()


def terminate(process: subprocess.Popen[str]) -> None:
    """End a process, unless it has ended already."""
    process.terminate()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class ResumableCommand:
    """`run_module` for submitit, which submits it to Slurm again when its time limit is reached."""

    def __call__(self, command: Command) -> CommandResult:
        return run_module(command)

    def checkpoint(self, command: Command) -> Any:
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, command)
