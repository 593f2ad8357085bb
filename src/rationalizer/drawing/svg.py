"""Explanations as SVG: text laid out by estimated widths, as a file or as part of a page."""

from __future__ import annotations

from collections.abc import Sequence

from rationalizer.drawing.alignment_drawing import draw_heatmap, draw_lines, lines_width
from rationalizer.drawing.captions import (
    Bar,
    describe_prediction,
    legend_entries,
    percent,
    probabilities,
    rest_text,
)
from rationalizer.drawing.colours import BLUE, HIGHLIGHT_COLOURS, LIGHT_SERIES, SIGN_COLOURS
from rationalizer.drawing.explanation import AnyExplanation, Explanation, PairExplanation, Picture
from rationalizer.drawing.highlight_kinds import SELECTED, Look, TextRun, text_runs
from rationalizer.drawing.label_rows import LabelRows, label_rows
from rationalizer.drawing.line_breaking import Fragment, Line, break_lines
from rationalizer.drawing.selected_words import Label
from rationalizer.drawing.svg_shapes import (
    FAINT,
    Block,
    background,
    bar,
    document,
    dotted_underline,
    fitted_tspan,
    frame,
    label,
    underline,
)
from rationalizer.drawing.text_width import BOLD, truncate
from rationalizer.drawing.text_width import width as text_width

MARGIN, SPACING = 16.0, 16.0
SIZE, LEADING = 15.0, 29.0
SMALL = 12.0
PADDING = 2.0
BAR = 19.0  # height of a row of the bar chart
ROW = 22.0  # height of a label's row
MIN_WIDTH = 240


def to_svg(
    explanation: AnyExplanation,
    *,
    truth: Label | None = None,
    width: int = 720,
    style: Picture = "lines",
) -> str:
    """Draw a picture of its own: the prediction, the text with its rationale, a legend.

    Args:
        explanation: of a text or a pair.
        truth: the true label, if known.
        width: in pixels; texts are wrapped, a heat map of many words can be wider.
        style: how alignments are drawn: "lines" or "heatmap".
    """
    if width < MIN_WIDTH:
        raise ValueError(f"width must be at least {MIN_WIDTH}, got {width}")
    room = width - 2 * MARGIN
    body = (
        _alignment(explanation, room, style) if isinstance(explanation, PairExplanation) else _text(explanation, room)
    )
    rows = label_rows(explanation)
    if rows is not None:
        body = _runs_block(rows.runs, room)
    head = _head(explanation, truth, room, bars=rows is None)
    groups = [head, _notes(explanation, room), body]
    groups += [] if rows is None else [_rows(rows, room)]
    groups.append(_legend(explanation, room, style))
    return document(groups, _title(explanation, truth), margin=MARGIN, spacing=SPACING, min_width=width, alone=True)


def draw_alignment(
    explanation: PairExplanation, *, style: Picture = "lines", room: float = 700, narrow: bool = False
) -> str:
    """Draw the alignment alone, as part of a page and in its text colour, no wider than necessary; `narrow` is for
    narrow pages."""
    body = _alignment(explanation, lines_width(explanation, room) or room if style == "lines" else room, style)
    return document([body], "word alignment", margin=2, spacing=0, min_width=0, alone=False, narrow=narrow)


def _alignment(explanation: PairExplanation, room: float, style: str) -> Block:
    if style not in ("lines", "heatmap"):
        raise ValueError(f"style must be 'lines' or 'heatmap', got {style!r}")
    return draw_lines(explanation, room) if style == "lines" else draw_heatmap(explanation, room)


def _title(explanation: AnyExplanation, truth: Label | None) -> str:
    prediction = describe_prediction(explanation, truth)
    return f"predicted {prediction.label}{', ' if prediction.remark else ''}{prediction.remark}"


def _text(explanation: Explanation, room: float) -> Block:
    return _runs_block(text_runs(explanation), room)


def _runs_block(runs: Sequence[TextRun], room: float) -> Block:
    drawn: list[str] = []
    broken = break_lines(runs, room, SIZE)
    for k, line in enumerate(broken):
        drawn += _line(line, (k + 0.72) * LEADING)
    return Block(drawn, room, len(broken) * LEADING)


def _line(line: Line, base: float) -> list[str]:
    drawn = []
    runs = _runs(line.fragments)
    for k, (look, x, right) in enumerate(runs):
        if look.kind in SELECTED:  # pad the ends that do not touch another background
            before = 0 if k and runs[k - 1][0].kind in SELECTED and x - runs[k - 1][2] < PADDING else PADDING
            touches = k + 1 < len(runs) and runs[k + 1][0].kind in SELECTED and runs[k + 1][1] - right < PADDING
            after = 0 if touches else PADDING
            drawn.append(background(look, x - before, base - 17, right - x + before + after, 24))
        if look.kind in ("both", "missed"):
            drawn.append(underline(look.kind, x, base + 4, right - x))
    drawn += [
        dotted_underline(one.x, base + 7, one.width) for one in line.fragments if one.run.unknown and one.text != " "
    ]
    parts = [
        " " if fragment.text == " " else fitted_tspan(fragment.x, fragment.text, SIZE, rtl=line.right_to_left)
        for fragment in line.fragments
    ]
    direction = ' direction="rtl"' if line.right_to_left else ""
    return [*drawn, f'<text y="{base:.1f}" font-size="{SIZE:g}"{direction}>{"".join(parts)}</text>'] if parts else []


