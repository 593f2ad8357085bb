"""Lines with the band of their ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rationalizer.drawing.charts.axes import (
    COLOURS,
    DASHES,
    LEFT,
    LEVEL,
    Axes,
    colour,
    dashed,
    document,
    legend,
    line,
    marker,
    ticks,
)
from rationalizer.metrics import Summary


@dataclass(frozen=True)
class Point:
    x: float
    y: Summary


@dataclass(frozen=True)
class Series:
    """A line with a point, and its range, at each x; one point that holds `everywhere` is a level line."""

    name: str
    points: tuple[Point, ...]
    everywhere: bool = False


def line_plot(series: Sequence[Series], *, title: str, x_label: str, y_label: str) -> str:
    """The series as one SVG document; a single one needs no legend."""
    points = [point for one in series for point in one.points]
    if not points:
        raise ValueError(f"there is nothing to plot as {title!r}")
    xs = sorted({point.x for one in series if not one.everywhere for point in one.points}) or [0.0]
    y_ticks = ticks(min(p.y.low for p in points), max(p.y.high for p in points))
    axes = Axes(xs, y_ticks) if len(series) > 1 else Axes(xs, y_ticks, right=30)
    body = axes.draw(x_label, y_label)
    for k, one in enumerate(series):  # all of them under the lines
        body += _band(axes, one, k)
    for k, one in enumerate(series):
        body += _line(axes, one, k)
    if len(series) > 1:  # names in the order in which the lines end
        ordered = sorted(enumerate(series), key=lambda item: axes.y(item[1].points[-1].y.mean))
        body += legend([(k, one.name, LEVEL if one.everywhere else DASHES[k % len(DASHES)]) for k, one in ordered])
    return document(title, body)


def _band(axes: Axes, series: Series, k: int) -> list[str]:
    """From the least to the greatest value of each point; a bar where a single point has no width."""
    if all(point.y.low == point.y.high for point in series.points):
        return []
    places = [(axes.x(p.x), axes.y(p.y.low), axes.y(p.y.high)) for p in series.points]
    if series.everywhere:
        places = [(x, *places[0][1:]) for x in (LEFT, axes.right)]
    if len(places) == 1:
        x, low, high = places[0]
        return [line(f"spread {colour(k)}", x, low, x, high)]
    edge = [(x, high) for x, _, high in places] + [(x, low) for x, low, _ in reversed(places)]
    return [f'<polygon class="band dot{k % COLOURS}" points="{_joined(edge)}"/>']


def _line(axes: Axes, series: Series, k: int) -> list[str]:
    if series.everywhere:
        y = axes.y(series.points[0].y.mean)
        round_ends = dashed(LEVEL) + ' stroke-linecap="round"'
        level = line(f"line {colour(k)}", LEFT, y, axes.right, y, round_ends)
        return [level, marker(k, LEFT, y), marker(k, axes.right, y)]
    places = [(axes.x(p.x), axes.y(p.y.mean)) for p in series.points]
    drawn = [f'<polyline class="line {colour(k)}"{dashed(DASHES[k % len(DASHES)])} points="{_joined(places)}"/>']
    return drawn + [marker(k, x, y) for x, y in places]


def _joined(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
