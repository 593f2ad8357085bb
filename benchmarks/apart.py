"""One benchmark in a process of its own, for a bounded time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.timing import MET, MISSED, SKIPPED


@dataclass(frozen=True)
class Ended:
    name: str
    seconds: float
    output: str
    fault: str = ""  # why it did not come to its end

    @property
    def succeeded(self) -> bool:
        return not self.fault and not self.missed

    @property
    def met(self) -> int:
        return sum(MET in _cells(line) for line in self.output.splitlines())

    @property
    def missed(self) -> list[str]:
        """The rows of tables that say so, each cell with its column's name."""
        rows, header, before = [], [], ""
        for line in self.output.splitlines():
            if line.startswith("|--"):
                header = _cells(before)
            elif MISSED in (cells := _cells(line)):
                named = [f"{name} {cell}".strip() for name, cell in zip(header, cells, strict=True)]
                rows.append(
                    ", ".join(text for text, cell in zip(named, cells, strict=True) if cell not in ("", MISSED))
                )
            before = line
        return rows

    @property
    def skipped(self) -> list[str]:
        return [line.removeprefix(SKIPPED) for line in self.output.splitlines() if line.startswith(SKIPPED)]

    @property
    def measured(self) -> bool:
        """Whether there is something that a page can show."""
        return not self.fault and any(line.startswith("|") for line in self.output.splitlines())

    @property
    def remark(self) -> str:
        return "; ".join([*([self.fault] if self.fault else []), *(f"skipped: {why}" for why in self.skipped)])


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []


def run_module(name: str, command: Sequence[str], limit: float) -> Ended:
    """Shows what the command prints as it is printed. Where it takes longer than `limit` seconds it is ended, with all
    that it has started."""
    print(f"\n## {name}\n", flush=True)
    begun, stopped = time.monotonic(), threading.Event()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def stop() -> None:
        stopped.set()
        _end_all(process.pid)

    timer = threading.Timer(limit, stop)
    timer.start()
    lines = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
        code = process.wait()
    finally:
        timer.cancel()
        _end_all(process.pid)
    fault = f"stopped after {limit:g} seconds" if stopped.is_set() else f"failed with exit code {code}" if code else ""
    return Ended(name, time.monotonic() - begun, "".join(lines), fault)


def _end_all(group: int) -> None:
    """Servers that a benchmark has started are of its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
