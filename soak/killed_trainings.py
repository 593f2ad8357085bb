"""Trainings that are killed at random moments and resumed: the same weights as without interruption."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from soak.cases import PROCESS_SECONDS, Case, Soak, Wrong, finish, require

METHODS = ("spectra", "hardkuma", "sfe-baseline")
PROGRAM = """
import sys, torch
torch.set_num_threads(1)
from rationalizer.data import generated_reviews
from rationalizer.models import configure
from rationalizer.training import train
settings = dict(hidden=8, vector_size=8, epochs=6, min_epochs=6, batch_size=4, checkpoint_seconds=0)
train(generated_reviews(train=96, dev=24, test=0), configure(sys.argv[2], settings), sys.argv[1], resume=True)
"""


def run(soak: Soak) -> None:
    expected = Uninterrupted(soak.folder)
    soak.check(20, lambda case: check_case(case, soak.folder / f"case-{case.number}", expected), seconds=400, threads=2)


class Uninterrupted:
    """The expected weights, from one training per method, run when they are first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.locks = folder, {method: threading.Lock() for method in METHODS}

    def weights(self, method: str) -> bytes:
        run = self.folder / f"uninterrupted-{method}"
        with self.locks[method]:
            if not (run / "model.safetensors").is_file():
                finish(start(run, method))
            return (run / "model.safetensors").read_bytes()


def check_case(case: Case, run: Path, expected: Uninterrupted) -> None:
    method = case.pick(METHODS)
    case.note(method)
    for _ in range(int(case.random.integers(1, 4))):
        if start_and_kill(case, run, method):
            break
    finish(start(run, method))
    require(
        (run / "model.safetensors").read_bytes() == expected.weights(method),
        "the weights differ from an uninterrupted training",
    )
    left = [path.name for path in run.iterdir() if "checkpoint" in path.name and path.suffix != ".tmp"]
    require(not left, "leftover files:", left)


def start(run: Path, method: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(run), method],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_and_kill(case: Case, run: Path, method: str) -> bool:
    """Kill a training at a random moment up to shortly after a new checkpoint; return True if it ended before."""
    process = start(run, method)
    moment = case.pick(["during start", "soon", "later"])
    if moment == "during start":
        pause = float(case.random.uniform(0, 6))
    else:
        before, deadline = _checkpoint_time(run), time.monotonic() + PROCESS_SECONDS
        while _checkpoint_time(run) == before and process.poll() is None:
            if time.monotonic() > deadline:
                process.kill()
                process.communicate()
                raise Wrong(f"no checkpoint in {PROCESS_SECONDS:g} s")
            time.sleep(0.001)
        pause = float(case.random.uniform(0, 0.1 if moment == "soon" else 1.5))
    time.sleep(pause)
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    require(process.returncode in (0, -signal.SIGKILL), "ended with", process.returncode, errors[-2000:])
    case.note(f"killed {moment} + {pause:.3f} s" if process.returncode else "ended before it was killed")
    return process.returncode == 0


def _checkpoint_time(run: Path) -> int:
    try:
        return (run / "checkpoint.safetensors").stat().st_mtime_ns
    except FileNotFoundError:
        return 0
