"""Explanations as terminal text, with colours or with brackets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from rationalizer.drawing.captions import (
    SHADING_NOTE,
    describe_prediction,
    legend_entries,
    percent,
    probabilities,
    rest_text,
)
from rationalizer.drawing.colours import TERMINAL_COLOURS, TERMINAL_LABELS, highlight_colour
from rationalizer.drawing.explanation import AnyExplanation, PairExplanation
from rationalizer.drawing.highlight_kinds import (
    SELECTED,
    Highlight,
    Look,
    TextRun,
    alignment_links,
    pair_text_runs,
    pair_words,
    text_runs,
)
from rationalizer.drawing.label_rows import LabelRows, label_rows
from rationalizer.drawing.selected_words import Label
from rationalizer.drawing.text_width import graphemes, sanitize, terminal_width

RESET = "\x1b[0m"
BOLD = "\x1b[1m"
DIM = "\x1b[2m"
UNKNOWN = "\x1b[3m"  # italics; without colour, unknown words are in {braces}
BRACKETS: dict[Highlight, tuple[str, str]] = {
    "selected": ("[", "]"),
    "both": ("[_", "_]"),
    "extra": ("[", "]"),
    "missed": ("_", "_"),
    "unknown": ("{", "}"),
}
BAR = 20
MAX_NAME = 30  # characters of a label's name

# (text, style) parts of a line; a style is an escape sequence or "".
_Styled = list[tuple[str, str]]


def to_terminal(
    explanation: AnyExplanation,
    *,
    truth: Label | None = None,
    colour: bool = True,
    width: int | None = None,
    legend: bool = True,
) -> str:
    """Format the prediction, the text with its rationale, and a legend; without a line break at the end.

    Args:
        explanation: of a text or a pair.
        truth: the true label, if known.
        colour: use escape sequences (`rich.text.Text.from_ansi` reads them); otherwise selected words are in
            [brackets] and annotated ones in _underscores_.
        width: of lines; None leaves line breaks to the terminal.
        legend: include the legend; several explanations need it only once.
    """
    if width is not None and width < 1:
        raise ValueError(f"width must be at least 1, got {width}")
    drawn = label_rows(explanation)
    lines = [_head(explanation, truth, bars=drawn is None)]
    lines += [part for warning in explanation.warnings for part in ([], [(f"Note: {sanitize(warning)}", "")])]
    if isinstance(explanation, PairExplanation):
        for name, side in zip(("premise", "hypothesis"), pair_text_runs(explanation), strict=True):
            lines += [[], [(f"{name}: ", DIM), *_text(side, colour)]]
        lines += [[], *_table(explanation)]
    elif drawn is not None:
        lines += [[], _text(drawn.runs, colour), [], *_rows(drawn)]
    else:
        lines += [[], _text(text_runs(explanation), colour)]
    if legend:
        lines += [[], *_legend(explanation, colour)]
    wrapped = [part for line in lines for part in _wrap(line, width)]
    return "\n".join("".join(_paint(line, colour)).rstrip(" ") for line in wrapped)


def _head(explanation: AnyExplanation, truth: Label | None, *, bars: bool = True) -> _Styled:
    prediction, shown = describe_prediction(explanation, truth), probabilities(explanation) if bars else []
    head = [(sanitize(prediction.label), BOLD)]
    if isinstance(explanation.label, tuple):  # of several labels the bar would be that of one only
        head += [("  " + "  ".join(f"{sanitize(bar.name)} {percent(bar.p)}" for bar in shown), DIM)] if shown else []
    elif shown:
        head += [(f"  {_bar(shown[0].p)} {percent(shown[0].p)}", "")]
        head += [("  " + "  ".join(f"{sanitize(bar.name)} {percent(bar.p)}" for bar in shown[1:]), DIM)]
    if prediction.remark:
        head.append((f"  {sanitize(prediction.remark)}", BOLD if prediction.correct is False else ""))
    return head


def _bar(p: float) -> str:
    filled = round(BAR * p)
    return f"{'█' * filled}{'░' * (BAR - filled)}"


def _rows(drawn: LabelRows) -> list[_Styled]:
    """A line for each label: its name in its colour, its probability and its words."""
    names = [sanitize(row.name) for row in drawn.rows]
    names = [name if len(graphemes(name)) <= MAX_NAME else "".join(graphemes(name)[:MAX_NAME]) + "…" for name in names]
    widest = max(map(terminal_width, names))
    lines: list[_Styled] = []
    for row, name in zip(drawn.rows, names, strict=True):
        own = f"\x1b[38;5;16;48;5;{TERMINAL_LABELS[row.colour]}m"
        space = " " * (widest - terminal_width(name))
        p = "" if row.p is None else f"  {_bar(row.p)} {percent(row.p):>5}"
        lines.append([(name, own), (f"{space}{p}  ", ""), (sanitize(row.words), "" if row.label.value else DIM)])
    return [*lines, [(rest_text(drawn), DIM)]] if drawn.others else lines


def _text(runs: Sequence[TextRun], colour: bool) -> _Styled:
    styled: _Styled = []
    for k, run in enumerate(runs):
        text = run.look.sign.replace("0", "") + sanitize(run.text)
        if colour:
            styled.append((text, _style(run.look) + (UNKNOWN if run.unknown else "")))
            continue
        before = runs[k - 1].kind if k else ""
        after = runs[k + 1].kind if k + 1 < len(runs) else ""
        opening, closing = BRACKETS.get(run.kind, ("", ""))
        # Neighbours that differ only in weight share one pair of brackets.
        word = text.join(BRACKETS["unknown"] if run.unknown else ("", ""))
        text = (opening if before != run.kind else "") + word
        styled.append((text + (closing if after != run.kind else ""), ""))
    return styled


def _style(look: Look) -> str:
    if look.labels:
        several = "4;" if len(look.labels) > 1 else ""
        return f"\x1b[{several}38;5;16;48;5;{TERMINAL_LABELS[look.labels[0]]}m"
    if look.kind in SELECTED:
        ramp = TERMINAL_COLOURS[highlight_colour(look)]
        underline = "4;" if look.kind == "both" else ""
        return f"\x1b[{underline}38;5;16;48;5;{ramp[min(int(look.shade * len(ramp)), len(ramp) - 1)]}m"
    return {"missed": "\x1b[4m", "unknown": UNKNOWN}.get(look.kind, "")


def _table(explanation: PairExplanation) -> list[_Styled]:
    """Return the aligned words, one pair per line, then the annotated pairs that the model missed."""
    remarks = {"selected": "", "both": "  people too", "extra": "  people did not", "missed": "  people only"}
    premise, hypothesis = pair_words(explanation)
    links = sorted(alignment_links(explanation), key=lambda link: link.kind == "missed")
    first = max((terminal_width(premise[link.row]) for link in links), default=0)
    lines: list[_Styled] = []
    for link in links:
        word = premise[link.row]
        line = " ┄┄      ┄┄ " if link.kind == "missed" else f" ── {link.share:.2f} ── "
        indent = " " * (first - terminal_width(word))
        weight = f"  {link.look.hint}" if link.look.sign else ""
        end = (weight + remarks[link.kind], DIM)
        lines.append([(indent + word, ""), (line, DIM), (hypothesis[link.column], ""), end])
    return lines


def _legend(explanation: AnyExplanation, colour: bool) -> list[_Styled]:
    lines: list[_Styled] = []
    for entry in legend_entries(explanation):
        look = entry.look
        opening, closing = ("", "") if colour else BRACKETS.get(look.kind, ("", ""))
        sign = look.sign.replace("0", "")
        sample = [(f"{opening}{sign}abc{closing}", _style(look)), (" ", "")] if look.kind else []
        lines.append([*sample, (entry.text, DIM)])
    return [line for line in lines if colour or line[-1][0] != SHADING_NOTE]


def _paint(line: _Styled, colour: bool) -> Iterable[str]:
    for style, group in groupby(line, key=lambda part: part[1]):
        text = "".join(text for text, _ in group)
        yield f"{style}{text}{RESET}" if colour and style else text


def _wrap(line: _Styled, width: int | None) -> list[_Styled]:
    """Break into lines of at most `width` columns, at spaces if possible, and at the text's own line breaks."""
    lines: list[_Styled] = [[]]
    used = 0
    word: _Styled = []

    def flush() -> None:
        nonlocal used, word
        size = sum(terminal_width(text) for text, _ in word)
        if width is not None and used and used + size > width:
            lines.append([])
            used = 0
        for text, style in word:
            for part in graphemes(text) if width is not None and size > width else [text]:
                if width is not None and used and used + terminal_width(part) > width:
                    lines.append([])
                    used = 0
                lines[-1].append((part, style))
                used += terminal_width(part)
        word = []

    for text, style in line:
        for part in re.findall(r"\n|[^\S\n]+|\S+", text):
            if part == "\n":
                flush()
                lines.append([])
                used = 0
            elif part.isspace():
                flush()
                space = part.expandtabs(4)
                if width is None or used + len(space) <= width:
                    lines[-1].append((space, style))
                    used += len(space)
                else:
                    lines.append([])
                    used = 0
            else:
                word.append((part, style))
    flush()
    return [_strip_end(one) for one in lines]


def _strip_end(line: _Styled) -> _Styled:
    """Remove spaces at the end, which a background would show."""
    while line and line[-1][0].isspace():
        line = line[:-1]
    return line
