"""Predictions with their reasons, and how they are drawn: pure functions from explanations to text."""

from rationalizer.render.explanation import AnyExplanation, Explanation, Explanations, Label, PairExplanation
from rationalizer.render.html import Listing, Section, article, html_closing, html_opening, to_html, to_html_page
from rationalizer.render.svg import to_heatmap_svg, to_svg
from rationalizer.render.terminal import to_terminal

__all__ = [
    "AnyExplanation",
    "Explanation",
    "Explanations",
    "Label",
    "Listing",
    "PairExplanation",
    "Section",
    "article",
    "html_closing",
    "html_opening",
    "to_heatmap_svg",
    "to_html",
    "to_html_page",
    "to_svg",
    "to_terminal",
]
