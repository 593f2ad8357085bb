"""SVG: positions of text, backgrounds and curves; well-formed for any text."""

import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rationalizer.drawing import Explanation, to_svg
from rationalizer.drawing.colours import FAINTEST, HEAT, HIGHLIGHT_COLOURS, STRONGEST
from rationalizer.drawing.highlight_kinds import TextRun, text_runs
from rationalizer.drawing.line_breaking import break_lines
from rationalizer.drawing.svg import MARGIN, SIZE
from rationalizer.drawing.text_width import sanitize, width
from tests.drawing.samples import EMOJI, GUITAR, HOSTILE, LONG, RIGHT_TO_LEFT, SVG, align, explain, texts_of

TEXT = "A warm, funny film: never dull."


def shapes(svg, tag):
    return list(ElementTree.fromstring(svg).iter(f"{SVG}{tag}"))


def body(svg):
    """The text of an explanation, without head and key."""
    return list(ElementTree.fromstring(svg))[-2]


def grounds(group):
    rects = [rect for rect in group.iter(f"{SVG}rect") if rect.get("stroke")]
    return [
        (rect.get("fill"), float(rect.get("x")), float(rect.get("width")), float(rect.get("fill-opacity")))
        for rect in rects
    ]


def words_of(group):
    """Every placed word with its left edge and width, in left-to-right lines."""
    return [
        (node.text, float(node.get("x")), float(node.get("textLength")))
        for text in group.iter(f"{SVG}text")
        for node in text.iter(f"{SVG}tspan")
    ]


def test_text_can_be_searched_line_by_line():
    text = "word " * 60 + "end"
    lines = ["".join(node.itertext()) for node in body(to_svg(explain(text, [3]), width=300)).iter(f"{SVG}text")]
    assert len(lines) > 5
    assert " ".join(lines) == text
    assert all(width(line, SIZE) <= 300 - 2 * MARGIN for line in lines)


def test_backgrounds_are_behind_their_words():
    explanation = explain(TEXT, [1, 2, 3, 6], weights=[0.5, 0.5, 0.5, 1.0], annotation=[6, 7])
    group = body(to_svg(explanation))
    placed = {text: (x, wide) for text, x, wide in words_of(group)}
    (hue, x, wide, faint), (other, *_, strong) = grounds(group)
    assert (hue, other) == (HIGHLIGHT_COLOURS["extra"], HIGHLIGHT_COLOURS["both"])
    assert x == pytest.approx(placed["warm,"][0], abs=2.5)
    assert x + wide == pytest.approx(sum(placed["funny"]), abs=2.5)
    assert FAINTEST < faint < strong == pytest.approx(STRONGEST, abs=0.01)
    lines = list(group.iter(f"{SVG}line"))
    assert [bool(line.get("stroke-dasharray")) for line in lines] == [False, True]  # both, missed
    assert float(lines[1].get("x1")) == pytest.approx(placed["dull"][0], abs=0.1)


def test_nothing_and_everything_selected():
    assert grounds(body(to_svg(explain(TEXT, [])))) == []
    ((_, x, wide, _),) = grounds(body(to_svg(explain(TEXT, list(range(9))))))
    assert wide == pytest.approx(width(TEXT, SIZE), abs=4.5)
    assert x <= 0


def test_run_over_several_lines_has_a_background_on_each():
    text = "word " * 30
    group = body(to_svg(explain(text, list(range(30))), width=300))
    assert len(grounds(group)) == len(list(group.iter(f"{SVG}text"))) > 2
    assert all(x + wide <= 300 - 2 * MARGIN + 2.1 for _, x, wide, _ in grounds(group))


