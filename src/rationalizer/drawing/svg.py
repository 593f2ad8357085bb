"""Explanations as SVG: real text, laid out by estimated widths, in one file or inside a page."""

from __future__ import annotations

from collections.abc import Sequence

from rationalizer.drawing.alignment_drawing import heatmap, lines, width_of_lines
from rationalizer.drawing.captions import SHADES, is_shaded, key, percent, probabilities, verdict
from rationalizer.drawing.colours import HUES
from rationalizer.drawing.explanation import AnyExplanation, Explanation, Label, PairExplanation, Picture
from rationalizer.drawing.line_breaking import Fragment, Line, flow
from rationalizer.drawing.svg_shapes import FAINT, Group, document, dotted, fitted, frame, ground, label, underline
from rationalizer.drawing.text_pieces import CHOSEN, Look, pieces
from rationalizer.drawing.text_width import BOLD, shorten
from rationalizer.drawing.text_width import width as text_width

MARGIN, SPACING = 16.0, 16.0
SIZE, LEADING = 16.0, 30.0
SMALL = 13.0
PADDING = 2.0
BAR = 19.0  # height of a line of the bar chart
NARROWEST = 240


def to_svg(
    explanation: AnyExplanation,
    *,
    truth: Label | None = None,
    width: int = 720,
    style: Picture = "lines",
) -> str:
    """A picture that stands alone: the prediction, the text with the words it was made from, a key.

    Args:
        explanation: of a text or of a pair.
        truth: the true label, if known.
        width: in pixels; texts wrap, a heat map of many words may be wider.
        style: how alignments are drawn: "lines" or "heatmap".
    """
    if width < NARROWEST:
        raise ValueError(f"width must be at least {NARROWEST}, got {width}")
    room = width - 2 * MARGIN
    body = _aligned(explanation, room, style) if isinstance(explanation, PairExplanation) else _text(explanation, room)
    groups = [_head(explanation, truth, room), body, _key(explanation, room, style)]
    return document(groups, _name(explanation, truth), margin=MARGIN, spacing=SPACING, least=width, alone=True)


def to_heatmap_svg(explanation: PairExplanation, *, truth: Label | None = None, width: int = 720) -> str:
    """The alignment of a pair as a matrix of shades."""
    return to_svg(explanation, truth=truth, width=width, style="heatmap")


def drawing(explanation: PairExplanation, *, style: Picture = "lines", room: float = 700, narrow: bool = False) -> str:
    """The alignment alone, no wider than need be, to stand in a page whose text colour it takes; `narrow`, in one that
    may be narrower still."""
    body = _aligned(explanation, width_of_lines(explanation, room) or room if style == "lines" else room, style)
    return document([body], "word alignment", margin=2, spacing=0, least=0, alone=False, narrow=narrow)


def _aligned(explanation: PairExplanation, room: float, style: str) -> Group:
    if style not in ("lines", "heatmap"):
        raise ValueError(f"style must be 'lines' or 'heatmap', got {style!r}")
    return lines(explanation, room) if style == "lines" else heatmap(explanation, room)


def _name(explanation: AnyExplanation, truth: Label | None) -> str:
    said = verdict(explanation, truth)
    return f"predicted {said.label}{', ' if said.remark else ''}{said.remark}"


def _text(explanation: Explanation, room: float) -> Group:
    drawn: list[str] = []
    found = flow(pieces(explanation), room, SIZE)
    for k, line in enumerate(found):
        drawn += _line(line, (k + 0.72) * LEADING)
    return Group(drawn, room, len(found) * LEADING)


def _line(line: Line, base: float) -> list[str]:
    drawn = []
    runs = _runs(line.fragments)
    for k, (kind, shade, x, right) in enumerate(runs):
        if kind in CHOSEN:  # a little more room at the ends, where no other ground is next to it
            before = 0 if k and runs[k - 1][0] in CHOSEN and x - runs[k - 1][3] < PADDING else PADDING
            after = (
                0 if k + 1 < len(runs) and runs[k + 1][0] in CHOSEN and runs[k + 1][2] - right < PADDING else PADDING
            )
            drawn.append(ground(kind, shade, x - before, base - 17, right - x + before + after, 24))
        if kind in ("both", "missed"):
            drawn.append(underline(kind, x, base + 4, right - x))
    drawn += [dotted(one.x, base + 7, one.width) for one in line.fragments if one.piece.unknown and one.text != " "]
    parts = [
        " " if fragment.text == " " else fitted(fragment.x, fragment.text, SIZE, backwards=line.right_to_left)
        for fragment in line.fragments
    ]
    direction = ' direction="rtl"' if line.right_to_left else ""
    return [*drawn, f'<text y="{base:.1f}" font-size="{SIZE:g}"{direction}>{"".join(parts)}</text>'] if parts else []


