"""Measured points in two dimensions, with the range of either measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rationalizer.drawing.charts.axes import Axes, colour, document, legend, line, marker, ticks
from rationalizer.metrics import Summary


@dataclass(frozen=True)
class Dot:
    name: str  # dots of one name look the same and share an entry of the legend
    x: Summary
    y: Summary


def scatter_plot(dots: Sequence[Dot], *, title: str, x_label: str, y_label: str) -> str:
    """The dots as one SVG document, with crosses that span their ranges."""
    if not dots:
        raise ValueError(f"there is nothing to plot as {title!r}")
    axes = Axes(
        ticks(min(dot.x.low for dot in dots), max(dot.x.high for dot in dots)),
        ticks(min(dot.y.low for dot in dots), max(dot.y.high for dot in dots)),
    )
    names = list(dict.fromkeys(dot.name for dot in dots))
    body = axes.draw(x_label, y_label)
    for dot in dots:
        k, x, y = names.index(dot.name), axes.x(dot.x.mean), axes.y(dot.y.mean)
        if dot.x.low < dot.x.high:
            body.append(line(f"spread {colour(k)}", axes.x(dot.x.low), y, axes.x(dot.x.high), y))
        if dot.y.low < dot.y.high:
            body.append(line(f"spread {colour(k)}", x, axes.y(dot.y.low), x, axes.y(dot.y.high)))
        body.append(marker(k, x, y, scale=1.4))
    best = sorted(names, key=lambda name: min(axes.y(dot.y.mean) for dot in dots if dot.name == name))
    return document(title, body + legend([(names.index(name), name, None) for name in best]))
