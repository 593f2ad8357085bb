"""Drawings of alignments: two lines of words connected by curves, or a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rationalizer.drawing.colours import HEAT, highlight_colour
from rationalizer.drawing.explanation import PairExplanation
from rationalizer.drawing.highlight_kinds import (
    SELECTED,
    Highlight,
    Link,
    Look,
    alignment_links,
    pair_words,
    relative_weights,
)
from rationalizer.drawing.svg_shapes import (
    FAINT,
    Block,
    background,
    dotted_underline,
    fitted_tspan,
    frame,
    label,
    underline,
)
from rationalizer.drawing.text_width import escape, is_right_to_left, truncate, width

SIZES = (16.0, 15.0, 14.0, 13.0)  # font sizes; the first at which both lines fit is used
GAP = 0.8  # space between words, relative to the font size
CAPTION = 12.0
ROW = 27.0  # height of a word in a column
MAX_CELL, MIN_CELL = 34.0, 15.0
MAX_WORD = 150.0
MIN_LINE = 80.0  # room for the names of the texts


@dataclass(frozen=True)
class _Box:
    """The background of a drawn word."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def draw_lines(explanation: PairExplanation, room: float) -> Block:
    """Draw the premise above the hypothesis with curves between aligned words; long texts as two columns."""
    links, words = alignment_links(explanation), pair_words(explanation)
    size = _font_size(words, room)
    if size is None:
        return _draw_in_columns(explanation, words, links, room)
    return _draw_in_lines(explanation, words, links, room, size)


def lines_width(explanation: PairExplanation, room: float) -> float | None:
    """The width of the longer text as one line; None if it does not fit into `room`."""
    words = pair_words(explanation)
    size = _font_size(words, room)
    return None if size is None else max(MIN_LINE, *(_line_width(side, size) for side in words))


def draw_heatmap(explanation: PairExplanation, room: float) -> Block:
    """Draw a row for each word of the premise, a column for each word of the hypothesis, and weights as shades.

    Annotated pairs have a frame, dashed if the model missed them.
    """
    rows, columns = ([truncate(word, MAX_WORD, 13) for word in side] for side in pair_words(explanation))
    left = max([width(word, 13) for word in rows], default=0.0) + 10
    top = max([width(word, 13) for word in columns], default=0.0) + 10
    cell = min(max((room - left) / max(len(columns), 1), MIN_CELL), MAX_CELL)
    size = min(13.0, cell - 3)
    drawn = [
        label(left - 8, top + (i + 0.5) * cell + size / 3, word, size, anchor="end") for i, word in enumerate(rows)
    ]
    for j, word in enumerate(columns):
        x, y = left + (j + 0.5) * cell + size / 3, top - 8
        drawn.append(label(x, y, word, size, more=f' transform="rotate(-90 {x:.1f} {y:.1f})"'))
    drawn += _heatmap_cells(explanation, left, top, cell)
    return Block(drawn, left + len(columns) * cell, top + len(rows) * cell)


def _heatmap_cells(explanation: PairExplanation, left: float, top: float, cell: float) -> list[str]:
    matrix = explanation.alignment
    relative = relative_weights([float(weight) for weight in matrix.ravel()])
    links = {(link.row, link.column): link.look for link in alignment_links(explanation)}
    unaligned = Look("selected" if explanation.annotation is None else "extra")
    graded = len({round(shade, 2) for shade in relative} - {0.0, 1.0}) > 0
    drawn, frames = [], []
    for k, shade in enumerate(relative):
        i, j = divmod(k, matrix.shape[1])
        x, y = left + j * cell, top + i * cell
        look = links.get((i, j), unaligned)
        box = f'x="{x + 1:.1f}" y="{y + 1:.1f}" width="{cell - 2:.1f}" height="{cell - 2:.1f}" rx="3"'
        drawn.append(f'<rect {box} fill="currentColor" fill-opacity=".05"/>')
        if shade >= 0.005:
            colour = highlight_colour(look)
            edge = f' stroke="{colour}"' if (i, j) in links else ""
            edge += ' stroke-dasharray="3 2"' if look.sign == "-" else ""
            drawn.append(f'<rect {box} fill="{colour}" fill-opacity="{HEAT * shade:.2f}"{edge}/>')
            if graded and cell >= 26 and matrix[i, j] >= 0.005:
                value = f"{float(matrix[i, j]):.2f}".removeprefix("0")
                drawn.append(label(x + cell / 2, y + cell / 2 + 3.5, value, 10, anchor="middle"))
        if look.kind in ("both", "missed"):
            frames.append(frame(look.kind, x + 1, y + 1, cell - 2))
    return drawn + frames


