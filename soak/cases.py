"""What a part of the soak is written with: cases, each with its own random numbers and a time bound, and verdicts."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Report = Callable[..., None]  # what happened, the case's number, and more


class Wrong(Exception):
    """The package did something that it must not do."""


class Unclear(Exception):
    """Nothing shows the package wrong, but it should be looked at: an oracle gave up, a message says too little."""


class Hung(Exception):
    """It took longer than it may."""


@dataclass(frozen=True)
class Case:
    number: int
    random: np.random.Generator
    notes: list[str] = field(default_factory=list)  # what was drawn, for the message

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.random.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def note(self, *facts: object) -> None:
        self.notes.append(" ".join(map(str, facts)))


@dataclass(frozen=True)
class Soak:
    """What a part is given."""

    seed: int
    scale: float
    folder: Path  # for its files
    report: Report
    only: int | None = None  # this case alone

    def check(self, count: int, judge: Callable[[Case], None], *, seconds: float, at_once: int = 1) -> None:
        """Runs `judge` on so many cases (times the scale); it raises where something is not right."""
        numbers = range(max(1, round(count * self.scale))) if self.only is None else [self.only]
        if at_once == 1:
            for number in numbers:
                self._one(number, judge, seconds)
            return
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda number: self._one(number, judge, seconds), numbers))

    def check_last(self, number: int, judge: Callable[[Case], None], *, seconds: float) -> None:
        """One more case, after all others."""
        self._one(number, judge, seconds)

    def _one(self, number: int, judge: Callable[[Case], None], seconds: float) -> None:
        # By number: a case is the same whatever ran before it, so it can be repeated alone.
        case = Case(number, np.random.default_rng([self.seed, number]))
        self.report("begun", number, seconds)
        started = time.monotonic()
        verdict, said = "right", ""
        try:
            judge(case)
        except (Wrong, Unclear, Hung) as error:
            verdict, said = type(error).__name__.lower(), str(error)
        except Exception:
            verdict, said = "wrong", traceback.format_exc(limit=-4)
        took = time.monotonic() - started
        if verdict == "right" and took > seconds:
            verdict, said = "hung", f"took {took:.1f} s, allowed are {seconds:g} s"
        self.report("ended", number, verdict, "; ".join([*case.notes, said]))


def require(condition: Any, *facts: object) -> None:
    if not condition:
        raise Wrong(" ".join(map(str, facts)))


class Locked:
    """A report that threads may share."""

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
