"""The few shapes that pictures are made of, as SVG elements."""

from __future__ import annotations

from dataclasses import dataclass

from rationalizer.drawing.colours import DARK_INK, HUES, INK, UNKNOWN, brighter, opacity
from rationalizer.drawing.text_pieces import Look
from rationalizer.drawing.text_width import FONT, escape
from rationalizer.drawing.text_width import width as text_width

FAINT = 0.72  # opacity of what is said beside the text
LEAST, LEAST_NARROW = "30rem", "16rem"  # how narrow a page can make a drawing; one made for narrow pages


@dataclass(frozen=True)
class Group:
    """Elements drawn from (0, 0) downwards, and the room they take."""

    elements: list[str]
    width: float
    height: float


def document(
    groups: list[Group], name: str, *, margin: float, spacing: float, least: float, alone: bool, narrow: bool = False
) -> str:
    """Groups one below the other. Text has the colour of the page around it; `alone`, that of the reader's scheme."""
    drawn = [group for group in groups if group.elements]
    across = max([least, *(group.width + 2 * margin for group in drawn)])
    y, body = margin, []
    for group in drawn:
        body.append(f'<g transform="translate({margin:g} {y:.1f})">\n' + "\n".join(group.elements) + "\n</g>")
        y += group.height + spacing
    down = y - spacing + margin if drawn else 2 * margin
    # In a narrow page it is scrolled rather than shrunk to dust.
    floor = LEAST_NARROW if narrow else LEAST
    opening = 'class="rz-picture" ' if alone else f'style="min-width:min({across:.0f}px,{floor})" '
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {opening}viewBox="0 0 {across:.0f} {down:.0f}" width="{across:.0f}" '
        f'height="{down:.0f}" role="img" aria-label="{escape(name)}" font-family="{FONT}" fill="currentColor">\n'
        f"<title>{escape(name)}</title>\n{_SCHEME if alone else ''}" + "\n".join(body) + "\n</svg>\n"
    )


_SCHEME = f"""<style>
.rz-picture {{ color: {INK}; print-color-adjust: exact }}
@media screen and (prefers-color-scheme: dark) {{ .rz-picture {{ color: {DARK_INK} }} {brighter(".rz-picture")} }}
</style>
"""


def label(x: float, y: float, text: str, size: float, *, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def fitted(x: float, text: str, size: float, *, backwards: bool = False) -> str:
    """A part of a text element that takes exactly its estimated width, from the left edge `x`, in any font."""
    wide = text_width(text, size)
    start = x + wide if backwards else x
    length = f' textLength="{wide:.1f}" lengthAdjust="spacingAndGlyphs"' if wide else ""
    return f'<tspan x="{start:.1f}"{length}>{escape(text)}</tspan>'


def ground(kind: Look, shade: float, x: float, y: float, width: float, height: float) -> str:
    hue = HUES[kind]
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4"'
    return f'<rect {place} fill="{hue}" fill-opacity="{opacity(shade):.2f}" stroke="{hue}" stroke-opacity=".75"/>'


_HUMAN_ONLY = f'stroke="{HUES["missed"]}" stroke-dasharray="5 3"'


def underline(kind: Look, x: float, y: float, width: float) -> str:
    """The mark of what people named: a line, dashed where the model missed it."""
    look = _HUMAN_ONLY if kind == "missed" else 'stroke="currentColor"'
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x + width:.1f}" y2="{y:.1f}" stroke-width="2" {look}/>'


def dotted(x: float, y: float, width: float) -> str:
    """The mark of a word that the model does not know."""
    look = f'stroke="{UNKNOWN}" stroke-width="2" stroke-linecap="round" stroke-dasharray="0.1 4"'
    return f'<line x1="{x + 1:.1f}" y1="{y:.1f}" x2="{x + width - 1:.1f}" y2="{y:.1f}" {look}/>'


def frame(kind: Look, x: float, y: float, side: float) -> str:
    """The same mark around a cell."""
    look = _HUMAN_ONLY if kind == "missed" else 'stroke="currentColor"'
    place = f'x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" rx="3"'
    return f'<rect {place} fill="none" stroke-width="2" {look}/>'