def _font_size(words: tuple[list[str], list[str]], room: float) -> float | None:
    """The largest font size at which each text fits on one line."""
    return next((size for size in SIZES if all(_line_width(side, size) <= room for side in words)), None)


def _line_width(words: Sequence[str], size: float) -> float:
    return sum(width(word, size) + GAP * size for word in words)


def _draw_in_lines(
    explanation: PairExplanation,
    words: tuple[list[str], list[str]],
    links: Sequence[Link],
    room: float,
    size: float,
) -> Block:
    height = 1.6 * size
    span = 64 + 4.0 * max([abs(link.row - link.column) for link in links], default=0)
    tops = (CAPTION + 8, CAPTION + 8 + height + min(span, 110.0))
    boxes, drawn = [], []
    for side, (top, text) in enumerate(zip(tops, (explanation.premise, explanation.hypothesis), strict=True)):
        rtl = bool(is_right_to_left(text))
        x = (room - _line_width(words[side], size)) / 2
        boxes.append(_line_boxes(words[side], x, top, height, size, rtl))
        drawn += _word_backgrounds(boxes[side], links, side, _unknown(explanation)[side])
        drawn.append(_line_text(words[side], boxes[side], size, rtl))
    drawn = [*_curves(links, boxes[0], boxes[1], sideways=False), *drawn]
    below = tops[1] + height + CAPTION + 4
    for y, name in ((CAPTION, "premise"), (below, "hypothesis")):
        drawn.append(label(room / 2, y, name, CAPTION, anchor="middle", more=f' fill-opacity="{FAINT}"'))
    return Block(drawn, room, below + 4)


def _line_boxes(words: Sequence[str], x: float, y: float, height: float, size: float, rtl: bool) -> list[_Box]:
    boxes = []
    for word in reversed(words) if rtl else words:
        wide = width(word, size) + GAP * size
        boxes.append(_Box(x + 2, y, wide - 4, height))
        x += wide
    return boxes[::-1] if rtl else boxes


def _line_text(words: Sequence[str], boxes: Sequence[_Box], size: float, rtl: bool) -> str:
    parts = [
        fitted_tspan(box.x + (GAP * size - 4) / 2, word, size, rtl=rtl) for word, box in zip(words, boxes, strict=True)
    ]
    y = boxes[0].y + 1.12 * size if boxes else 0.0
    direction = ' direction="rtl"' if rtl else ""
    return f'<text y="{y:.1f}" font-size="{size:g}"{direction}>{" ".join(parts)}</text>'


