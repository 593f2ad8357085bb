"""What all plots share: the page, its colours, axes, markers and legend."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rationalizer.drawing.text_width import escape, shorten, width

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 46, 54
SIZE = 13.0

# After Okabe and Ito, darker on white and lighter on black; every series also has a marker and a dash of its own.
LIGHT = ("#0072b2", "#c44f00", "#007a59", "#a8497f", "#946800", "#2f86b8", "#6b5b95", "#5b6570", "#1e3a6e")
DARK = ("#56b4e9", "#f08a43", "#35c79d", "#e09cc4", "#edb33c", "#9bd2f3", "#b9a9e0", "#b6bec9", "#8fa9e8")
COLOURS = len(LIGHT)
DASHES = ("", "7 3", "2 3", "9 3 2 3")
MARKERS = ("circle", "square", "triangle", "diamond")


def _colours(palette: Sequence[str]) -> str:
    pairs = enumerate(palette)
    return "\n".join(f".rz-plot .c{k} {{ stroke: {c} }} .rz-plot .dot{k} {{ fill: {c} }}" for k, c in pairs)


# Every rule names its plot, so that plots can stand in a page without changing it.
STYLE = f"""
.rz-plot {{ color: #1f2328; max-width: 100%; height: auto }}
.rz-plot text {{ font: {SIZE:g}px system-ui, sans-serif; fill: currentColor }}
.rz-plot .title {{ font-weight: 600; font-size: 15px }}
.rz-plot .grid {{ stroke: currentColor; stroke-opacity: .15 }}
.rz-plot .axis {{ stroke: currentColor; stroke-opacity: .6 }}
.rz-plot .line {{ fill: none; stroke-width: 2 }}
.rz-plot .spread {{ stroke-width: 1.2; opacity: .6 }}
.rz-plot .band {{ fill-opacity: .13 }}
.rz-plot .bar {{ fill-opacity: .75 }}
{_colours(LIGHT)}
@media screen and (prefers-color-scheme: dark) {{
.rz-plot {{ color: #e6edf3 }}
{_colours(DARK)}
}}
"""


def document(title: str, body: Sequence[str]) -> str:
    """The drawn things as one SVG document, which can also stand in a page."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rz-plot" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-label="{escape(title)}">\n<title>{escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n{text(LEFT, 24, shorten(title, WIDTH - LEFT - 10, 16), 'title')}\n"
        + "\n".join(body)
        + "\n</svg>\n"
    )


class Axes:
    """A frame around the ticks of either axis, with margins at its sides, and where values lie in it."""

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
        self.x_low, self.x_high = x_range or _ends(x_ticks)
        self.y_low, self.y_high = _ends(y_ticks)

    def x(self, value: float) -> float:
        return self.left + (value - self.x_low) / (self.x_high - self.x_low) * (self.right - self.left)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.y_low) / (self.y_high - self.y_low) * (HEIGHT - TOP - BOTTOM)

    def draw(self, x_label: str, y_label: str) -> list[str]:
        drawn = []
        for tick in self.y_ticks:
            y = self.y(tick)
            drawn.append(line("grid", self.left, y, self.right, y))
            drawn.append(text(self.left - 8, y + 4, f"{tick:g}", anchor="end"))
        drawn += self.draw_floor(x_label)
        middle = (TOP + HEIGHT - BOTTOM) / 2
        turned = f'transform="rotate(-90 18 {middle:.1f})"'
        drawn.append(f'<text x="18" y="{middle:.1f}" text-anchor="middle" {turned}>{escape(y_label)}</text>')
        return drawn

    def draw_floor(self, x_label: str) -> list[str]:
        """The lower axis alone."""
        bottom = HEIGHT - BOTTOM
        drawn = [line("axis", self.left, bottom, self.right, bottom)]
        free = -math.inf
        for tick in self.x_ticks:
            x, name = self.x(tick), f"{tick:g}"
            drawn.append(line("axis", x, bottom, x, bottom + 5))
            half = width(name, SIZE) / 2
            if x - half >= free:  # ticks that lie close together share one number
                drawn.append(text(x, bottom + 20, name, anchor="middle"))
                free = x + half + 6
        drawn.append(text((self.left + self.right) / 2, HEIGHT - 12, x_label, anchor="middle"))
        return drawn


def _ends(ticks: Sequence[float]) -> tuple[float, float]:
    return (ticks[0], ticks[-1]) if len(ticks) > 1 else (ticks[0] - 1, ticks[0] + 1)


def ticks(low: float, high: float) -> list[float]:
    """Round numbers around the range, 4 to 8 of them."""
    span = high - low
    if span <= 1e-9 * max(abs(low), abs(high)):  # the same but for rounding
        span = abs(high) or 1.0
    step = 10 ** math.floor(math.log10(span / 4))
    step = next(step * factor for factor in (1, 2, 2.5, 5, 10) if span / (step * factor) <= 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return [float(f"{k * step:.10g}") for k in range(first, last + 1)]


def line(kind: str, x1: float, y1: float, x2: float, y2: float, more: str = "") -> str:
    return f'<line class="{kind}"{more} x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def dashed(pattern: str) -> str:
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def colour(k: int) -> str:
    return f"c{k % COLOURS}"


def marker(k: int, x: float, y: float, scale: float = 1.0) -> str:
    """A dot of series k. Series with the same shape differ in colour, with the same colour in shape."""
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
    """Names beside the plot: (series, name, dash of its line); None draws a marker only."""
    drawn = []
    for row, (k, name, dash) in enumerate(entries):
        x, y = WIDTH - RIGHT + 22, TOP + 8 + 22 * row
        if dash is not None:
            drawn.append(line(f"line {colour(k)}", x, y, x + 30, y, dashed(dash)))
        drawn.append(marker(k, x + 15, y))
        drawn.append(text(x + 38, y + 4, shorten(name, RIGHT - 66, SIZE)))
    return drawn


LEVEL = "1 5"  # the dash of a line that stands for one value everywhere
