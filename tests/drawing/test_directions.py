"""Words for and against a prediction differ in colour, and without it."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from rationalizer.drawing import to_html, to_svg, to_terminal
from rationalizer.drawing.colours import BLUE, GREY, ORANGE, TERMINAL_COLOURS
from rationalizer.drawing.highlight_kinds import text_runs
from rationalizer.drawing.selected_words import AlignedWords, describe_direction
from tests.drawing.samples import GUITAR, SVG, WEIGHED


def runs(explanation):
    return [(run.text, run.look.sign, run.look.shade) for run in text_runs(explanation) if run.kind]


def test_two_classes_have_one_colour_each():
    assert runs(WEIGHED) == [("warm", "0", 0.0005), ("never", "+", 1.0), ("dull", "-", 0.5)]
    other = replace(WEIGHED, label="negative")  # the same weights now speak for the other class
    assert [sign for _, sign, _ in runs(other)] == ["0", "-", "+"]
    three = replace(WEIGHED, label="b", probabilities={"a": 0.2, "b": 0.5, "c": 0.3})
    assert [sign for _, sign, _ in runs(three)] == ["0", "+", "-"]
    value = replace(WEIGHED, label=0.5, probabilities=None)
    assert [sign for _, sign, _ in runs(value)] == ["0", "+", "-"]


def test_terminal():
    shown = to_terminal(WEIGHED, colour=False)
    assert "A [warm], funny film: [+never] [-dull]." in shown
    assert "[+abc] read, for positive\n[-abc] read, for negative\n[abc] read, no effect" in shown
    coloured = to_terminal(WEIGHED)
    for colour in (BLUE, ORANGE, GREY):
        assert any(f"48;5;{number}m" in coloured for number in TERMINAL_COLOURS[colour])


def test_html():
    figure = ElementTree.fromstring(to_html(WEIGHED))
    marks = {mark.get("class"): "".join(mark.itertext()) for mark in figure.find("p").iter("mark")}
    assert marks == {
        "rz-selected rz-neither": "warm",
        "rz-selected rz-plus": "never",
        "rz-selected rz-minus": "dull",
    }
    titles = [span.get("title") for span in figure.find("p").iter("span")]
    assert titles[1:] == ["2 for positive, read by the model", "1 for negative, read by the model"]
    bars = [span.get("class") for span in figure.iter("span") if "width" in span.get("style", "")]
    assert bars == [None, "rz-bar-minus"]  # positive, negative


def test_svg():
    rects = [rect for rect in ElementTree.fromstring(to_svg(WEIGHED)).iter(f"{SVG}rect") if rect.get("stroke")]
    drawn = [(rect.get("fill"), bool(rect.get("stroke-dasharray"))) for rect in rects]
    assert drawn[:3] == [(GREY, False), (BLUE, False), (ORANGE, True)]


def test_annotation_is_underlined_whatever_the_direction():
    marked = replace(WEIGHED, annotation=tuple(k in (4, 7) for k in range(9)))
    shown = to_terminal(marked, colour=False)
    assert "[+never] [_-dull_]" in shown
    assert "_film_" in shown
    assert "[_abc_] read by the model and marked in the data" in shown
    assert "read by the model only" not in shown  # that is every word without an underline


def test_links():
    spans = [(GUITAR.premise_offsets[i], GUITAR.hypothesis_offsets[j]) for i, j in GUITAR.pairs]
    words = tuple(
        AlignedWords("", "", pair[0], *one, pair[1], *other, weight, "against it" if weight < 0 else "for it")
        for pair, (one, other), weight in zip(GUITAR.pairs, spans, (0.5, -2.0, 1.0, 0.0), strict=True)
    )
    pair = replace(GUITAR, words=words, annotation=None)
    paths = list(ElementTree.fromstring(to_svg(pair)).iter(f"{SVG}path"))
    assert [path.get("stroke") for path in paths[:3]] == [BLUE, ORANGE, BLUE]
    assert [path.find(f"{SVG}title").text for path in paths[:2]] == ["0.5 for it", "2 against it"]
    assert [bool(path.get("stroke-dasharray")) for path in paths] == [False, True, False, True]
    assert "playing ── 0.80 ── playing  2 against it" in to_terminal(pair, colour=False)
    assert "rz-minus" in to_html(pair, style="heatmap")


@pytest.mark.parametrize(
    ("weight", "label", "classes", "direction"),
    [
        (1.2, "bad", ("bad", "good"), "for bad"),
        (-1.2, "bad", ("bad", "good"), "for good"),
        (1.2, 2.0, (1.0, 2.0, 3.0), "for 2"),
        (-1.2, "b", ("a", "b", "c"), "against b"),
        (0.004, "b", ("a", "b", "c"), "no effect"),
        (float("nan"), "b", ("a", "b", "c"), "no effect"),
        (-1.2, 3.5, None, "lowers the value"),
    ],
)
def test_direction(weight, label, classes, direction):
    assert describe_direction(weight, label, classes) == direction
    assert describe_direction(weight, label, classes, smallest=10) == "no effect"


def test_words_in_json():
    words = json.loads(json.dumps(WEIGHED.to_dict()))["words"]
    assert words[1] == {
        **{"text": "dull", "index": 7, "start": 26, "end": 30, "weight": -1.0, "direction": "for negative"},
        "by_class": {"negative": 1.0, "positive": -1.0},
    }