def _draw_in_columns(
    explanation: PairExplanation, words: tuple[list[str], list[str]], links: Sequence[Link], room: float
) -> Block:
    size, height = SIZES[0], ROW - 4
    column = min(0.36 * room, 220.0)
    most = max(len(side) for side in words)
    boxes: list[list[_Box]] = []
    drawn = []
    for side, name in enumerate(("premise", "hypothesis")):
        labels = [truncate(word, column - 14, size) for word in words[side]]
        first = CAPTION + 12 + (most - len(labels)) * ROW / 2
        wide = [width(word, size) + 14 for word in labels]
        lefts = [column - w if side == 0 else room - column for w in wide]
        boxes.append([_Box(x, first + k * ROW, w, height) for k, (x, w) in enumerate(zip(lefts, wide, strict=True))])
        drawn += _word_backgrounds(boxes[side], links, side, _unknown(explanation)[side])
        for word, full, box in zip(labels, words[side], boxes[side], strict=True):
            hint = f"<title>{escape(full)}</title>" if word != full else ""
            base = box.y + height / 2 + 0.35 * size
            part = fitted_tspan(box.x + 7, word, size, rtl=bool(is_right_to_left(word)))
            direction = ' direction="rtl"' if is_right_to_left(word) else ""
            drawn.append(f'<text y="{base:.1f}" font-size="{size:g}"{direction}>{hint}{part}</text>')
        x, anchor = (column, "end") if side == 0 else (room - column, "start")
        drawn.append(label(x, CAPTION, name, CAPTION, anchor=anchor, more=f' fill-opacity="{FAINT}"'))
    return Block([*_curves(links, boxes[0], boxes[1], sideways=True), *drawn], room, CAPTION + 12 + most * ROW)


def _unknown(explanation: PairExplanation) -> tuple[Sequence[bool], Sequence[bool]]:
    return explanation.premise_unknown, explanation.hypothesis_unknown


def _word_backgrounds(boxes: Sequence[_Box], links: Sequence[Link], side: int, unknown: Sequence[bool]) -> list[str]:
    """The background of each aligned word, highlighted as its best link, and the lines below annotated words."""
    drawn = []
    priority: tuple[Highlight, ...] = ("both", "selected", "extra", "missed")
    for k, box in enumerate(boxes):
        if unknown[k]:
            drawn.append(dotted_underline(box.x + 5, box.y + box.height, box.width - 10))
        own = [link for link in links if (link.row, link.column)[side] == k]
        if not own:
            continue
        best = min(own, key=lambda link: (priority.index(link.kind), -link.look.shade))
        if best.kind in SELECTED:
            drawn.append(background(best.look, box.x, box.y, box.width, box.height))
        annotated = sorted({link.kind for link in own} & {"both", "missed"})
        if annotated:
            drawn.append(underline(annotated[0], box.x + 5, box.y + box.height - 3, box.width - 10))
    return drawn


def _curves(links: Sequence[Link], above: Sequence[_Box], below: Sequence[_Box], *, sideways: bool) -> list[str]:
    """Curves between words: dashed if only people aligned them, dotted if they speak against the prediction; ending in
    rings if only the model aligned them."""
    drawn = []
    for link in links:
        a, b = above[link.row], below[link.column]
        if sideways:
            x1, y1, x2, y2 = a.x + a.width, a.y + a.height / 2, b.x, b.y + b.height / 2
            bend = f"{(x1 + x2) / 2:.1f} {y1:.1f} {(x1 + x2) / 2:.1f} {y2:.1f}"
        else:
            x1, y1, x2, y2 = a.middle, a.y + a.height, b.middle, b.y
            bend = f"{x1:.1f} {(y1 + y2) / 2:.1f} {x2:.1f} {(y1 + y2) / 2:.1f}"
        colour, shade = highlight_colour(link.look), link.look.shade
        missed = link.kind == "missed"
        stroke = f'stroke="{colour}" stroke-width="{1.6 if missed else 1.4 + 1.8 * shade:.1f}"'
        stroke += ' stroke-dasharray="5 4"' if missed else f' stroke-opacity="{0.45 + 0.5 * shade:.2f}"'
        stroke += ' stroke-dasharray="2 3"' if link.look.sign == "-" else ""
        hint = "aligned in the data only" if missed else link.look.hint
        path = f"M {x1:.1f} {y1:.1f} C {bend} {x2:.1f} {y2:.1f}"
        drawn.append(f'<path d="{path}" fill="none" {stroke}><title>{escape(hint)}</title></path>')
        for x, y in ((x1, y1), (x2, y2)) if not missed else ():
            fill = "none" if link.kind == "extra" else colour
            drawn.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{fill}" stroke="{colour}" stroke-width="1.4"/>'
            )
    return drawn
