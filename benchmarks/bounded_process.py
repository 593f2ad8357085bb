"""Run a benchmark in a subprocess with a time limit."""

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
class Result:
    name: str
    seconds: float
    output: str
    fault: str = ""  # why it did not finish

    @property
    def succeeded(self) -> bool:
        return not self.fault and not self.missed

    @property
    def met(self) -> int:
        return sum(MET in _cells(line) for line in self.output.splitlines())

    @property
    def missed(self) -> list[str]:
        """The table rows that missed their target, each cell with its column name."""
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
    def has_table(self) -> bool:
        return not self.fault and any(line.startswith("|") for line in self.output.splitlines())

    @property
    def remark(self) -> str:
        return "; ".join([*([self.fault] if self.fault else []), *(f"skipped: {why}" for why in self.skipped)])


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []


def run_benchmark(name: str, command: Sequence[str], limit: float) -> Result:
    """Run a command and show its output as it is printed. After `limit` seconds, kill its process group."""
    print(f"\n## {name}\n", flush=True)
    started, stopped = time.monotonic(), threading.Event()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def stop() -> None:
        stopped.set()
        _kill_group(process.pid)

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
        _kill_group(process.pid)
    fault = f"stopped after {limit:g} seconds" if stopped.is_set() else f"failed with exit code {code}" if code else ""
    return Result(name, time.monotonic() - started, "".join(lines), fault)


def _kill_group(group: int) -> None:
    """Kill the process group, which includes servers that a benchmark started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
