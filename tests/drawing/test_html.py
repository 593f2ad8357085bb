"""HTML: highlights, escaping, pages."""

import html
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rationalizer import drawing as render
from rationalizer.drawing import HtmlTable, Section, to_html, to_html_page
from rationalizer.drawing.charts import histogram
from rationalizer.drawing.text_width import sanitize
from tests.drawing.samples import EMOJI, GUITAR, HOSTILE, LONG, RIGHT_TO_LEFT, SVG, align, explain

TEXT = "A warm, funny film: never dull."


def parse(fragment):
    """Fragments are also well-formed XML, which makes them easy to check and to embed."""
    return ElementTree.fromstring(fragment.encode())


def text_of(node):
    return "".join(node.itertext())


def paragraph(root):
    return next(node for node in root.iter("p") if "rz-text" in node.get("class"))


def test_highlight_kinds_are_on_the_original_text():
    root = parse(to_html(explain(TEXT, [1, 2, 3], weights=[0.5, 0.5, 1.0], annotation=[3, 4])))
    body = paragraph(root)
    assert text_of(body) == TEXT
    marks = {node.get("class"): text_of(node) for node in body.iter("mark")}
    assert marks == {"rz-extra": "warm,", "rz-both": "funny"}
    assert [text_of(node) for node in body.iter("u")] == ["film"]
    shades = [node.get("style") for node in body.iter("span")]
    assert shades == ["--w:0.50", "--w:1.00"]
    assert "weight 0.5" in next(body.iter("span")).get("title")


def test_neighbours_share_one_mark_element():
    root = parse(to_html(explain(TEXT, [1, 2, 3], weights=[0.2, 0.4, 0.4])))
    (mark,) = paragraph(root).iter("mark")
    assert [(text_of(span), span.get("style")) for span in mark] == [("warm", "--w:0.50"), (", funny", "--w:1.00")]


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=3, max_size=3))
def test_shades_are_between_0_and_1(weights):
    root = parse(to_html(explain(TEXT, [1, 3, 6], weights=weights)))
    shades = [float(span.get("style").removeprefix("--w:")) for span in paragraph(root).iter("span")]
    assert len(shades) == 3
    assert all(0 <= shade <= 1 for shade in shades)


def test_head_has_label_probabilities_and_truth():
    head = parse(to_html(explain(TEXT, [1]), truth="negative")).find("figcaption")
    assert "wrong: the true label is negative" in text_of(head)
    widths = [s.get("style") for s in head.iter("span") if "width" in s.get("style", "")]
    assert widths == ["width:93.0%", "width:7.0%"]
    assert "93%" in text_of(head)
    right = text_of(parse(to_html(explain(TEXT, [1]), truth="positive")).find("figcaption"))
    assert "right" in right
    assert "wrong" not in right
    silent = text_of(parse(to_html(explain(TEXT, [1]))).find("figcaption"))
    assert "right" not in silent


def test_regression_has_a_value_and_no_bars():
    explanation = explain(TEXT, [1], label=0.73125, probabilities=None)
    head = text_of(parse(to_html(explanation, truth=0.5)).find("figcaption"))
    assert head == "0.7312true value 0.5, off by 0.231"


def test_many_classes_are_summarized():
    probabilities = {f"class {k}": p for k, p in enumerate([0.4, 0.2, 0.1, 0.1, 0.1, 0.06, 0.04])}
    head = text_of(parse(to_html(explain(TEXT, [], label="class 0", probabilities=probabilities))).find("figcaption"))
    assert "2 others" in head
    assert "10%" in head
    assert "class 6" not in head


@pytest.mark.parametrize("label", [True, 3, "a", 2.0])
def test_labels_of_every_type(label):
    explanation = explain(TEXT, [1], label=label, probabilities={label: 0.9, "other": 0.1})
    assert "right" in to_html(explanation, truth=label)


def key_of(explanation):
    return text_of(next(node for node in parse(to_html(explanation)).iter("ul")))


def test_legend_explains_the_highlights():
    assert key_of(explain(TEXT, [1])) == "abcread by the model"
    assert "marked in the data only" in key_of(explain(TEXT, [], annotation=[1]))
    assert key_of(explain(TEXT, [])) == "no word was read by the model"
    assert "larger the weight" in key_of(explain(TEXT, [1, 2], weights=[0.2, 0.7]))
    assert "larger the weight" not in key_of(explain(TEXT, [1, 2], weights=[0.3, 0.3]))
    assert "<ul" not in to_html(explain(TEXT, [1]), legend=False)


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found, self.text = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text.append(data)


