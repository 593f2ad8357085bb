"""Plots as SVG text: readable on light and dark pages, in colour and without."""

from rationalizer.drawing.charts.bars import Bar, bar_plot
from rationalizer.drawing.charts.histogram import histogram
from rationalizer.drawing.charts.line import Point, Series, line_plot
from rationalizer.drawing.charts.reliability import reliability_diagram
from rationalizer.drawing.charts.scatter import Dot, scatter_plot

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
