"""Text is sanitized, split into graphemes and measured."""

import html
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rationalizer.drawing.text_width import (
    escape,
    graphemes,
    is_right_to_left,
    sanitize,
    terminal_width,
    truncate,
    width,
)

anything = st.text(alphabet=st.characters(), max_size=40)  # surrogates and control characters too


@given(anything)
def test_escaped_text_is_well_formed_xml(text):
    root = ElementTree.fromstring(f"<a b='{escape(text)}' c=\"{escape(text)}\">{escape(text)}</a>".encode())
    assert (root.text or "") == sanitize(text)
    in_attributes = sanitize(text).replace("\n", " ").replace("\t", " ")  # as XML reads attributes
    assert root.get("b") == root.get("c") == in_attributes


@given(anything)
def test_sanitized_text_has_no_control_characters(text):
    assert all(c >= " " or c in "\t\n" for c in sanitize(text))
    assert not any("\x7f" <= c <= "\x9f" for c in sanitize(text))
    sanitize(text).encode()  # raises if a surrogate is left
    assert html.unescape(escape(text)) == sanitize(text)


def test_control_characters_are_replaced():
    assert sanitize("a\x00b\x1b[31m\r\nc\rd\te\x9b\ud800\uffff") == "a␀b␛[31m\nc\nd\te���"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ab", ["a", "b"]),
        ("e\u0301x", ["e\u0301", "x"]),
        ("👨‍👩‍👧‍👦!", ["👨‍👩‍👧‍👦", "!"]),
        ("👍🏽👍", ["👍🏽", "👍"]),
        ("🇫🇷🇩🇪🇮🇹", ["🇫🇷", "🇩🇪", "🇮🇹"]),
        ("❤️a", ["❤️", "a"]),
        ("नमस्ते", ["न", "म", "स्ते"]),
        ("می‌روند", ["م", "ی‌", "ر", "و", "ن", "د"]),
        ("\u1112\u1161\u11ab\u1100", ["\u1112\u1161\u11ab", "\u1100"]),
        ("\r\na", ["\r\n", "a"]),
        ("\n\u0301", ["\n", "\u0301"]),
    ],
)
def test_graphemes(text, expected):
    assert graphemes(text) == expected


@given(anything)
def test_graphemes_cover_the_text(text):
    assert "".join(graphemes(text)) == text


def test_terminal_width():
    assert terminal_width("abc") == 3
    assert terminal_width("电影") == 4
    assert terminal_width("e\u0301") == 1
    assert terminal_width("👨‍👩‍👧‍👦") == terminal_width("🇫🇷") == terminal_width("❤️") == 2


def test_widths():
    assert width("Hello", 1000) == 752 + 615 + 278 + 278 + 612
    assert width("e\u0301", 10) == width("é", 10) == width("e", 10)
    assert width("电影", 10) == 20
    assert width("", 10) == 0


def test_direction_of_the_first_letter():
    assert is_right_to_left("12 שלום hello")
    assert is_right_to_left("(abc) שלום") is False
    assert is_right_to_left("12, 13!") is None


@given(anything, st.floats(min_value=20, max_value=200))
def test_truncated_text_fits(text, room):
    short = truncate(text, room, 12)
    assert width(short, 12) <= room + 1e-9
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))
