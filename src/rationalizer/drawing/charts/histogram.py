"""How often values occur."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rationalizer.drawing.charts.axes import TOP, Axes, document, line, text, ticks

BINS = 20
WIDEST = 48.0  # of a bar


def histogram(
    values: Sequence[float], *, title: str, x_label: str, y_label: str = "texts", least: float | None = None
) -> str:
    """Counts of the values as one SVG document: whole numbers one by one where they are few, else in equal bins.

    Args:
        values: what to count.
        title: above the plot.
        x_label: what the values are.
        y_label: what has the values.
        least: where the axis begins, if not at the smallest value.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if not numbers.size:
        raise ValueError(f"there is nothing to plot as {title!r}")
    if not np.isfinite(numbers).all():
        first = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(f"value {first} is {numbers[first]}; a histogram needs finite values")
    edges, x_ticks = _bins(numbers, least)
    counts, _ = np.histogram(numbers.clip(edges[0], edges[-1]), edges)  # ends may differ by rounding
    y_ticks = [tick for tick in ticks(0, int(counts.max())) if tick == int(tick)]
    axes = Axes(x_ticks, y_ticks, right=30, x_range=(edges[0], edges[-1]))
    body = axes.draw(x_label, y_label)
    floor = axes.y(0)
    for count, left, right in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
        if count:
            middle, top = (axes.x(left) + axes.x(right)) / 2, axes.y(count)
            wide = min(axes.x(right) - axes.x(left) - 2, WIDEST)
            name = f"<title>{count} from {left:.4g} to {right:.4g}</title>"
            place = f'x="{middle - wide / 2:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{floor - top:.1f}"'
            body.append(f'<rect class="bar dot0" {place}>{name}</rect>')
    x = axes.x(float(numbers.mean()))
    body.append(line("line c1", x, axes.y(axes.y_high), x, floor, ' stroke-dasharray="4 3"'))
    left = x > (axes.x(axes.x_low) + axes.right) / 2  # the side with more room
    name = f"mean {numbers.mean():.3g}"
    body.append(text(x - 6 if left else x + 6, TOP - 6, name, anchor="end" if left else "start"))
    return document(title, body)


def _bins(numbers: NDArray[np.float64], least: float | None) -> tuple[list[float], list[float]]:
    low, high = float(numbers.min()), float(numbers.max())
    low = low if least is None else min(low, least)
    if (numbers == np.round(numbers)).all() and high - low < BINS:
        edges = [k - 0.5 for k in range(int(low), int(high) + 2)]
        return edges, list(range(int(low), int(high) + 1))
    shown = ticks(low, high)
    return np.linspace(shown[0], shown[-1], BINS + 1).tolist(), shown