def _rows(drawn: LabelRows, room: float) -> Block:
    """For each label its colour, name, probability and words."""
    names = [truncate(row.name, 0.3 * room, SMALL) for row in drawn.rows]
    left = 16 + max(text_width(name, SMALL) for name in names) * BOLD + 12
    shares = [percent(row.p) for row in drawn.rows if row.p is not None]
    track, number = 0.16 * room, 8 + max((text_width(share, SMALL) for share in shares), default=0.0)
    words = left + (track + number + 14 if shares else 0)
    elements = []
    for k, (row, name) in enumerate(zip(drawn.rows, names, strict=True)):
        top, colour = k * ROW, LIGHT_SERIES[row.colour]
        elements.append(f'<rect x="0.0" y="{top + 3:.1f}" width="10.0" height="13.0" rx="2" fill="{colour}"/>')
        weight = ' font-weight="700"' if row.label.value is True else ""
        elements.append(label(16, top + 14, name, SMALL, more=weight))
        if row.p is not None:
            elements += bar(row.p, left, top + 6, track, colour)
            elements.append(label(left + track + number, top + 14, percent(row.p), SMALL, anchor="end"))
        shown = truncate(row.words, room - words, SMALL)
        elements.append(label(words, top + 14, shown, SMALL, more=f' fill-opacity="{FAINT}"'))
    height = ROW * len(drawn.rows)
    if drawn.others:
        elements.append(label(16, height + 14, rest_text(drawn), SMALL, more=f' fill-opacity="{FAINT}"'))
        height += ROW
    return Block(elements, room, height)


def _runs(fragments: Sequence[Fragment]) -> list[tuple[Look, float, float]]:
    """Neighbours with the same look, from left to right: look, left and right edge."""
    runs: list[tuple[Look, float, float]] = []
    for fragment in sorted(fragments, key=lambda fragment: fragment.x):
        look = fragment.run.look
        if not look.kind:
            continue
        if runs and runs[-1][0] == look and abs(runs[-1][2] - fragment.x) < 0.01:
            runs[-1] = (look, runs[-1][1], fragment.right)
        else:
            runs.append((look, fragment.x, fragment.right))
    return runs


def _head(explanation: AnyExplanation, truth: Label | None, room: float, *, bars: bool = True) -> Block:
    """The prediction and bars of its probabilities, side by side if there is room."""
    prediction, shown = describe_prediction(explanation, truth), probabilities(explanation) if bars else []
    side_by_side = room >= 460 and bool(shown)
    column = 0.42 * room if side_by_side else room
    size = 18.0
    name = truncate(prediction.label, column / BOLD, size)
    remark = truncate(prediction.remark, column / BOLD, SMALL)
    drawn = [label(0, 17, name, size, more=' font-weight="700"')]
    height = 24.0
    used = text_width(name, size) * BOLD
    if remark:
        weight = ' font-weight="700"' if prediction.correct is False else ""
        drawn.append(label(0, 38, remark, SMALL, more=weight))
        height, used = 44.0, max(used, text_width(remark, SMALL) * BOLD)
    if not shown:
        return Block(drawn, room, height)
    x, y = (max(used + 36, 150.0), 2.0) if side_by_side else (0.0, height + 4)
    drawn += _bars(shown, x, y, min(room - x, 400.0))
    return Block(drawn, room, max(height, y + BAR * len(shown)))


def _notes(explanation: AnyExplanation, room: float) -> Block:
    """The warnings, beside a line."""
    lines = [line for text in explanation.warnings for line in break_lines([TextRun(text)], room - 12, SMALL)]
    height = 20.0 * len(lines)
    drawn = [f'<rect x="0.0" y="0.0" width="3.0" height="{height:.1f}" fill="{HIGHLIGHT_COLOURS["missed"]}"/>']
    for k, line in enumerate(lines):
        drawn.append(label(12, 20 * k + 14, "".join(fragment.text for fragment in line.fragments), SMALL))
    return Block(drawn if lines else [], room, height)


def _bars(bars: Sequence[Bar], x: float, y: float, room: float) -> list[str]:
    names = [truncate(bar.name, 0.45 * room, SMALL) for bar in bars]
    left = x + max(text_width(name, SMALL) for name in names) + 12
    track = x + room - left - max(text_width(percent(bar.p), SMALL) for bar in bars) - 8
    drawn = []
    for k, (name, (_, p, sign)) in enumerate(zip(names, bars, strict=True)):
        top = y + k * BAR + 5
        drawn.append(label(x, top + 9, name, SMALL))
        drawn += bar(p, left, top, track, SIGN_COLOURS.get(sign, BLUE))
        drawn.append(label(x + room, top + 9, percent(p), SMALL, anchor="end"))
    return drawn


def _legend(explanation: AnyExplanation, room: float, style: Picture) -> Block:
    x, y = 0.0, 14.0
    drawn: list[str] = []
    in_cells = style == "heatmap" and isinstance(explanation, PairExplanation)
    for entry in legend_entries(explanation):
        sample = 30.0 if entry.look.kind else 0.0
        wide = sample + text_width(entry.text, SMALL)
        if x and x + wide > room:
            x, y = 0.0, y + 22
        if entry.look.kind:
            drawn += _sample(entry.look, x, y - 12, in_cell=in_cells)
        drawn.append(label(x + sample, y, entry.text, SMALL, more=f' fill-opacity="{FAINT}"'))
        x += wide + 26
    return Block(drawn, room, y + 6)


def _sample(look: Look, x: float, y: float, *, in_cell: bool) -> list[str]:
    """A sample of a highlight for the legend: a word, or a cell of a heat map."""
    if look.kind == "unknown":
        return [dotted_underline(x, y + 12, 22)]
    left, width = (x + 3, 15) if in_cell else (x, 22)
    drawn = [background(look, left, y, width, 15)] if look.kind in SELECTED else []
    if look.kind in ("both", "missed"):
        drawn.append(frame(look.kind, left, y, 15) if in_cell else underline(look.kind, x + 0.5, y + 11, 21))
    return drawn
