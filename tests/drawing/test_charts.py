"""Plots: positions of points, bars and bands, legends, errors for empty data."""

import xml.etree.ElementTree as ElementTree

import pytest

from rationalizer.drawing.chart_axes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, nice_ticks, tick_labels
from rationalizer.drawing.charts import (
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
from rationalizer.metrics import Calibration, Summary, calibration

SVG = "{http://www.w3.org/2000/svg}"


def words(root):
    return [node.text for node in root.iter(f"{SVG}text")]


def test_lines_go_through_their_points():
    points = tuple(Point(x, Summary(y, y - 0.05, y + 0.05)) for x, y in ((2, 0.5), (5, 0.6), (20, 0.8)))
    level = Series("full <text>", (Point(0, Summary(0.7, 0.7, 0.7)),), everywhere=True)
    text = line_plot([Series("spectra", points), level], title="a & b", x_label="budget", y_label="score")
    root = ElementTree.fromstring(text)
    line = root.find(f"{SVG}polyline")
    placed = [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
    right = WIDTH - RIGHT
    assert [x for x, _ in placed] == pytest.approx([LEFT, LEFT + (right - LEFT) * 3 / 18, right], abs=0.05)
    heights = [y for _, y in placed]
    assert (heights[0] - heights[1]) * 2 == pytest.approx(heights[1] - heights[2], abs=0.2)  # 0.1 and 0.2 apart
    assert all(0 < y < HEIGHT for y in heights)
    assert {"a & b", "spectra", "full <text>", "2", "5", "20", "budget", "score"} <= set(words(root))
    assert "prefers-color-scheme: dark" in text


def test_bands_cover_the_range():
    points = tuple(Point(x, Summary(y, y - 0.05, y + 0.02)) for x, y in ((2, 0.5), (20, 0.8)))
    level = Series("level", (Point(0, Summary(0.7, 0.65, 0.75)),), everywhere=True)
    single = Series("same", tuple(Point(x, Summary.from_values([0.6])) for x in (2, 20)))
    root = ElementTree.fromstring(
        line_plot([Series("spectra", points), level, single], title="t", x_label="", y_label="")
    )
    bands = [node for node in root.iter(f"{SVG}polygon") if "band" in node.get("class")]
    assert [node.get("class") for node in bands] == ["band dot0", "band dot1"]  # nothing of one value
    corners = [[tuple(map(float, pair.split(","))) for pair in node.get("points").split()] for node in bands]
    line = root.find(f"{SVG}polyline")
    for (x, y), high, low in zip(
        [tuple(map(float, pair.split(","))) for pair in line.get("points").split()],
        corners[0][:2],
        corners[0][:1:-1],
        strict=True,
    ):
        assert high[0] == low[0] == x
        assert (low[1] - y) == pytest.approx(2.5 * (y - high[1]), abs=0.3)
    assert {x for x, _ in corners[1]} == {LEFT, WIDTH - RIGHT}  # from side to side
    drawn = list(root.iter())
    assert max(map(drawn.index, bands)) < drawn.index(line)  # none hides a line


def test_bars_are_sorted_by_amount():
    bars = [
        Bar("slow", Summary(4, 3, 5)),
        Bar("fast <one>", Summary(1, 1, 1)),
        Bar("a very long name " * 5, Summary.from_values([2])),
    ]
    root = ElementTree.fromstring(
        bar_plot(bars, title="t", x_label="seconds", format_value=lambda value: f"{value:.1f} s")
    )
    drawn = [node for node in root.iter(f"{SVG}rect") if "bar" in node.get("class")]
    assert [node.get("class") for node in drawn] == ["bar dot1", "bar dot2", "bar dot0"]  # colours go by their order
    widths = [float(node.get("width")) for node in drawn]
    assert widths == pytest.approx([widths[0], 2 * widths[0], 4 * widths[0]], abs=0.2)
    assert {"fast <one>", "slow", "1.0 s", "4.0 s", "0", "seconds"} <= set(words(root))
    for node in root.iter(f"{SVG}text"):
        assert 0 <= float(node.get("x")) <= WIDTH
    assert any(name.startswith("a very long") and name.endswith("…") for name in words(root))


def test_single_line_has_no_legend():
    points = tuple(Point(x, Summary.from_values([x / 10])) for x in (1, 2, 3))
    root = ElementTree.fromstring(line_plot([Series("only", points)], title="t", x_label="x", y_label="y"))
    assert "only" not in words(root)
    last = root.find(f"{SVG}polyline").get("points").split()[-1]
    assert float(last.split(",")[0]) > WIDTH - RIGHT  # the room is used


def test_dots_are_at_means_with_crosses_over_ranges():
    dots = [
        Dot("spectra", Summary(20, 18, 22), Summary(0.8, 0.7, 0.9)),
        Dot("sfe", Summary(10, 10, 10), Summary(0.6, 0.6, 0.6)),
        Dot("spectra", Summary(30, 30, 30), Summary(0.85, 0.85, 0.85)),
    ]
    root = ElementTree.fromstring(scatter_plot(dots, title="t", x_label="size", y_label="score"))
    circles = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter(f"{SVG}circle")]
    spreads = [line for line in root.iter(f"{SVG}line") if "spread" in line.get("class")]
    assert len(spreads) == 2
    (x, y), horizontal = circles[0], spreads[0]
    assert float(horizontal.get("y1")) == float(horizontal.get("y2")) == y
    assert float(horizontal.get("x1")) < x < float(horizontal.get("x2"))
    assert x - float(horizontal.get("x1")) == pytest.approx(float(horizontal.get("x2")) - x, abs=0.2)
    vertical = spreads[1]
    assert float(vertical.get("x1")) == float(vertical.get("x2")) == x
    assert circles[1][0] > x  # the other dot of spectra, farther right and higher
    assert circles[1][1] < y
    assert words(root).count("spectra") == 1  # one entry of the legend for both


def bars(root):
    found = [rect for rect in root.iter(f"{SVG}rect") if "bar" in rect.get("class", "")]
    return [(float(r.get("x")), float(r.get("width")), float(r.get("height"))) for r in found]


def test_histogram_bar_heights_are_counts():
    root = ElementTree.fromstring(histogram([1, 1, 1, 2, 4], title="t", x_label="words"))
    drawn = bars(root)
    assert len(drawn) == 3
    heights = [height for _, _, height in drawn]
    assert heights == pytest.approx([3 * heights[1], heights[1], heights[1]], abs=0.3)
    assert {"1", "2", "3", "4", "mean 1.8"} <= set(words(root))
    middle = drawn[1][0] + drawn[1][1] / 2
    tick = next(n for n in root.iter(f"{SVG}text") if n.text == "2" and float(n.get("y")) > HEIGHT - BOTTOM)
    assert float(tick.get("x")) == pytest.approx(middle, abs=0.1)


@pytest.mark.parametrize("values", [[k * 0.37 % 7 for k in range(100)], [0.0, 0.1 + 0.2]])
def test_histogram_covers_all_values(values):
    root = ElementTree.fromstring(histogram(values, title="t", x_label="%"))
    counted = [int(node.text.split()[0]) for node in root.iter(f"{SVG}title") if node.text != "t"]
    assert sum(counted) == len(values)


@pytest.mark.parametrize("values", [[0.2], [0.0, 0.0], [5], [0.1 + 0.2, 0.3]])
def test_histogram_of_equal_values_has_one_bar(values):
    root = ElementTree.fromstring(histogram(values, title="t", x_label="%"))
    assert len(bars(root)) == 1


def test_empty_plots_raise():
    for draw in (
        line_plot,
        scatter_plot,
        lambda v, title, x_label, y_label: histogram(v, title=title, x_label=x_label),
        lambda v, title, x_label, y_label: bar_plot(v, title=title, x_label=x_label, format_value=str),
    ):
        with pytest.raises(ValueError, match="nothing to plot for 'empty'"):
            draw([], title="empty", x_label="", y_label="")
    with pytest.raises(ValueError, match="value 1 is nan"):
        histogram([1.0, float("nan")], title="t", x_label="")


def test_style_rules_are_scoped_to_plots():
    """Several plots stand in one page, and none may change it."""
    sheet = histogram([1], title="t", x_label="").split("<style>")[1].split("</style>")[0]
    selectors = [
        rule.split("{")[0].strip()
        for rule in sheet.replace("@media screen and (prefers-color-scheme: dark) {", "").split("}")
    ]
    assert all(selector.startswith(".rz-plot") for selector in selectors if selector)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0.81, 0.83), (3, 3), (-5, 20), (0, 0), (1e-7, 2e-7), (0, 12345), (0.3, 0.1 + 0.2)]
)
def test_ticks_cover_the_range(low, high):
    found = nice_ticks(low, high)
    assert found[0] <= low
    assert found[-1] >= high * (1 - 1e-9)
    assert 2 <= len(found) <= 8
    assert found == sorted(set(found))


