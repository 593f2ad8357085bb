"""Run the parts, each in its own process: a part that hangs or crashes is counted, and the others continue."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from soak.cases import LockedReport, Report, Soak

# The longest first; two run at a time.
PARTS = (
    "layers",
    "killed_trainings",
    "malformed_inputs",
    "damaged_files",
    "graphs",
    "server",
    "streams",
    "audits",
)
PROCESSES = 2
MAX_PRINTED = 10  # failures per verdict that are printed in full; of the others only the first line
MAX_SILENCE = 600  # seconds without a report, for training and compilation before the first case


@dataclass
class Tally:
    name: str
    seed: int
    scale: float
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    deadlines: dict[int, float] = field(default_factory=dict)  # of the cases that are running

    def record(self, event: str, number: int, *details: Any) -> None:
        if event == "started":
            # A case checks its own time; this deadline is for cases that never return.
            self.deadlines[number] = time.monotonic() + 3 * details[0] + 60
            return
        self.deadlines.pop(number, None)
        verdict, message = details
        self.counts[verdict] += 1
        if verdict != "right":
            message = message if self.counts[verdict] <= MAX_PRINTED else message.partition("\n")[0][:200]
            print(f"\n{self.name}, case {number}: {verdict}: {message}\n  repeat: {self.command(number)}", flush=True)

    def command(self, number: int) -> str:
        return f"python -m soak {self.name} --seed {self.seed} --scale {self.scale:g} --case {number}"

    def fail(self, verdict: str, message: str) -> None:
        """Count the running cases of a part that was killed or crashed."""
        for number in list(self.deadlines) or [0]:
            self.record("ended", number, verdict, message)


def run_in_this_process(tallies: list[Tally], folder: Path, only: int | None) -> None:
    for tally in tallies:
        started = time.monotonic()
        _run_part(tally.name, tally.seed, tally.scale, folder, tally.record, only)
        tally.seconds = time.monotonic() - started


def run_in_processes(tallies: list[Tally], folder: Path, only: int | None) -> None:
    waiting, running = list(tallies), []
    # SIGTERM acts as Ctrl-C: the parts have their own sessions, and would go on.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while waiting or running:
            while waiting and len(running) < PROCESSES:
                running.append(_Child(waiting.pop(0), folder))
            wait([child.events for child in running], timeout=1.0)
            running = [child for child in running if child.poll()]
    finally:
        for child in running:
            child.kill()


class _Child:
    """A part in its own process, and session: all processes that it starts can be killed with it."""

    def __init__(self, tally: Tally, folder: Path) -> None:
        self.tally, self.started = tally, time.monotonic()
        self.last_report = self.started
        context = multiprocessing.get_context("spawn")
        self.events, sender = context.Pipe(duplex=False)
        self.process = context.Process(target=_child, args=(tally.name, tally.seed, tally.scale, folder, sender))
        self.process.start()
        sender.close()

    def poll(self) -> bool:
        """Record the reports; return False once the part has ended, or was killed because a case never returned."""
        self.tally.seconds = time.monotonic() - self.started
        try:
            while self.events.poll():
                self.tally.record(*self.events.recv())
                self.last_report = time.monotonic()
        except EOFError:
            self.process.join()
            if self.process.exitcode:
                self.tally.fail("wrong", f"the process ended with code {self.process.exitcode}")
            return False
        deadlines = self.tally.deadlines.values() or [self.last_report + MAX_SILENCE]
        if time.monotonic() > min(deadlines):
            self.kill()
            self.tally.fail("hung", "a case did not return; the rest of the part was not run")
            return False
        return True

    def kill(self) -> None:
        if self.process.pid is not None and self.process.is_alive():
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:  # it has no session yet
                self.process.kill()
        self.process.join()


def _child(name: str, seed: int, scale: float, folder: Path, events: Connection) -> None:
    os.setsid()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a background job; parts need it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _run_part(name, seed, scale, folder, lambda *event: events.send(event), None)


def _run_part(name: str, seed: int, scale: float, folder: Path, report: Report, only: int | None) -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch

    torch.set_num_threads(1)
    part_folder = folder / name
    part_folder.mkdir()
    importlib.import_module(f"soak.{name}").run(Soak(seed, scale, part_folder, LockedReport(report), only))