def _runs(fragments: Sequence[Fragment]) -> list[tuple[Look, float, float, float]]:
    """Neighbours of one look, from left to right: look, shade, left and right edge."""
    runs: list[tuple[Look, float, float, float]] = []
    for fragment in sorted(fragments, key=lambda fragment: fragment.x):
        kind, shade = fragment.piece.kind, fragment.piece.shade
        if not kind:
            continue
        if runs and runs[-1][:2] == (kind, shade) and abs(runs[-1][3] - fragment.x) < 0.01:
            runs[-1] = (kind, shade, runs[-1][2], fragment.right)
        else:
            runs.append((kind, shade, fragment.x, fragment.right))
    return runs


def _head(explanation: AnyExplanation, truth: Label | None, room: float) -> Group:
    """The prediction, and bars of the probabilities: beside it if there is room, else below."""
    said, bars = verdict(explanation, truth), probabilities(explanation)
    side_by_side = room >= 460 and bool(bars)
    column = 0.42 * room if side_by_side else room
    size = 18.0
    name = shorten(said.label, column / BOLD, size)
    remark = shorten(said.remark, column / BOLD, SMALL)
    drawn = [label(0, 17, name, size, more=' font-weight="700"')]
    height = 24.0
    used = text_width(name, size) * BOLD
    if remark:
        weight = ' font-weight="700"' if said.right is False else ""
        drawn.append(label(0, 38, remark, SMALL, more=weight))
        height, used = 44.0, max(used, text_width(remark, SMALL) * BOLD)
    if not bars:
        return Group(drawn, room, height)
    x, y = (max(used + 36, 150.0), 2.0) if side_by_side else (0.0, height + 4)
    drawn += _bars(bars, x, y, min(room - x, 400.0))
    return Group(drawn, room, max(height, y + BAR * len(bars)))


def _bars(bars: Sequence[tuple[str, float]], x: float, y: float, room: float) -> list[str]:
    names = [shorten(name, 0.45 * room, SMALL) for name, _ in bars]
    left = x + max(text_width(name, SMALL) for name in names) + 12
    track = x + room - left - max(text_width(percent(p), SMALL) for _, p in bars) - 8
    drawn = []
    for k, (name, (_, p)) in enumerate(zip(names, bars, strict=True)):
        top = y + k * BAR + 5
        place = f'x="{left:.1f}" y="{top:.1f}" height="8" rx="4"'
        drawn.append(label(x, top + 9, name, SMALL))
        drawn.append(f'<rect {place} width="{track:.1f}" fill="currentColor" fill-opacity=".12"/>')
        if p * track >= 0.5:
            drawn.append(f'<rect {place} width="{p * track:.1f}" fill="{HUES["selected"]}"/>')
        drawn.append(label(x + room, top + 9, percent(p), SMALL, anchor="end"))
    return drawn


def _key(explanation: AnyExplanation, room: float, style: Picture) -> Group:
    entries = key(explanation)
    if is_shaded(explanation):
        entries.append(("", SHADES))
    x, y = 0.0, 14.0
    drawn: list[str] = []
    for kind, words in entries:
        sample = 30.0 if kind else 0.0
        wide = sample + text_width(words, SMALL)
        if x and x + wide > room:
            x, y = 0.0, y + 22
        if kind:
            framed = style == "heatmap" and isinstance(explanation, PairExplanation)
            drawn += _framed(kind, x, y - 12) if framed else _sample(kind, x, y - 12)
        drawn.append(label(x + sample, y, words, SMALL, more=f' fill-opacity="{FAINT}"'))
        x += wide + 26
    return Group(drawn, room, y + 6)


def _sample(kind: Look, x: float, y: float) -> list[str]:
    drawn = [ground(kind, 1.0, x, y, 22, 15)] if kind in CHOSEN else []
    if kind == "unknown":
        return [dotted(x, y + 12, 22)]
    return [*drawn, underline(kind, x + 0.5, y + 11, 21)] if kind in ("both", "missed") else drawn


def _framed(kind: Look, x: float, y: float) -> list[str]:
    drawn = [ground(kind, 1.0, x + 3, y, 15, 15)] if kind in CHOSEN else []
    if kind == "unknown":
        return [dotted(x, y + 12, 22)]
    return [*drawn, frame(kind, x + 3, y, 15)] if kind in ("both", "missed") else drawn