@pytest.mark.parametrize("sure", [0.9999, 0.9951, 1.0, 0.6])
@pytest.mark.parametrize("size", [240, 720])
def test_bars_end_before_their_numbers(sure, size):
    svg = to_svg(explain(TEXT, [1], label="pro", probabilities={"pro": sure, "contra": 1 - sure}), width=size)
    figures = [text for text in shapes(svg, "text") if text.get("text-anchor") == "end"]
    first = min(float(text.get("x")) - width(text.text, float(text.get("font-size"))) for text in figures)
    bars = [rect for rect in shapes(svg, "rect") if rect.get("height") == "8"]
    assert len(bars) >= 3
    assert max(float(bar.get("x")) + float(bar.get("width")) for bar in bars) <= first - 4


EXPLANATIONS = [
    explain(HOSTILE, [1, 2, 3, 9], annotation=[3, 4], label="<b>", probabilities={"<b>": 0.6, '"]]>': 0.4}),
    explain(EMOJI, [0, 2, 5, 7, 9], annotation=[1, 2, 7]),
    explain(RIGHT_TO_LEFT, [2, 3, 4, 10, 11]),
    explain("", []),
    explain(" \n\n ", []),
    explain("x" * 3000, [0]),
    explain(TEXT, [1], label=0.123456, probabilities=None),
    explain(
        TEXT, [1], label="long " * 50, probabilities={"long " * 50: 0.5, **{f"{k} name " * 9: 0.1 for k in range(5)}}
    ),
    GUITAR,
    LONG,
    align(HOSTILE, HOSTILE, {(0, 0): 1.0, (3, 5): 0.5}, annotation=((1, 1),)),
    align(RIGHT_TO_LEFT, "ילד נמצא בחוץ", {(0, 0): 1.0}),
    align("", "", {}),
    align("word", "", {}),
    align("x" * 500, "y " * 80, {(0, 79): 0.1}),
]


@pytest.mark.parametrize("size", [240, 720])
@pytest.mark.parametrize("style", ["lines", "heatmap"])
@pytest.mark.parametrize("explanation", EXPLANATIONS, ids=range(len(EXPLANATIONS)))
def test_every_picture_is_well_formed_and_stays_inside(explanation, style, size):
    svg = to_svg(explanation, truth="<truth>" if explanation.probabilities else 0.5, width=size, style=style)
    root = ElementTree.fromstring(svg.encode())
    across, down = (float(root.get(name)) for name in ("width", "height"))
    assert across >= size
    if isinstance(explanation, Explanation):
        assert across == size
    numbers = [float(value) for value in re.findall(r'"(-?\d+\.\d)"', svg)]
    assert all(-40 < value < max(across, down) for value in numbers)
    assert "nan" not in svg.lower().replace(HOSTILE.lower(), "")
    for rect in root.iter(f"{SVG}rect"):
        assert float(rect.get("width")) > 0
        assert float(rect.get("x")) >= -4
        assert float(rect.get("x")) + float(rect.get("width")) <= across
        assert 0 <= float(rect.get("fill-opacity", 1)) <= 1


@given(st.text(alphabet=st.characters(), max_size=60), st.sets(st.integers(0, 20)), st.integers(240, 800))
@settings(max_examples=60)
def test_any_text_is_preserved(text, chosen, size):
    explanation = explain(text, sorted(chosen))
    lines = ["".join(node.itertext()) for node in body_or_none(to_svg(explanation, width=size))]
    assert "".join("".join(lines).split()) == "".join(sanitize(text).split())


def body_or_none(svg):
    groups = list(ElementTree.fromstring(svg.encode()))
    return list(groups[-2].iter(f"{SVG}text")) if len(groups) > 4 else []


def test_long_words_and_wide_characters_are_broken():
    for text in ("x" * 200, "电影" * 60, "👨‍👩‍👧‍👦" * 60):
        lines = break_lines([TextRun(text)], 200, SIZE)
        assert len(lines) > 3
        assert "".join(f.text for line in lines for f in line.fragments) == text
        assert all(f.right <= 200.001 for line in lines for f in line.fragments)
    assert all(not line.fragments[0].text.startswith("\u200d") for line in lines)


