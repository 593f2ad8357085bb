"""Several labels in drawings: each has its own words and colour, and opens the text with its words."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from rationalizer.drawing import Explanation, LabelExplanation, to_html, to_svg, to_terminal
from rationalizer.drawing.captions import describe_prediction
from rationalizer.drawing.colours import LIGHT_SERIES
from rationalizer.text import split_words

TEXT = "tasty soup but a rude waiter"


def labelled(words, p, value, name="food", threshold=0.5, **more):
    tokens, offsets = split_words(TEXT)
    chosen = tuple(token in words for token in tokens)
    spans = tuple(offsets[k] for k in range(len(tokens)) if chosen[k])
    return LabelExplanation(name, value, p, tuple(map(float, chosen)), chosen, spans, threshold=threshold, **more)


def explanation(*labels, label=None, separate=True):
    tokens, offsets = split_words(TEXT)
    selected = tuple(any(each) for each in zip(*(one.selected for one in labels), strict=True))
    return Explanation(
        text=TEXT,
        label=tuple(one.name for one in labels if one.value) if label is None else label,
        probabilities=None if isinstance(label, dict) else {one.name: one.probability for one in labels},
        tokens=tokens,
        offsets=offsets,
        mask=tuple(map(float, selected)),
        selected=selected,
        spans=(),
        labels=labels,
        separate=separate,
    )


FOOD = labelled(("tasty", "soup"), 0.9, True)
SERVICE = labelled(("rude", "waiter", "soup"), 0.8, True, "service")
ROOM = labelled(("but",), 0.1, False, "room")


def words_of(node):
    return "".join(node.itertext())


def test_html_has_a_row_for_each_label_that_opens_its_words():
    root = ElementTree.fromstring(to_html(explanation(FOOD, ROOM, SERVICE)))
    rows = root.findall(".//details")
    assert [words_of(row.find("summary/bdi")) for row in rows] == ["food", "service", "room"]  # those it has come first
    assert ["rz-has" in row.get("class") for row in rows] == [True, True, False]
    assert [[words_of(mark) for mark in row.iter("mark")] for row in rows] == [
        ["tasty soup"],
        ["soup", "rude waiter"],
        ["but"],
    ]
    assert all(words_of(row.find("p")) == TEXT for row in rows)
    assert len({row.get("style") for row in rows}) == 3  # a colour of its own


def test_the_text_shows_the_labels_that_it_has_in_their_colours():
    root = ElementTree.fromstring(to_html(explanation(FOOD, SERVICE, ROOM)))
    body = root.find("p[@class='rz-text']")
    marks = {words_of(mark): mark for mark in body.iter("mark")}
    assert list(marks) == ["tasty", "soup", "rude waiter"]  # not "but"
    assert marks["tasty"].get("style") != marks["rude waiter"].get("style")
    both = marks["soup"].find("span").get("style")
    assert "var(--rz-l0)" in both
    assert "var(--rz-l1)" in both


def test_terminal_and_svg_list_the_words_of_each_label():
    one = explanation(FOOD, SERVICE, ROOM)
    lines = to_terminal(one, colour=False).splitlines()
    assert lines[0] == "food, service"
    assert lines[2] == "[tasty] [soup] but a [rude waiter]"
    assert [line.split()[0] for line in lines[4:7]] == ["food", "service", "room"]
    assert lines[4].endswith("90%  tasty ... soup")
    assert "\x1b[" in to_terminal(one)
    root = ElementTree.fromstring(to_svg(one))
    colours = {node.get("fill") for node in root.iter("{http://www.w3.org/2000/svg}rect")}
    assert set(LIGHT_SERIES[:3]) <= colours
    texts = [words_of(node) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "rude ... waiter" in " ".join(texts) or "soup ... rude ... waiter" in " ".join(texts)


def test_of_many_labels_only_some_are_drawn():
    many = [labelled(("but",), 0.01 + k / 1e5, False, f"label {k}") for k in range(500)]
    one = explanation(*many[:250], FOOD, *many[250:])
    root = ElementTree.fromstring(to_html(one))
    names = [words_of(node) for node in root.iterfind(".//summary/bdi")]
    assert names == ["food", *(f"label {k}" for k in (499, 498, 497, 496, 495))]
    assert words_of(root.find(".//div[@class='rz-rest']")) == "495 others, at most 1%"
    assert "495 others, at most 1%" in to_terminal(one, colour=False)
    assert len(to_svg(one)) < 20_000
    assert len(to_html(one)) < 20_000


def test_shared_rationales_are_drawn_once():
    shared = [labelled(("tasty", "soup"), p, p > 0.5, name) for name, p in (("food", 0.9), ("room", 0.2))]
    one = explanation(*shared, separate=False)
    assert "<details" not in to_html(one)
    assert "food 90%  room 20%" in to_terminal(one, colour=False)
    stored = one.to_dict()["labels"]
    assert [sorted(each) for each in stored] == [
        ["annotation", "name", "probabilities", "probability", "threshold", "value"]
    ] * 2
    assert "mask" in explanation(FOOD, ROOM).to_dict()["labels"][0]


def test_targets_are_rows_with_their_values():
    stars = labelled(("tasty",), None, 4.5, "stars", None)
    kind = labelled(("waiter",), 0.75, "restaurant", "kind", None, probabilities={"hotel": 0.25, "restaurant": 0.75})
    one = explanation(stars, kind, label={"stars": 4.5, "kind": "restaurant"})
    drawn = to_terminal(one, colour=False)
    assert "stars: 4.5" in drawn.splitlines()[4]
    assert "75%" in drawn.splitlines()[5]
    assert to_html(one, truth={"stars": 5.0, "kind": "hotel"}).count("<details") == 2


def test_annotations_of_a_label_are_in_its_row():
    people = tuple(token in ("soup", "waiter") for token in split_words(TEXT)[0])
    root = ElementTree.fromstring(to_html(explanation(replace(FOOD, annotation=people), ROOM)))
    row = root.find(".//details")
    assert [words_of(node) for node in row.iter("u")] == ["waiter"]  # marked by people only
    kinds = {words_of(mark): mark.get("class").split()[0] for mark in row.iter("mark")}
    assert kinds == {"tasty": "rz-extra", "soup": "rz-both"}


@pytest.mark.parametrize("count", [9, 12])
def test_colours_differ_within_a_text(count):
    labels = [labelled(("but",), 0.9, True, f"label {k}") for k in range(count)]
    root = ElementTree.fromstring(to_html(explanation(*labels)))
    rows = [row.get("style") for row in root.findall(".//details")]
    assert len(set(rows)) == min(count, len(LIGHT_SERIES))


def test_headline_of_many_labels():
    names = [f"topic {k:02}" for k in range(30)]
    many = explanation(*(labelled((), k / 100, True, name) for k, name in enumerate(names)))
    label = describe_prediction(many, tuple(names)).label
    assert label.startswith("topic 29, topic 28, ")  # the most probable ones
    assert label.endswith(", topic 10 and 10 more")
    assert describe_prediction(many, tuple(names)).correct
    assert describe_prediction(many, tuple(names[1:])).correct is False