@pytest.mark.parametrize(
    ("ticks", "labels"),
    [
        ([0, 0.25, 0.5, 1], ["0", ".25", ".50", "1.00"]),
        ([-0.5, 0, 0.5], ["-.5", "0", ".5"]),
        ([0, 10, 20], ["0", "10", "20"]),
        ([10.5, 20], ["10.5", "20.0"]),
        ([1e-7, 2e-7], ["1e-07", "2e-07"]),
    ],
)
def test_labels_of_ticks_have_equally_many_decimals(ticks, labels):
    assert tick_labels(ticks) == labels


def test_plots_are_deterministic():
    assert histogram([1, 2], title="t", x_label="x") == histogram([1, 2], title="t", x_label="x")


def test_reliability_diagram_has_one_bar_per_bin():
    found = calibration([0.95, 0.9, 0.9, 0.55], [True, True, False, False])
    root = ElementTree.fromstring(reliability_diagram(found, title="t"))
    bars = [node for node in root.iter(f"{SVG}rect") if node.get("class") == "dot0"]
    heights = [float(bar.get("height")) for bar in bars]
    full = HEIGHT - TOP - BOTTOM
    assert heights == pytest.approx([0, full / 2, full], abs=0.2)
    assert [bar.find(f"{SVG}title").text for bar in bars][1] == "2 predictions, 90% sure on average, 50% right"
    assert {"1", "2", "how often it was right", ".6"} <= set(words(root))
    assert words(root).count(".4") == 1  # at the left; the axis below begins at .5
    with pytest.raises(ValueError, match="nothing to plot for 't'"):
        reliability_diagram(Calibration((), 0.0), title="t")