def test_closing_punctuation_does_not_begin_a_line():
    text = "电影，" * 40
    lines = break_lines([TextRun(text)], 200, SIZE)
    assert not any(line.fragments[0].text.startswith("，") for line in lines)


def visual(text):
    """The words of one line as they stand from left to right."""
    (line,) = break_lines([TextRun(text)], 2000, SIZE)
    return [f.text for f in sorted(line.fragments, key=lambda f: f.x) if f.text != " "], line


def test_right_to_left_lines_run_from_the_right():
    order, line = visual("אבג דהו (John Smith) זחט")
    assert order == ["זחט", ")", "John", "Smith", "(", "דהו", "אבג"]
    assert line.right_to_left
    assert max(f.right for f in line.fragments) == pytest.approx(2000)
    order, line = visual("See אבג דהו there")
    assert order == ["See", "דהו", "אבג", "there"]
    assert not line.right_to_left
    svg = to_svg(explain("אבג דהו", [0]))
    (text,) = body(svg).iter(f"{SVG}text")
    assert text.get("direction") == "rtl"
    first = next(text.iter(f"{SVG}tspan"))
    assert float(first.get("x")) == pytest.approx(720 - 2 * MARGIN, abs=0.1)  # the right edge, where it begins


def paths(svg):
    found = []
    for path in shapes(svg, "path"):
        numbers = [float(value) for value in re.findall(r"-?\d+\.\d", path.get("d"))]
        found.append((tuple(numbers[:2]), tuple(numbers[-2:]), path))
    return found


def middle_of(group, word, nth=0):
    x, wide = [(x, wide) for text, x, wide in words_of(group) if text == word][nth]
    return x + wide / 2


def test_curves_connect_their_words():
    svg = to_svg(GUITAR)
    group = body(svg)
    drawn = paths(svg)
    expected = [("on", "in"), ("man", "person"), ("playing", "playing"), ("guitar", "instrument"), ("stage", "public")]
    for (start, end, _), (word, other) in zip(drawn, expected, strict=True):
        assert start[0] == pytest.approx(middle_of(group, word), abs=0.2)
        assert end[0] == pytest.approx(middle_of(group, other, -1), abs=0.2)
        assert start[1] < end[1]
    looks = [path.get("stroke") for *_, path in drawn]
    assert looks == [HIGHLIGHT_COLOURS[kind] for kind in ("missed", "both", "both", "both", "extra")]
    assert [bool(path.get("stroke-dasharray")) for *_, path in drawn] == [True, False, False, False, False]
    thick = [float(path.get("stroke-width")) for *_, path in drawn[1:]]
    assert thick == sorted(thick, reverse=True)
    assert len(set(thick)) == 4
    rings = [circle for circle in shapes(svg, "circle") if circle.get("fill") == "none"]
    assert len(rings) == 2  # the model's own alignment differs from the others without its hue


def test_words_are_those_of_the_texts():
    assert GUITAR.premise in texts_of(to_svg(GUITAR))
    assert GUITAR.hypothesis in texts_of(to_svg(GUITAR))


def test_long_pairs_are_drawn_in_columns():
    svg = to_svg(LONG)
    assert {"umbrella", "harbour", "anything"} <= set(texts_of(svg))
    for start, end, _ in paths(svg):
        assert start[0] < end[0]
    tspans = {node.text: float(node.get("x")) for node in shapes(svg, "tspan")}
    assert tspans["umbrella"] < 300 < tspans["anything"]
    wide = to_svg(LONG, width=1600)
    assert LONG.premise in texts_of(wide)  # here they fit in lines