def test_text_is_escaped():
    name = '"><script>alert(1)</script>'
    explanation = explain(HOSTILE, [1, 2, 3, 9], annotation=[3, 4], label=name, probabilities={name: 0.6, "'&": 0.4})
    pair = align(HOSTILE, HOSTILE, {(0, 0): 1.0, (3, 5): 0.5})
    page = to_html_page([explanation, pair], title=HOSTILE, lead=HOSTILE, truths=[name, HOSTILE])
    tags = Tags(page)
    assert not {"script", "img", "iframe", "link", "object"} & {tag for tag, _ in tags.found}
    assert not any(name.startswith("on") or name in ("src", "href") for _, given in tags.found for name in given)
    body = paragraph(parse(to_html(explanation)))
    assert text_of(body) == sanitize(HOSTILE)
    page.encode()  # a lone surrogate would fail


@pytest.mark.parametrize("text", [EMOJI, RIGHT_TO_LEFT, "", " \n ", "a\n\nb"])
def test_any_text_is_preserved(text):
    explanation = explain(text, [0, 2, 3, 8, 9], annotation=[1, 2])
    body = paragraph(parse(to_html(explanation)))
    assert text_of(body) == text
    assert body.get("dir") == "auto"


def test_pairs_are_drawn():
    root = parse(to_html(GUITAR))
    drawings = list(root.iter(f"{SVG}svg"))
    # One for wide pages and one for phones; in each four curves by the model and one in the data only.
    assert [len(list(drawing.iter(f"{SVG}path"))) for drawing in drawings] == [5, 5]
    assert float(drawings[1].get("width")) <= 324 < float(drawings[0].get("width"))
    assert not list(root.find(".//div[@class='rz-wide']").iter("p"))  # the drawing reads as the texts
    long = parse(to_html(LONG))
    assert [text_of(node) for node in long.iter("p")] == [LONG.premise, LONG.hypothesis]
    assert len(list(parse(to_html(GUITAR, style="heatmap")).iter("p"))) == 2
    with pytest.raises(ValueError, match="'lines' or 'heatmap', got 'pie'"):
        to_html(GUITAR, style="pie")


def test_page_is_self_contained():
    page = to_html_page(
        [explain(TEXT, [1])],
        title="Reviews & more",
        sections=[
            Section(
                "Scores",
                text="first\n\nsecond",
                notices=["beware"],
                figures=[("accuracy", "99")],
                tables=[HtmlTable(("", "test"), [("macro-F1", ".91")])],
            ),
            Section("Sizes", pictures=[histogram([1, 2], title="sizes", x_label="words")]),
            Section("Pairs", explanations=[GUITAR], truths=["neutral"]),
        ],
    )
    assert page.startswith("<!DOCTYPE html>")
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert "@import" not in page
    assert "url(" not in page
    text = "".join(Tags(page).text)
    assert page.count("<p>") == 2
    for words in (
        "Reviews & more",
        "Scores",
        "second",
        "beware",
        "99",
        "macro-F1",
        ".91",
        "sizes",
        "wrong: the true label",
    ):
        assert words in text
    assert page.count("<style>") == 2  # the page's, and the plot's
    assert 'class="notice"' in page


def test_section_has_one_legend():
    page = to_html_page([explain(TEXT, [k]) for k in range(5)], title="t")
    assert page.count("read by the model</li>") == 1
    assert page.count("<article>") == 5


def test_pages_can_be_written_incrementally():
    first, second = explain(TEXT, [1]), explain(TEXT, [3])
    streamed = render.html_opening("t") + render.article(first) + render.article(second) + render.html_closing()
    tags = [tag for tag, _ in Tags(streamed).found]
    assert tags.count("article") == 2
    assert tags.count("style") == 1
    assert streamed.endswith("</html>\n")


def test_wrong_number_of_truths_raises():
    with pytest.raises(ValueError, match="explanations, but 2 true labels"):
        to_html_page([explain(TEXT, [1])], title="t", truths=["positive", "negative"])


def test_style_rules_are_scoped():
    sheet = html.unescape(to_html(explain(TEXT, [1])).split("<style>")[1].split("</style>")[0])
    depth, selector = 0, ""
    for character in sheet:
        if character == "{":
            if not selector.strip().startswith(("@media", "@container")):
                assert all(
                    part.strip().startswith(".rationalizer") for part in selector.split(",") if ":is(" not in selector
                ), selector
                assert selector.strip().startswith(".rationalizer"), selector
                depth += 1
            selector = ""
        elif character == "}":
            selector = ""
        else:
            selector += character
    assert depth > 20


def test_notebooks_and_print():
    explanation = explain(TEXT, [1, 2])
    assert explanation._repr_html_() == to_html(explanation) == explanation.to_html()
    assert GUITAR._repr_html_() == to_html(GUITAR)
    assert GUITAR.to_html(style="heatmap") == to_html(GUITAR, style="heatmap")
    assert explanation.to_html(truth="positive") == to_html(explanation, truth="positive")
    for rule in ("prefers-color-scheme: dark", "@media print", "print-color-adjust: exact", "forced-colors"):
        assert rule in to_html(explanation)


def test_html_is_deterministic():
    make = [lambda: to_html(GUITAR, truth="neutral"), lambda: to_html_page([explain(EMOJI, [1, 2])], title="t")]
    for function in make:
        assert function() == function()
