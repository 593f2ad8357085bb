"""Plots as SVG documents: lines with ranges, scatter plots, bars, histograms, reliability diagrams."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rationalizer.drawing.chart_axes import (
    BOTTOM,
    COLOURS,
    DASHES,
    HEIGHT,
    LEFT,
    LEVEL_DASH,
    SIZE,
    TOP,
    Axes,
    dash_attribute,
    document,
    legend,
    line,
    marker,
    nice_ticks,
    rectangle,
    series_class,
    text,
)
from rationalizer.drawing.text_width import truncate, width
from rationalizer.metrics import Calibration, Summary

NAMES = 110  # room for the names of bars, left of the frame
MAX_BAR = 26.0  # thickness of a bar
BINS = 20
MAX_BIN = 48.0  # width of a histogram's bar


@dataclass(frozen=True)
class Point:
    x: float
    y: Summary


@dataclass(frozen=True)
class Series:
    """A line through points with ranges; with `everywhere`, a level line at its only point."""

    name: str
    points: tuple[Point, ...]
    everywhere: bool = False


@dataclass(frozen=True)
class Dot:
    name: str  # dots with the same name look the same and share a legend entry
    x: Summary
    y: Summary


@dataclass(frozen=True)
class Bar:
    name: str
    amount: Summary


def line_plot(series: Sequence[Series], *, title: str, x_label: str, y_label: str) -> str:
    """Plot series as lines with bands of their ranges; a single series has no legend."""
    points = [point for one in series for point in one.points]
    _require(points, title)
    xs = sorted({point.x for one in series if not one.everywhere for point in one.points}) or [0.0]
    y_ticks = nice_ticks(min(p.y.low for p in points), max(p.y.high for p in points))
    axes = Axes(xs, y_ticks) if len(series) > 1 else Axes(xs, y_ticks, right=30)
    body = axes.draw(x_label, y_label)
    for k, one in enumerate(series):  # all bands below the lines
        body += _band(axes, one, k)
    for k, one in enumerate(series):
        body += _line(axes, one, k)
    if len(series) > 1:  # names in the order of the lines' ends
        ordered = sorted(enumerate(series), key=lambda item: axes.y(item[1].points[-1].y.mean))
        body += legend([(k, one.name, LEVEL_DASH if one.everywhere else DASHES[k % len(DASHES)]) for k, one in ordered])
    return document(title, body)


def _band(axes: Axes, series: Series, k: int) -> list[str]:
    """The range of each point as a polygon; of a single point, as a vertical bar."""
    if all(point.y.low == point.y.high for point in series.points):
        return []
    ranges = [(axes.x(p.x), axes.y(p.y.low), axes.y(p.y.high)) for p in series.points]
    if series.everywhere:
        ranges = [(x, *ranges[0][1:]) for x in (LEFT, axes.right)]
    if len(ranges) == 1:
        x, low, high = ranges[0]
        return [line(f"spread {series_class(k)}", x, low, x, high)]
    edge = [(x, high) for x, _, high in ranges] + [(x, low) for x, low, _ in reversed(ranges)]
    return [f'<polygon class="band dot{k % COLOURS}" points="{_coordinates(edge)}"/>']


def _line(axes: Axes, series: Series, k: int) -> list[str]:
    if series.everywhere:
        y = axes.y(series.points[0].y.mean)
        round_ends = dash_attribute(LEVEL_DASH) + ' stroke-linecap="round"'
        level = line(f"line {series_class(k)}", LEFT, y, axes.right, y, round_ends)
        return [level, marker(k, LEFT, y), marker(k, axes.right, y)]
    points = [(axes.x(p.x), axes.y(p.y.mean)) for p in series.points]
    dash = dash_attribute(DASHES[k % len(DASHES)])
    drawn = [f'<polyline class="line {series_class(k)}"{dash} points="{_coordinates(points)}"/>']
    return drawn + [marker(k, x, y) for x, y in points]


def _coordinates(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def scatter_plot(dots: Sequence[Dot], *, title: str, x_label: str, y_label: str) -> str:
    """Plot dots with crosses that span their ranges."""
    _require(dots, title)
    axes = Axes(
        nice_ticks(min(dot.x.low for dot in dots), max(dot.x.high for dot in dots)),
        nice_ticks(min(dot.y.low for dot in dots), max(dot.y.high for dot in dots)),
    )
    names = list(dict.fromkeys(dot.name for dot in dots))
    body = axes.draw(x_label, y_label)
    for dot in dots:
        k, x, y = names.index(dot.name), axes.x(dot.x.mean), axes.y(dot.y.mean)
        if dot.x.low < dot.x.high:
            body.append(line(f"spread {series_class(k)}", axes.x(dot.x.low), y, axes.x(dot.x.high), y))
        if dot.y.low < dot.y.high:
            body.append(line(f"spread {series_class(k)}", x, axes.y(dot.y.low), x, axes.y(dot.y.high)))
        body.append(marker(k, x, y, scale=1.4))
    best = sorted(names, key=lambda name: min(axes.y(dot.y.mean) for dot in dots if dot.name == name))
    return document(title, body + legend([(names.index(name), name, None) for name in best]))


def bar_plot(bars: Sequence[Bar], *, title: str, x_label: str, format_value: Callable[[float], str]) -> str:
    """Plot horizontal bars from 0, the smallest first, with their ranges as lines and their means as numbers.

    The colour of a bar depends on its index in `bars`, like that of a series in other plots.
    """
    _require(bars, title)
    room = max(width(format_value(bar.amount.mean), SIZE) for bar in bars) + 14
    axes = Axes(nice_ticks(0, max(bar.amount.high for bar in bars)), [0, 1], left=LEFT + NAMES, right=round(room))
    body = axes.draw_x_axis(x_label)
    step = (HEIGHT - TOP - BOTTOM) / len(bars)
    thick = min(0.7 * step, MAX_BAR)
    for row, (k, bar) in enumerate(sorted(enumerate(bars), key=lambda item: item[1].amount.mean)):
        middle, end = TOP + (row + 0.5) * step, axes.x(bar.amount.mean)
        body.append(rectangle(f"bar dot{k % COLOURS}", axes.left, middle - thick / 2, end - axes.left, thick))
        if bar.amount.low < bar.amount.high:
            body.append(line("axis", axes.x(bar.amount.low), middle, axes.x(bar.amount.high), middle))
        body.append(text(axes.left - 8, middle + 4, truncate(bar.name, LEFT + NAMES - 20, SIZE), anchor="end"))
        body.append(text(axes.x(bar.amount.high) + 8, middle + 4, format_value(bar.amount.mean)))
    return document(title, body)


def histogram(
    values: Sequence[float], *, title: str, x_label: str, y_label: str = "texts", least: float | None = None
) -> str:
    """Plot counts of values: of each integer if there are few different ones, else in bins of equal width.

    Args:
        values: what to count.
        title: of the plot.
        x_label: what the values are.
        y_label: what is counted.
        least: start of the x axis, if below the smallest value.
    """
    numbers = np.asarray(values, dtype=np.float64)
    _require(values, title)
    if not np.isfinite(numbers).all():
        first = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(f"value {first} is {numbers[first]}; a histogram needs finite values")
    edges, x_ticks = _bins(numbers, least)
    counts, _ = np.histogram(numbers.clip(edges[0], edges[-1]), edges)  # the ends can differ by rounding
    y_ticks = [tick for tick in nice_ticks(0, int(counts.max())) if tick == int(tick)]
    axes = Axes(x_ticks, y_ticks, right=30, x_range=(edges[0], edges[-1]))
    body = axes.draw(x_label, y_label)
    floor = axes.y(0)
    for count, left, right in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
        if count:
            middle, top = (axes.x(left) + axes.x(right)) / 2, axes.y(count)
            wide = min(axes.x(right) - axes.x(left) - 2, MAX_BIN)
            hint = f"{count} from {left:.4g} to {right:.4g}"
            body.append(rectangle("bar dot0", middle - wide / 2, top, wide, floor - top, hint=hint))
    x = axes.x(float(numbers.mean()))
    body.append(line("line c1", x, axes.y(axes.y_high), x, floor, dash_attribute("4 3")))
    on_left = x > (axes.x(axes.x_low) + axes.right) / 2  # the side with more room
    mean = f"mean {numbers.mean():.3g}"
    body.append(text(x - 6 if on_left else x + 6, TOP - 6, mean, anchor="end" if on_left else "start"))
    return document(title, body)


def _bins(numbers: NDArray[np.float64], least: float | None) -> tuple[list[float], list[float]]:
    low, high = float(numbers.min()), float(numbers.max())
    low = low if least is None else min(low, least)
    if (numbers == np.round(numbers)).all() and high - low < BINS:
        edges = [k - 0.5 for k in range(int(low), int(high) + 2)]
        return edges, list(range(int(low), int(high) + 1))
    ticks = nice_ticks(low, high)
    return np.linspace(ticks[0], ticks[-1], BINS + 1).tolist(), ticks


def reliability_diagram(calibration: Calibration, *, title: str) -> str:
    """Plot the accuracy of each bin of confidence; on the dashed diagonal they are equal.

    The opacity of a bar grows with its number of predictions, which is printed at its bottom.
    """
    _require(calibration.bins, title)
    low = math.floor(10 * calibration.bins[0].low + 1e-9) / 10
    steps = [round(k / 10, 1) for k in range(11)]
    axes = Axes([step for step in steps if step >= low], steps[::2], right=30)
    body = axes.draw("how sure the model was", "how often it was right")
    total, floor = sum(each.count for each in calibration.bins), axes.y(0)
    numbers = []
    for each in calibration.bins:
        left, right, top = axes.x(each.low) + 1, axes.x(each.high) - 1, axes.y(each.accuracy)
        hint = f"{each.count} predictions, {each.confidence:.0%} sure on average, {each.accuracy:.0%} right"
        style = f' style="fill-opacity:{0.25 + 0.5 * math.sqrt(each.count / total):.2f}"'
        body.append(rectangle("dot0", left, top, right - left, floor - top, style, hint))
        body.append(line("line c0", left, top, right, top))
        if width(str(each.count), SIZE) < right - left:
            numbers.append(text((left + right) / 2, floor - 8, str(each.count), anchor="middle"))
    body.append(line("line c1", axes.x(low), axes.y(low), axes.x(1), axes.y(1), dash_attribute("5 4")))
    return document(title, [*body, *numbers])


def _require(values: Sequence[object], title: str) -> None:
    if not len(values):
        raise ValueError(f"nothing to plot for {title!r}")
