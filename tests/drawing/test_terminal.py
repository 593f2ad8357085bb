"""Terminal text: with and without colours, wrapped, without control characters."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from rationalizer.drawing import to_terminal
from rationalizer.drawing.colours import BLUE, ORANGE, TERMINAL_COLOURS
from rationalizer.drawing.text_width import sanitize, terminal_width
from tests.drawing.samples import EMOJI, GUITAR, HOSTILE, RIGHT_TO_LEFT, explain

TEXT = "A warm, funny film: never dull."
ESCAPES = re.compile(r"\x1b\[[\d;]*m")


def bare(text):
    return ESCAPES.sub("", text)


def test_brackets_without_colour():
    shown = to_terminal(explain(TEXT, [1, 2, 3], annotation=[3, 4]), colour=False)
    assert "\x1b" not in shown
    assert "A [warm,] [_funny_] _film_: never dull." in shown
    assert "[_abc_] read by the model and marked in the data" in shown
    assert "A [warm, funny] film" in to_terminal(explain(TEXT, [1, 2, 3]), colour=False)


def test_words_of_different_weight_share_brackets():
    assert "[warm, funny]" in to_terminal(explain(TEXT, [1, 2, 3], weights=[0.1, 0.5, 0.9]), colour=False)


def test_str_of_an_explanation():
    explanation = explain(TEXT, [1])
    assert str(explanation) == to_terminal(explanation, colour=False)
    assert "[_man_]" in str(GUITAR)
    assert repr(explanation).startswith("Explanation(")


def styles(shown, word):
    """What rich makes of the escape sequences around a word."""
    text = Text.from_ansi(shown)
    start = text.plain.index(word)
    return [span.style for span in text.spans if span.start <= start < span.end]


def test_colours_and_lines():
    explanation = explain(TEXT, [1, 3, 6], weights=[0.1, 1.0, 1.0], annotation=[3, 7])
    shown = to_terminal(explanation)
    (both,), (extra,), (missed,) = (styles(shown, word) for word in ("funny", "never", "dull"))
    assert (both.bgcolor.number, both.underline) == (TERMINAL_COLOURS[BLUE][-1], True)
    assert (extra.bgcolor.number, bool(extra.underline)) == (TERMINAL_COLOURS[ORANGE][-1], False)
    assert (missed.bgcolor, missed.underline) == (None, True)
    (faint,) = styles(shown, "warm")
    assert faint.bgcolor.number == TERMINAL_COLOURS[ORANGE][0]
    assert styles(shown, "film") == []
    assert TEXT in bare(shown)


def test_head():
    shown = to_terminal(explain(TEXT, [1]), truth="negative", colour=False).splitlines()[0]
    assert shown.startswith("positive  ███████████████████░ 93%  negative 7%")
    assert shown.endswith("wrong: the true label is negative")
    assert to_terminal(explain(TEXT, [1]), truth="positive", colour=False).splitlines()[0].endswith("right")
    regression = explain(TEXT, [1], label=0.5, probabilities=None)
    assert to_terminal(regression, truth=0.7, colour=False).startswith("0.5  true value 0.7, off by 0.2\n")
    assert "abc" not in to_terminal(explain(TEXT, [1]), legend=False)
    of_one_class = explain(TEXT, [1], label="text", probabilities={"text": 1.0})
    assert to_terminal(of_one_class, truth="text", colour=False).splitlines()[0] == (
        "no label  the model has learned to select words, not to predict labels"
    )


@pytest.mark.parametrize("text", [TEXT * 5, EMOJI * 3, RIGHT_TO_LEFT, HOSTILE, "x" * 300, "电影" * 50, "", "a\n\nb"])
@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("width", [10, 37, 80])
def test_lines_fit_the_width(text, colour, width):
    shown = bare(to_terminal(explain(text, [1, 2, 3, 7], annotation=[2, 3]), colour=colour, width=width, legend=False))
    assert all(terminal_width(line) <= width for line in shown.splitlines())
    if colour:
        assert "".join(sanitize(text).split()) in "".join(shown.split())


@given(st.text(alphabet=st.characters(), max_size=50), st.sets(st.integers(0, 20)))
def test_control_characters_are_removed(text, chosen):
    shown = bare(to_terminal(explain(text, sorted(chosen), label=text), width=30))
    assert all(c >= " " or c == "\n" for c in shown)
    assert not any("\x7f" <= c <= "\x9f" for c in shown)
    shown.encode()


def test_styles_end_on_their_line():
    shown = to_terminal(explain(TEXT * 4, list(range(36))), width=20)
    for line in shown.splitlines():
        assert line.count("\x1b[0m") == len(ESCAPES.findall(line)) / 2


def test_word_with_two_highlights_is_not_broken():
    shown = bare(to_terminal(explain("aaaa bbbb!", [1]), width=9, legend=False))
    assert shown.splitlines()[-2:] == ["aaaa", "bbbb!"]


def test_line_breaks_are_preserved():
    assert "[good]\n\n[film]" in to_terminal(explain("good\n\nfilm", [0, 1]), colour=False, width=40)
    assert "one two" in to_terminal(explain("one two " * 50, []), colour=False).splitlines()[2]
    assert len(to_terminal(explain("one two " * 50, []), colour=False).splitlines()[2]) == 399


def test_pairs_list_their_alignments():
    shown = to_terminal(GUITAR, colour=False)
    assert "premise: A [_man_] in a blue shirt" in shown
    assert "hypothesis: A [_person_] is" in shown
    for line in (
        "    man ── 1.00 ── person  people too",
        "  stage ── 0.30 ── public  people did not",
        "     on ┄┄      ┄┄ in  people only",
    ):
        assert line in shown.splitlines()
    assert bare(to_terminal(GUITAR)).count("──") == 8


def test_invalid_width_raises():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        to_terminal(explain(TEXT, [1]), width=0)
