"""Time steps within one process, so that they are comparable, and print tables."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence


def median_ms(step: Callable[[], object], *, seconds: float = 0.5, least: int = 5) -> float:
    """Return the median wall time of `step` in milliseconds, over about `seconds`, after two warm-up calls."""
    step()
    step()
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < until:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def processor_ms(step: Callable[[], object], *, seconds: float, most: int) -> float:
    """Return the minimum processor time of up to `most` runs in milliseconds, after a warm-up run if that is short."""
    least, spent = float("inf"), 0.0
    for turn in range(most + 1):
        start = time.process_time()
        step()
        taken = time.process_time() - start
        spent += taken
        least = min(least, taken) if turn or taken > seconds else least
        if spent > seconds:
            break
    return 1e3 * least


def interleaved_ms(
    steps: Sequence[Callable[[], object]],
    *,
    seconds: float = 1.0,
    least: int = 10,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Return the median time of each step in milliseconds; `clock` is the wall clock or `time.process_time`. The steps
    are interleaved, so that a change in machine load affects all of them. CUDA is synchronized after every step."""
    import torch

    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    times: list[list[float]] = [[] for _ in steps]
    until = 0.0
    while until == 0.0 or len(times[0]) < least + 3 or time.perf_counter() < until:
        for step, taken in zip(steps, times, strict=True):
            wait()
            start = clock()
            step()
            wait()
            taken.append(clock() - start)
        if until == 0.0:
            until = time.perf_counter() + seconds
    return [1e3 * statistics.median(taken[3:]) for taken in times]


MET, MISSED, SKIPPED = "met", "**missed**", "Skipped: "  # the summary searches for these


def verdict(met: bool) -> str:
    """Return the last cell of a row with a target. The summary and the exit code depend on it."""
    return MET if met else MISSED


def print_skipped(reason: str) -> None:
    """Report that a measurement cannot run on this machine."""
    print(f"{SKIPPED}{reason}", flush=True)


def describe_machine() -> str:
    import torch

    machine = f"{os.cpu_count()} cores"
    if torch.cuda.is_available():
        machine += f" and an {torch.cuda.get_device_name()}"
    load = f"other processes used {os.getloadavg()[0]:.1f} of the cores before"
    return f"Measured {time.strftime('%Y-%m-%d')} on {machine} with torch {torch.__version__}; {load}."


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table with aligned columns."""
    cells = [[f"{c:.3g}" if isinstance(c, float) else str(c) for c in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for index, row in enumerate(cells):
        print("| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |")
        if index == 0:
            print("|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|", flush=True)
