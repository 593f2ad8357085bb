"""Plots: points where they belong, names that survive, nothing drawn of nothing."""

import xml.etree.ElementTree as ElementTree

import pytest

from rationalizer.plot import Point, Series, line_plot
from rationalizer.plot.axes import HEIGHT, LEFT, RIGHT, WIDTH


def test_lines_go_through_their_points():
    points = tuple(Point(x, y, y - 0.05, y + 0.05) for x, y in ((2, 0.5), (5, 0.6), (20, 0.8)))
    level = Series("full <text>", (Point(0, 0.7, 0.7, 0.7),), everywhere=True)
    text = line_plot([Series("spectra", points), level], title="a & b", x_label="budget", y_label="score")
    root = ElementTree.fromstring(text)
    space = {"s": "http://www.w3.org/2000/svg"}
    line = root.find("s:polyline", space)
    placed = [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
    right = WIDTH - RIGHT
    assert [x for x, _ in placed] == pytest.approx([LEFT, LEFT + (right - LEFT) * 3 / 18, right], abs=0.05)
    heights = [y for _, y in placed]
    assert (heights[0] - heights[1]) * 2 == pytest.approx(heights[1] - heights[2], abs=0.2)  # 0.1 and 0.2 apart
    assert all(0 < y < HEIGHT for y in heights)
    words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a & b", "spectra", "full <text>", "2", "5", "20", "budget", "score"} <= set(words)
    assert "prefers-color-scheme: dark" in text
    with pytest.raises(ValueError, match="nothing to plot"):
        line_plot([], title="x", x_label="", y_label="")
