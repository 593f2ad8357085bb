"""The tools of a soak test: cases, each with its own random generator and time limit, and verdicts."""

from __future__ import annotations

import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Report = Callable[..., None]  # the event, the case's number, and details
PROCESS_SECONDS = 120.0  # time limit of one subprocess


class Wrong(Exception):
    """The package gave a wrong result."""


class Unclear(Exception):
    """Not shown to be wrong, but worth a look: an oracle gave up, or a message says too little."""


class Hung(Exception):
    """A time limit was exceeded."""


@dataclass(frozen=True)
class Case:
    number: int
    random: np.random.Generator
    notes: list[str] = field(default_factory=list)  # the random choices, for the message

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.random.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def note(self, *facts: object) -> None:
        self.notes.append(" ".join(map(str, facts)))


@dataclass(frozen=True)
class Soak:
    """The settings of a part, and where it reports."""

    seed: int
    scale: float
    folder: Path  # for files of the part
    report: Report
    only: int | None = None  # run only this case

    def check(
        self, count: int, check_case: Callable[[Case], None], *, seconds: float, threads: int = 1, first: int = 0
    ) -> None:
        """Run `check_case`, which raises an exception on failure, on `count` cases (times the scale) from `first`."""
        numbers = range(first, first + max(1, round(count * self.scale))) if self.only is None else [self.only]
        if threads == 1:
            for number in numbers:
                self.check_one(number, check_case, seconds=seconds)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda number: self.check_one(number, check_case, seconds=seconds), numbers))

    def check_one(self, number: int, check_case: Callable[[Case], None], *, seconds: float) -> None:
        # Seeded by number: a case does not depend on those before it, so it can be repeated alone.
        case = Case(number, np.random.default_rng([self.seed, number]))
        self.report("started", number, seconds)
        started = time.monotonic()
        verdict, message = "right", ""
        try:
            check_case(case)
        except (Wrong, Unclear, Hung) as error:
            verdict, message = type(error).__name__.lower(), str(error)
        except Exception:
            verdict, message = "wrong", traceback.format_exc(limit=-4)
        took = time.monotonic() - started
        if verdict == "right" and took > seconds:
            verdict, message = "hung", f"took {took:.1f} s, the limit is {seconds:g} s"
        self.report("ended", number, verdict, "; ".join([*case.notes, message]))


def require(condition: Any, *facts: object) -> None:
    if not condition:
        raise Wrong(" ".join(map(str, facts)))


class LockedReport:
    """A report that several threads can use."""

    def __init__(self, report: Report) -> None:
        self.report, self.lock = report, threading.Lock()

    def __call__(self, *event: Any) -> None:
        with self.lock:
            self.report(*event)


def wait_for(condition: Callable[[], Any], seconds: float, pause: float = 0.002) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Hung(f"nothing happened for {seconds:g} s")
        time.sleep(pause)


def finish(process: subprocess.Popen) -> None:
    """Wait for the end of a process; its exit code must be 0."""
    try:
        _, errors = process.communicate(timeout=PROCESS_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Hung(f"{process.args} did not end in {PROCESS_SECONDS:g} s") from None
    require(process.returncode == 0, process.args, "ended with code", process.returncode, errors[-2000:])
