"""Elements of all plots: document, axes, markers, legend."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rationalizer.drawing.colours import CHART_STYLE, LIGHT_SERIES
from rationalizer.drawing.text_width import escape, truncate, width

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 46, 54
SIZE = 13.0

COLOURS = len(LIGHT_SERIES)  # every series also has its own marker and dash
LEVEL_DASH = "1 5"  # dash pattern of level lines
DASHES = ("", "7 3", "2 3", "9 3 2 3")
MARKERS = ("circle", "square", "triangle", "diamond")


def document(title: str, body: Sequence[str]) -> str:
    """Combine elements to an SVG document, which can also be part of a page."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rz-plot" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-label="{escape(title)}">\n<title>{escape(title)}</title>\n'
        f"<style>{CHART_STYLE}</style>\n{text(LEFT, 24, truncate(title, WIDTH - LEFT - 10, 16), 'title')}\n"
        + "\n".join(body)
        + "\n</svg>\n"
    )


class Axes:
    """Two axes, with margins at the sides, and the coordinates of values."""

    def __init__(
        self,
        x_ticks: Sequence[float],
        y_ticks: Sequence[float],
        *,
        left: int = LEFT,
        right: int = RIGHT,
        x_range: tuple[float, float] | None = None,
    ) -> None:
        self.x_ticks, self.y_ticks, self.left, self.right = x_ticks, y_ticks, left, WIDTH - right
        self.x_low, self.x_high = x_range or _limits(x_ticks)
        self.y_low, self.y_high = _limits(y_ticks)

    def x(self, value: float) -> float:
        return self.left + (value - self.x_low) / (self.x_high - self.x_low) * (self.right - self.left)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.y_low) / (self.y_high - self.y_low) * (HEIGHT - TOP - BOTTOM)

    def draw(self, x_label: str, y_label: str) -> list[str]:
        drawn = []
        for tick, name in zip(self.y_ticks, tick_labels(self.y_ticks), strict=True):
            y = self.y(tick)
            drawn.append(line("grid", self.left, y, self.right, y))
            drawn.append(text(self.left - 8, y + 4, name, anchor="end"))
        drawn += self.draw_x_axis(x_label)
        middle = (TOP + HEIGHT - BOTTOM) / 2
        turned = f'transform="rotate(-90 18 {middle:.1f})"'
        drawn.append(f'<text x="18" y="{middle:.1f}" text-anchor="middle" {turned}>{escape(y_label)}</text>')
        return drawn

    def draw_x_axis(self, x_label: str) -> list[str]:
        """Draw the x axis alone."""
        bottom = HEIGHT - BOTTOM
        drawn = [line("axis", self.left, bottom, self.right, bottom)]
        free = -math.inf
        for tick, name in zip(self.x_ticks, tick_labels(self.x_ticks), strict=True):
            x = self.x(tick)
            drawn.append(line("axis", x, bottom, x, bottom + 5))
            half = width(name, SIZE) / 2
            if x - half >= free:  # leave out numbers that would overlap
                drawn.append(text(x, bottom + 20, name, anchor="middle"))
                free = x + half + 6
        drawn.append(text((self.left + self.right) / 2, HEIGHT - 12, x_label, anchor="middle"))
        return drawn


def _limits(ticks: Sequence[float]) -> tuple[float, float]:
    return (ticks[0], ticks[-1]) if len(ticks) > 1 else (ticks[0] - 1, ticks[0] + 1)


def nice_ticks(low: float, high: float) -> list[float]:
    """4 to 8 round numbers that cover the range."""
    span = high - low
    if span <= 1e-9 * max(abs(low), abs(high)):  # equal up to rounding
        span = abs(high) or 1.0
    step = 10 ** math.floor(math.log10(span / 4))
    step = next(step * factor for factor in (1, 2, 2.5, 5, 10) if span / (step * factor) <= 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return [float(f"{k * step:.10g}") for k in range(first, last + 1)]


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """The numbers with equally many decimals and, as in tables, without a zero before the point: 0, .25, .50."""
    plain = [f"{tick:g}" for tick in ticks]
    if any("e" in label for label in plain):
        return plain
    decimals = max(len(label.partition(".")[2]) for label in plain)
    labels = [f"{tick:.{decimals}f}" if tick else "0" for tick in ticks]
    return [label.replace("0.", ".", 1) if label.startswith(("0.", "-0.")) else label for label in labels]


def line(kind: str, x1: float, y1: float, x2: float, y2: float, more: str = "") -> str:
    return f'<line class="{kind}"{more} x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def rectangle(kind: str, x: float, y: float, width: float, height: float, attributes: str = "", hint: str = "") -> str:
    box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    content = f"><title>{hint}</title></rect>" if hint else "/>"
    return f'<rect class="{kind}"{attributes} {box}{content}'


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def dash_attribute(pattern: str) -> str:
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def series_class(k: int) -> str:
    return f"c{k % COLOURS}"


def marker(k: int, x: float, y: float, scale: float = 1.0) -> str:
    """The marker of series k. Series with the same shape differ in colour, those with the same colour in shape."""
    kind, fill = MARKERS[k % len(MARKERS)], f"dot{k % COLOURS}"
    if kind == "circle":
        return f'<circle class="{fill}" cx="{x:.1f}" cy="{y:.1f}" r="{3.5 * scale:.1f}"/>'
    corners = {
        "square": ((-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)),
        "triangle": ((0, -4.4), (4, 3), (-4, 3)),
        "diamond": ((0, -4.6), (4.6, 0), (0, 4.6), (-4.6, 0)),
    }[kind]
    points = " ".join(f"{x + scale * dx:.1f},{y + scale * dy:.1f}" for dx, dy in corners)
    return f'<polygon class="{fill}" points="{points}"/>'


def legend(entries: Sequence[tuple[int, str, str | None]]) -> list[str]:
    """Names to the right of the plot: (series, name, dash of its line); None draws a marker only."""
    drawn = []
    for row, (k, name, dash) in enumerate(entries):
        x, y = WIDTH - RIGHT + 22, TOP + 8 + 22 * row
        if dash is not None:
            drawn.append(line(f"line {series_class(k)}", x, y, x + 30, y, dash_attribute(dash)))
        drawn.append(marker(k, x + 15, y))
        drawn.append(text(x + 38, y + 4, truncate(name, RIGHT - 66, SIZE)))
    return drawn
