"""Explanations, and functions that draw them as terminal text, HTML or SVG."""

from rationalizer.drawing.explanation import AnyExplanation, Explanation, Explanations, Label, PairExplanation
from rationalizer.drawing.html import HtmlTable, Section, article, html_closing, html_opening, to_html, to_html_page
from rationalizer.drawing.svg import to_svg
from rationalizer.drawing.terminal import to_terminal

__all__ = [
    "AnyExplanation",
    "Explanation",
    "Explanations",
    "HtmlTable",
    "Label",
    "PairExplanation",
    "Section",
    "article",
    "html_closing",
    "html_opening",
    "to_html",
    "to_html_page",
    "to_svg",
    "to_terminal",
]
