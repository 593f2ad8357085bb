"""A line plot as SVG text: readable on light and dark pages, in colour and without."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 46, 54

# Hues that differ in lightness too; every line also has a marker and a dash pattern of its own.
LIGHT = ("#0b6fb8", "#c2410c", "#15803d", "#9333ea", "#b45309", "#be185d", "#0f766e", "#4b5563", "#1e3a8a")
DARK = ("#6cb8f0", "#fb923c", "#4ade80", "#c99bff", "#fbbf24", "#f58abf", "#3fd6c4", "#b6bec9", "#93aef5")
DASHES = ("", "7 3", "2 3", "9 3 2 3")
MARKERS = ("circle", "square", "triangle", "diamond")

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600; font-size: 15px }
  .grid { stroke: #d0d7de; stroke-width: 1 }
  .axis { stroke: #57606a; stroke-width: 1 }
  .line { fill: none; stroke-width: 2 }
  .spread { stroke-width: 1.2; opacity: .6 }
"""
DARK_STYLE = """
    text { fill: #e6edf3 }
    .grid { stroke: #343b44 }
    .axis { stroke: #9aa4ae }
"""


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """A line with a point, and its range, at each x; one point that `everywhere` holds is a level line."""

    name: str
    points: tuple[Point, ...]
    everywhere: bool = False


def line_plot(series: Sequence[Series], *, title: str, x_label: str, y_label: str) -> str:
    """The series as one SVG document."""
    points = [point for one in series for point in one.points]
    if not points:
        raise ValueError(f"there is nothing to plot as {title!r}")
    xs = sorted({point.x for one in series if not one.everywhere for point in one.points}) or [0.0]
    axes = _Axes(xs, _ticks(min(p.low for p in points), max(p.high for p in points)))
    body = [_text(LEFT, 24, title, "title"), *axes.draw(x_label, y_label)]
    for k, one in enumerate(series):
        body += _line(axes, one, k)
    body += _legend(axes, series)
    dark = f"  @media (prefers-color-scheme: dark) {{{DARK_STYLE}{_colours(DARK)}\n  }}"
    style = f"{STYLE}{_colours(LIGHT)}\n{dark}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title, {chr(34): "&quot;"})}">\n<title>{escape(title)}</title>\n'
        f"<style>{style}\n</style>\n" + "\n".join(body) + "\n</svg>\n"
    )


def _colours(palette: Sequence[str]) -> str:
    return "\n".join(f"  .c{k} {{ stroke: {c} }} .dot{k} {{ fill: {c} }}" for k, c in enumerate(palette))


class _Axes:
    def __init__(self, xs: Sequence[float], ticks: Sequence[float]) -> None:
        self.xs, self.ticks = xs, ticks
        self.x_low, self.x_high = (xs[0], xs[-1]) if len(xs) > 1 else (xs[0] - 1, xs[0] + 1)

    def x(self, value: float) -> float:
        return LEFT + (value - self.x_low) / (self.x_high - self.x_low) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def draw(self, x_label: str, y_label: str) -> list[str]:
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        drawn = []
        for tick in self.ticks:
            y = self.y(tick)
            drawn.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
            drawn.append(_text(LEFT - 8, y + 4, f"{tick:g}", anchor="end"))
        drawn.append(f'<line class="axis" x1="{LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>')
        for value in self.xs:
            x = self.x(value)
            drawn.append(f'<line class="axis" x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 5}"/>')
            drawn.append(_text(x, bottom + 20, f"{value:g}", anchor="middle"))
        drawn.append(_text((LEFT + right) / 2, HEIGHT - 12, x_label, anchor="middle"))
        middle = (TOP + bottom) / 2
        turned = f'transform="rotate(-90 18 {middle:.1f})"'
        drawn.append(f'<text x="18" y="{middle:.1f}" text-anchor="middle" {turned}>{escape(y_label)}</text>')
        return drawn


def _line(axes: _Axes, series: Series, k: int) -> list[str]:
    colour = f"c{k % len(LIGHT)}"
    if series.everywhere:
        y = axes.y(series.points[0].y)
        ends = f'x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"'
        return [f'<line class="line {colour}" stroke-dasharray="1 5" stroke-linecap="round" {ends}/>']
    places = [(axes.x(p.x), axes.y(p.y)) for p in series.points]
    dash = DASHES[k % len(DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    drawn = [f'<polyline class="line {colour}"{dashed} points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>']
    for point, (x, y) in zip(series.points, places, strict=True):
        if point.low < point.high:
            low, high = axes.y(point.low), axes.y(point.high)
            drawn.append(f'<line class="spread {colour}" x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}"/>')
        drawn.append(_marker(k, x, y))
    return drawn


def _legend(axes: _Axes, series: Sequence[Series]) -> list[str]:
    """Names beside the plot, in the order in which the lines end."""
    drawn = []
    ordered = sorted(enumerate(series), key=lambda item: axes.y(item[1].points[-1].y))
    for row, (k, one) in enumerate(ordered):
        x, y = WIDTH - RIGHT + 22, TOP + 8 + 22 * row
        dash = "1 5" if one.everywhere else DASHES[k % len(DASHES)]
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        drawn.append(f'<line class="line c{k % len(LIGHT)}"{dashed} x1="{x}" y1="{y}" x2="{x + 30}" y2="{y}"/>')
        if not one.everywhere:
            drawn.append(_marker(k, x + 15, y))
        drawn.append(_text(x + 38, y + 4, one.name))
    return drawn


def _marker(k: int, x: float, y: float) -> str:
    kind, colour = MARKERS[k % len(MARKERS)], f"dot{k % len(LIGHT)}"
    if kind == "circle":
        return f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
    corners = {
        "square": ((-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)),
        "triangle": ((0, -4.4), (4, 3), (-4, 3)),
        "diamond": ((0, -4.6), (4.6, 0), (0, 4.6), (-4.6, 0)),
    }[kind]
    return f'<polygon class="{colour}" points="{" ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)}"/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers around the range, 4 to 8 of them."""
    span = high - low or abs(high) or 1.0
    step = 10 ** math.floor(math.log10(span / 4))
    step = next(step * factor for factor in (1, 2, 2.5, 5, 10) if span / (step * factor) <= 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return [round(k * step, 10) for k in range(first, last + 1)]
