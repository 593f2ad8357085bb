"""Runs the parts, each in a process of its own: what hangs or crashes is counted, and the others go on."""

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

from soak.cases import Locked, Report, Soak

# The longest first: two run at a time.
PARTS = (
    "layers",
    "killed_trainings",
    "malformed_inputs",
    "damaged_files",
    "graphs",
    "server",
    "streams",
)
AT_ONCE = 2
SHOWN = 10  # failures of a kind that are printed in full; of the others the first line
SILENCE = 600  # seconds that a part may spend between cases: what it trains and compiles first


@dataclass
class Tally:
    name: str
    seed: int
    scale: float
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    under_way: dict[int, float] = field(default_factory=dict)  # case: when it must have ended

    def take(self, what: str, number: int, *rest: Any) -> None:
        if what == "begun":
            # A case judges its own time; this is for those that never come back.
            self.under_way[number] = time.monotonic() + 3 * rest[0] + 60
            return
        self.under_way.pop(number, None)
        verdict, said = rest
        self.counts[verdict] += 1
        if verdict != "right":
            said = said if self.counts[verdict] <= SHOWN else said.partition("\n")[0][:200]
            print(f"\n{self.name}, case {number}: {verdict}: {said}\n  repeat: {self.repeat(number)}", flush=True)

    def repeat(self, number: int) -> str:
        return f"python -m soak {self.name} --seed {self.seed} --scale {self.scale:g} --case {number}"

    def end(self, verdict: str, said: str) -> None:
        """Of a part that did not end by itself: what was under way is to blame."""
        for number in list(self.under_way) or [0]:
            self.take("ended", number, verdict, said)


def run_here(tallies: list[Tally], folder: Path, only: int | None) -> None:
    for tally in tallies:
        started = time.monotonic()
        _run_part(tally.name, tally.seed, tally.scale, folder, tally.take, only)
        tally.seconds = time.monotonic() - started


def run_module(tallies: list[Tally], folder: Path, only: int | None) -> None:
    waiting, running = list(tallies), []
    # Ended as by Ctrl-C: the parts have sessions of their own, and nobody else would end them.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                running.append(_Child(waiting.pop(0), folder))
            wait([child.events for child in running], timeout=1.0)
            running = [child for child in running if child.goes_on()]
    finally:
        for child in running:
            child.kill()


class _Child:
    """A part under way in its own process (and session, so that all that it started can be ended with it)."""

    def __init__(self, tally: Tally, folder: Path) -> None:
        self.tally, self.started = tally, time.monotonic()
        self.heard = self.started
        context = multiprocessing.get_context("spawn")
        self.events, far = context.Pipe(duplex=False)
        self.process = context.Process(target=_child, args=(tally.name, tally.seed, tally.scale, folder, far))
        self.process.start()
        far.close()

    def goes_on(self) -> bool:
        """Takes what it reports; False once it has ended, or was ended because a case never came back."""
        self.tally.seconds = time.monotonic() - self.started
        try:
            while self.events.poll():
                self.tally.take(*self.events.recv())
                self.heard = time.monotonic()
        except EOFError:
            self.process.join()
            if self.process.exitcode:
                self.tally.end("wrong", f"the process ended with code {self.process.exitcode}")
            return False
        deadlines = self.tally.under_way.values() or [self.heard + SILENCE]
        if time.monotonic() > min(deadlines):
            self.kill()
            self.tally.end("hung", "it did not come back; the rest of the part was not tried")
            return False
        return True

    def kill(self) -> None:
        if self.process.pid is not None and self.process.is_alive():
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:  # so young that it has no session yet
                self.process.kill()
        self.process.join()


def _child(name: str, seed: int, scale: float, folder: Path, events: Connection) -> None:
    os.setsid()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell in the background leaves it; parts send it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _run_part(name, seed, scale, folder, lambda *event: events.send(event), None)


def _run_part(name: str, seed: int, scale: float, folder: Path, report: Report, only: int | None) -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch

    torch.set_num_threads(1)
    own = folder / name
    own.mkdir()
    importlib.import_module(f"soak.{name}").run(Soak(seed, scale, own, Locked(report), only))