def test_heatmap_has_a_cell_for_every_pair():
    svg = to_svg(GUITAR, style="heatmap")
    cells = list(body(svg).iter(f"{SVG}rect"))
    m, n = GUITAR.alignment.shape
    grid = [rect for rect in cells if rect.get("fill") == "currentColor"]
    filled = [rect for rect in cells if rect.get("fill") in (HIGHLIGHT_COLOURS["both"], HIGHLIGHT_COLOURS["extra"])]
    frames = [rect for rect in cells if rect.get("fill") == "none"]
    assert (len(grid), len(filled), len(frames)) == (m * n, 4, 4)
    opacity = [float(rect.get("fill-opacity")) for rect in filled]
    assert opacity == pytest.approx([HEAT, 0.8 * HEAT, 0.6 * HEAT, 0.3 * HEAT], abs=0.01)
    assert [bool(frame.get("stroke-dasharray")) for frame in frames] == [False, False, False, True]
    assert {"1.00", ".80", ".60", ".30"} <= set(texts_of(svg))
    hard = align("a b", "c d", {(0, 1): 1.0})
    assert "1.00" not in texts_of(to_svg(hard, style="heatmap"))  # nothing to tell apart


def test_heatmap_opacity_follows_weights():
    soft = align("a b", "c d", {(0, 0): 0.9})
    matrix = np.array([[0.9, 0.001], [0.05, 0.0]], dtype=np.float32)
    svg = to_svg(replace(soft, alignment=matrix), style="heatmap")
    filled = [rect for rect in body(svg).iter(f"{SVG}rect") if rect.get("fill") == HIGHLIGHT_COLOURS["selected"]]
    assert [float(rect.get("fill-opacity")) for rect in filled] == pytest.approx([HEAT, HEAT / 18], abs=0.005)


def test_head_and_legend():
    found = texts_of(to_svg(explain(TEXT, [1, 2], weights=[0.1, 0.2], annotation=[2]), truth="negative"))
    assert {"positive", "negative", "93%", "7%", "wrong: the true label is negative"} <= set(found)
    assert {"read by the model only", "marked in the data only"} <= set(found)
    assert any("larger the weight" in text for text in found)
    regression = texts_of(to_svg(explain(TEXT, [1], label=0.73125, probabilities=None), truth=0.5))
    assert regression[:2] == ["0.7312", "true value 0.5, off by 0.231"]


def test_light_and_dark():
    svg = to_svg(explain(TEXT, [1]))
    assert "prefers-color-scheme: dark" in svg
    assert 'fill="currentColor"' in svg


def test_invalid_width_and_style_raise():
    with pytest.raises(ValueError, match="at least 240, got 100"):
        to_svg(explain(TEXT, [1]), width=100)
    with pytest.raises(ValueError, match="'lines' or 'heatmap', got 'pie'"):
        to_svg(GUITAR, style="pie")


def test_methods_draw_the_same():
    explanation = explain(TEXT, [1])
    assert explanation.to_svg(truth="positive", width=500) == to_svg(explanation, truth="positive", width=500)
    assert GUITAR.to_svg(style="heatmap") == to_svg(GUITAR, style="heatmap")
    assert to_svg(GUITAR) == to_svg(GUITAR)
    assert text_runs(explanation) == text_runs(explanation)


def test_unfaithful_alignment_has_a_note():
    said = "the model also read the premise past the alignment"
    assert said not in texts_of(to_svg(GUITAR))
    assert said in texts_of(to_svg(replace(GUITAR, faithful=False)))


def test_png():
    pytest.importorskip("resvg_py", reason="the extra png")
    picture = explain(TEXT, [1]).to_png(width=300, scale=1.5)
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20]) == 450
    assert picture != explain("A cold, funny film: never dull.", [1]).to_png(width=300, scale=1.5)  # text is drawn
    assert GUITAR.to_png(style="heatmap", scale=0.5).startswith(b"\x89PNG")
    assert EXPLANATIONS[0].to_png(scale=0.1)  # hostile text
    with pytest.raises(ValueError, match="above 0"):
        GUITAR.to_png(scale=0)


def test_png_without_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ImportError, match=r"\.\[png\]"):
        explain(TEXT, [1]).to_png()
