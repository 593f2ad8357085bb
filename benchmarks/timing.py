"""Timing in one process, so that what is compared saw the same machine."""

from __future__ import annotations

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


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A Markdown table, columns aligned."""
    cells = [[f"{c:.3g}" if isinstance(c, float) else str(c) for c in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for index, row in enumerate(cells):
        print("| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |")
        if index == 0:
            print("|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")
