"""Plots as SVG text: readable on light and dark pages, in colour and without."""

from rationalizer.plot.bars import Bar, bar_plot
from rationalizer.plot.histogram import histogram
from rationalizer.plot.line import Point, Series, line_plot
from rationalizer.plot.reliability import reliability_diagram
from rationalizer.plot.scatter import Dot, scatter_plot

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
