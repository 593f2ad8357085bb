"""One amount for each of several names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rationalizer.drawing.charts.axes import BOTTOM, COLOURS, HEIGHT, LEFT, SIZE, TOP, Axes, document, line, text, ticks
from rationalizer.drawing.text_width import shorten, width
from rationalizer.metrics import Summary

NAMES = 110  # room for the names, left of the frame
THICKEST = 26.0  # of a bar


@dataclass(frozen=True)
class Bar:
    name: str
    amount: Summary


def bar_plot(bars: Sequence[Bar], *, title: str, x_label: str, format_value: Callable[[float], str]) -> str:
    """The amounts from 0 as one SVG document: a bar each, the least first, its range as a line, its mean in words.

    A bar has the colour of its place in `bars`, as a line or a dot of another plot has.
    """
    if not bars:
        raise ValueError(f"there is nothing to plot as {title!r}")
    room = max(width(format_value(bar.amount.mean), SIZE) for bar in bars) + 14
    axes = Axes(ticks(0, max(bar.amount.high for bar in bars)), [0, 1], left=LEFT + NAMES, right=round(room))
    body = axes.draw_floor(x_label)
    step = (HEIGHT - TOP - BOTTOM) / len(bars)
    thick = min(0.7 * step, THICKEST)
    for row, (k, bar) in enumerate(sorted(enumerate(bars), key=lambda item: item[1].amount.mean)):
        middle, end = TOP + (row + 0.5) * step, axes.x(bar.amount.mean)
        place = f'x="{axes.left:.1f}" y="{middle - thick / 2:.1f}" width="{end - axes.left:.1f}" height="{thick:.1f}"'
        body.append(f'<rect class="bar dot{k % COLOURS}" {place}/>')
        if bar.amount.low < bar.amount.high:
            body.append(line("axis", axes.x(bar.amount.low), middle, axes.x(bar.amount.high), middle))
        body.append(text(axes.left - 8, middle + 4, shorten(bar.name, LEFT + NAMES - 20, SIZE), anchor="end"))
        body.append(text(axes.x(bar.amount.high) + 8, middle + 4, format_value(bar.amount.mean)))
    return document(title, body)
