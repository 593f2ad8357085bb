"""Timing in one process, so that what is compared saw the same machine, and tables of it."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence


def median_ms(step: Callable[[], object], *, seconds: float = 0.5, least: int = 5) -> float:
    """The median wall time of `step` in milliseconds, after warming up, over about `seconds`."""
    step()
    step()
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < until:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def interleaved_ms(steps: Sequence[Callable[[], object]], *, seconds: float = 1.0, least: int = 10) -> list[float]:
    """The median of each step, taken in turns, so that a change of the machine's mood hits all alike. On CUDA every
    step is waited for."""
    import torch

    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    times: list[list[float]] = [[] for _ in steps]
    until = 0.0
    while until == 0.0 or len(times[0]) < least + 3 or time.perf_counter() < until:
        for step, taken in zip(steps, times, strict=True):
            wait()
            start = time.perf_counter()
            step()
            wait()
            taken.append(time.perf_counter() - start)
        if until == 0.0:
            until = time.perf_counter() + seconds
    return [1e3 * statistics.median(taken[3:]) for taken in times]


MET, MISSED, SKIPPED = "met", "**missed**", "Skipped: "  # what the summary looks for


def verdict(held: bool) -> str:
    """What a row's last column says of its targets; the summary and the exit code follow from it."""
    return MET if held else MISSED


def skipped(why: str) -> None:
    """Instead of what cannot be measured here."""
    print(f"{SKIPPED}{why}", flush=True)


def measured_on() -> str:
    import torch

    machine = f"{os.cpu_count()} cores"
    if torch.cuda.is_available():
        machine += f" and an {torch.cuda.get_device_name()}"
    load = f"other processes used {os.getloadavg()[0]:.1f} of the cores before"
    return f"Measured {time.strftime('%Y-%m-%d')} on {machine} with torch {torch.__version__}; {load}."


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A Markdown table, columns aligned."""
    cells = [[f"{c:.3g}" if isinstance(c, float) else str(c) for c in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for index, row in enumerate(cells):
        print("| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |")
        if index == 0:
            print("|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|", flush=True)
