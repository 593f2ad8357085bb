"""Explanations as PNG: the SVG drawing, rendered by resvg (extra `png`) with the fonts of this machine."""

from __future__ import annotations

from functools import cache
from typing import Any

from rationalizer.drawing.colours import PAPER
from rationalizer.drawing.explanation import AnyExplanation, Picture
from rationalizer.drawing.selected_words import Label
from rationalizer.drawing.svg import to_svg
from rationalizer.drawing.text_width import FONT


def to_png(
    explanation: AnyExplanation,
    *,
    truth: Label | None = None,
    width: int = 720,
    style: Picture = "lines",
    scale: float = 2.0,
) -> bytes:
    """Draw a PNG file on white.

    Args:
        explanation: of a text or a pair.
        truth, width, style: as for `to_svg`.
        scale: pixels per unit of `width`; 2 is sharp on slides.

    Raises:
        ImportError: without the extra `png`.
        OSError: if this machine has no font for the text.
    """
    if not scale > 0:
        raise ValueError(f"scale must be above 0, got {scale}")
    svg = to_svg(explanation, truth=truth, width=width, style=style)
    if not _has_fonts():
        raise OSError("this machine has no fonts to draw text with; install some, such as Debian's fonts-dejavu-core")
    return _render(svg, scale)


@cache
def _has_fonts() -> bool:
    """Whether text is drawn: resvg leaves it out if there is no font, without an error."""
    picture = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><text y="15" {}>x</text></svg>'
    drawn, left_out = (_render(picture.format(look), 1.0) for look in (f'font-family="{FONT}"', 'opacity="0"'))
    return drawn != left_out


def _render(svg: str, scale: float) -> bytes:
    try:
        import resvg_py
    except ImportError as error:
        raise ImportError('PNG pictures need the package resvg-py: pip install ".[png]" in a checkout') from error
    options: dict[str, Any] = {"background": PAPER, "sans_serif_family": "DejaVu Sans"}
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=scale, **options))
