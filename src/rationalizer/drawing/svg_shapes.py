"""The shapes of drawings as SVG elements."""

from __future__ import annotations

from dataclasses import dataclass

from rationalizer.drawing.colours import (
    DARK_INK,
    HIGHLIGHT_COLOURS,
    INK,
    LIGHT_SERIES,
    UNKNOWN,
    dark_scheme_rules,
    highlight_colour,
    opacity,
)
from rationalizer.drawing.highlight_kinds import Highlight, Look
from rationalizer.drawing.text_width import FONT, escape
from rationalizer.drawing.text_width import width as text_width

FAINT = 0.72  # opacity of secondary text
MIN_WIDTH, MIN_WIDTH_NARROW = "30rem", "16rem"  # minimum width of a drawing in a page, and of one for narrow pages


@dataclass(frozen=True)
class Block:
    """Elements drawn from (0, 0) downwards, and their size."""

    elements: list[str]
    width: float
    height: float


def document(
    blocks: list[Block],
    name: str,
    *,
    margin: float,
    spacing: float,
    min_width: float,
    alone: bool,
    narrow: bool = False,
) -> str:
    """Stack blocks vertically. Text has the colour of the surrounding page; with `alone`, that of the colour scheme."""
    drawn = [block for block in blocks if block.elements]
    across = max([min_width, *(block.width + 2 * margin for block in drawn)])
    y, body = margin, []
    for block in drawn:
        body.append(f'<g transform="translate({margin:g} {y:.1f})">\n' + "\n".join(block.elements) + "\n</g>")
        y += block.height + spacing
    down = y - spacing + margin if drawn else 2 * margin
    # A narrow page scrolls the drawing instead of shrinking it further.
    floor = MIN_WIDTH_NARROW if narrow else MIN_WIDTH
    opening = 'class="rz-picture" ' if alone else f'style="min-width:min({across:.0f}px,{floor})" '
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {opening}viewBox="0 0 {across:.0f} {down:.0f}" width="{across:.0f}" '
        f'height="{down:.0f}" role="img" aria-label="{escape(name)}" font-family="{FONT}" fill="currentColor">\n'
        f"<title>{escape(name)}</title>\n{_SCHEME if alone else ''}" + "\n".join(body) + "\n</svg>\n"
    )


_SCHEME = f"""<style>
.rz-picture {{ color: {INK}; print-color-adjust: exact }}
@media screen and (prefers-color-scheme: dark) {{
  .rz-picture {{ color: {DARK_INK} }} {dark_scheme_rules(".rz-picture")} }}
</style>
"""


def label(x: float, y: float, text: str, size: float, *, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def fitted_tspan(x: float, text: str, size: float, *, rtl: bool = False) -> str:
    """A part of a text element that takes exactly its estimated width in any font; `x` is its left edge."""
    wide = text_width(text, size)
    start = x + wide if rtl else x
    length = f' textLength="{wide:.1f}"' if wide else ""
    return f'<tspan x="{start:.1f}"{length}>{escape(text)}</tspan>'


def bar(p: float, x: float, y: float, width: float, colour: str) -> list[str]:
    """A track, filled to the share p."""
    box = f'x="{x:.1f}" y="{y:.1f}" height="8" rx="4"'
    drawn = [f'<rect {box} width="{width:.1f}" fill="currentColor" fill-opacity=".12"/>']
    return [*drawn, f'<rect {box} width="{p * width:.1f}" fill="{colour}"/>'] if p * width >= 0.5 else drawn


def background(look: Look, x: float, y: float, width: float, height: float) -> str:
    """The box of a highlight, with a stripe for each label if its words have several."""
    colour = highlight_colour(look)
    edge = f'stroke="{colour}" stroke-opacity=".75"' + (' stroke-dasharray="3 2"' if look.sign == "-" else "")
    box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4"'
    fill = f'fill-opacity="{opacity(look.shade):.2f}"'
    if len(look.labels) < 2:
        return f'<rect {box} fill="{colour}" {fill} {edge}/>'
    part = height / len(look.labels)
    row = f'<rect x="{x:.1f}" width="{width:.1f}" height="{part:.1f}" {fill}'
    stripes = (f'{row} y="{y + k * part:.1f}" fill="{LIGHT_SERIES[number]}"/>' for k, number in enumerate(look.labels))
    return f'{"".join(stripes)}<rect {box} fill="none" {edge}/>'


_MISSED = f'stroke="{HIGHLIGHT_COLOURS["missed"]}" stroke-dasharray="5 3"'


def underline(kind: Highlight, x: float, y: float, width: float) -> str:
    """The line below annotated words, dashed if the model missed them."""
    stroke = _MISSED if kind == "missed" else 'stroke="currentColor"'
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x + width:.1f}" y2="{y:.1f}" stroke-width="2" {stroke}/>'


def dotted_underline(x: float, y: float, width: float) -> str:
    """The line below words that the model does not know."""
    stroke = f'stroke="{UNKNOWN}" stroke-width="2" stroke-linecap="round" stroke-dasharray="0.1 4"'
    return f'<line x1="{x + 1:.1f}" y1="{y:.1f}" x2="{x + width - 1:.1f}" y2="{y:.1f}" {stroke}/>'


def frame(kind: Highlight, x: float, y: float, side: float) -> str:
    """The frame of an annotated cell, dashed if the model missed it."""
    stroke = _MISSED if kind == "missed" else 'stroke="currentColor"'
    box = f'x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" rx="3"'
    return f'<rect {box} fill="none" stroke-width="2" {stroke}/>'
