"""Explanations, and functions that draw them as terminal text, HTML, SVG or PNG."""

from rationalizer.drawing.explanation import (
    AnyExplanation,
    Explanation,
    Explanations,
    LabelExplanation,
    PairExplanation,
)
from rationalizer.drawing.html import HtmlTable, Section, article, html_closing, html_opening, to_html, to_html_page
from rationalizer.drawing.png import to_png
from rationalizer.drawing.selected_words import AlignedWords, Label, SelectedWord
from rationalizer.drawing.svg import to_svg
from rationalizer.drawing.terminal import to_terminal

__all__ = [
    "AlignedWords",
    "AnyExplanation",
    "Explanation",
    "Explanations",
    "HtmlTable",
    "Label",
    "LabelExplanation",
    "PairExplanation",
    "Section",
    "SelectedWord",
    "article",
    "html_closing",
    "html_opening",
    "to_html",
    "to_html_page",
    "to_png",
    "to_svg",
    "to_terminal",
]
