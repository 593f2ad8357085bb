"""Plots as SVG: readable on light and dark pages, in colour and without."""

from rationalizer.drawing.charts.plots import (
    Bar,
    Dot,
    Point,
    Series,
    bar_plot,
    histogram,
    line_plot,
    reliability_diagram,
    scatter_plot,
)

__all__ = [
    "Bar",
    "Dot",
    "Point",
    "Series",
    "bar_plot",
    "histogram",
    "line_plot",
    "reliability_diagram",
    "scatter_plot",
]
