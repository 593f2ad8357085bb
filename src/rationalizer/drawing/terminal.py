"""Explanations as text for a terminal, with colours or with brackets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from rationalizer.drawing.captions import SHADES, is_shaded, key, percent, probabilities, verdict
from rationalizer.drawing.explanation import AnyExplanation, Label, PairExplanation
from rationalizer.drawing.text_pieces import CHOSEN, Look, Piece, kind_of, pieces, sides
from rationalizer.drawing.text_width import cells, clean, clusters

RESET = "\x1b[0m"
BOLD = "\x1b[1m"
DIM = "\x1b[2m"
# Grounds of the 256 colours, faint to strong, under black letters: they look the same on light and dark terminals.
BLUE, ORANGE = (153, 117, 75), (230, 221, 214)
LOOKS: dict[Look, tuple[tuple[int, ...], str]] = {
    "selected": (BLUE, ""),
    "both": (BLUE, "4;"),
    "extra": (ORANGE, ""),
}
UNKNOWN = "\x1b[3m"  # words that the model does not know are slanted; without colour they stand in {braces}
BRACKETS: dict[Look, tuple[str, str]] = {
    "selected": ("[", "]"),
    "both": ("[_", "_]"),
    "extra": ("[", "]"),
    "missed": ("_", "_"),
    "unknown": ("{", "}"),
}
BAR = 20

# What is written is a list of (text, style): a style is an escape sequence, or "".
_Styled = list[tuple[str, str]]


def to_terminal(
    explanation: AnyExplanation,
    *,
    truth: Label | None = None,
    colour: bool = True,
    width: int | None = None,
    legend: bool = True,
) -> str:
    """The prediction, the text with the words it was made from, and a key to it; no line break at the end.

    Args:
        explanation: of a text or of a pair.
        truth: the true label, if known.
        colour: with escape sequences (`rich.text.Text.from_ansi` reads them); else words are put in [brackets],
            and what people named in _underscores_.
        width: where lines are broken; None leaves that to the terminal.
        legend: with the key, which several explanations need once only.
    """
    if width is not None and width < 1:
        raise ValueError(f"width must be at least 1, got {width}")
    lines = [_head(explanation, truth)]
    if isinstance(explanation, PairExplanation):
        for name, side in zip(("premise", "hypothesis"), sides(explanation), strict=True):
            lines += [[], [(f"{name}: ", DIM), *_text(side, colour)]]
        lines += [[], *_table(explanation)]
    else:
        lines += [[], _text(pieces(explanation), colour)]
    if legend:
        lines += [[], *_legend(explanation, colour)]
    wrapped = [part for line in lines for part in _wrapped(line, width)]
    return "\n".join("".join(_painted(line, colour)).rstrip(" ") for line in wrapped)


def _head(explanation: AnyExplanation, truth: Label | None) -> _Styled:
    said, bars = verdict(explanation, truth), probabilities(explanation)
    head = [(clean(said.label), BOLD)]
    if bars:
        filled = round(BAR * bars[0][1])
        head += [(f"  {'█' * filled}{'░' * (BAR - filled)} {percent(bars[0][1])}", "")]
        head += [("  " + "  ".join(f"{clean(name)} {percent(p)}" for name, p in bars[1:]), DIM)]
    if said.remark:
        head.append((f"  {clean(said.remark)}", BOLD if said.right is False else ""))
    return head


def _text(cut: Sequence[Piece], colour: bool) -> _Styled:
    if colour:
        return [
            (clean(piece.text), _look(piece.kind, piece.shade) + (UNKNOWN if piece.unknown else "")) for piece in cut
        ]
    styled: _Styled = []
    for k, piece in enumerate(cut):
        before = cut[k - 1].kind if k else ""
        after = cut[k + 1].kind if k + 1 < len(cut) else ""
        opening, closing = BRACKETS.get(piece.kind, ("", ""))
        # Neighbours that differ in weight only share one pair of brackets.
        word = clean(piece.text).join(BRACKETS["unknown"] if piece.unknown else ("", ""))
        text = (opening if before != piece.kind else "") + word
        styled.append((text + (closing if after != piece.kind else ""), ""))
    return styled


def _look(kind: Look, shade: float) -> str:
    if kind in CHOSEN:
        ramp, line = LOOKS[kind]
        return f"\x1b[{line}38;5;16;48;5;{ramp[min(int(shade * len(ramp)), len(ramp) - 1)]}m"
    return {"missed": "\x1b[4m", "unknown": UNKNOWN}.get(kind, "")


def _table(explanation: PairExplanation) -> list[_Styled]:
    """Aligned words, one pair a line."""
    annotation = None if explanation.annotation is None else set(explanation.annotation)
    missed = sorted((annotation or set()) - set(explanation.pairs))
    remarks = {"selected": "", "both": "  people too", "extra": "  people did not", "missed": "  people only"}
    rows = []
    for i, j in [*explanation.pairs, *missed]:
        kind = "missed" if (i, j) in missed else kind_of(True, None if annotation is None else (i, j) in annotation)
        premise = clean(explanation.premise[slice(*explanation.premise_offsets[i])])
        hypothesis = clean(explanation.hypothesis[slice(*explanation.hypothesis_offsets[j])])
        weight = "    " if kind == "missed" else f"{float(explanation.alignment[i, j]):.2f}"
        rows.append((premise, weight, hypothesis, remarks[kind], kind))
    first = max((cells(row[0]) for row in rows), default=0)
    return [
        [
            (" " * (first - cells(premise)) + premise, ""),
            (f" ┄┄ {weight} ┄┄ " if kind == "missed" else f" ── {weight} ── ", DIM),
            (hypothesis, ""),
            (remark, DIM),
        ]
        for premise, weight, hypothesis, remark, kind in rows
    ]


def _legend(explanation: AnyExplanation, colour: bool) -> list[_Styled]:
    lines: list[_Styled] = []
    for kind, words in key(explanation):
        opening, closing = ("", "") if colour else BRACKETS.get(kind, ("", ""))
        sample = [(f"{opening}abc{closing}", _look(kind, 1.0)), (" ", "")] if kind else []
        lines.append([*sample, (words, DIM)])
    return [*lines, [(SHADES, DIM)]] if colour and is_shaded(explanation) else lines


def _painted(line: _Styled, colour: bool) -> Iterable[str]:
    for style, group in groupby(line, key=lambda part: part[1]):
        text = "".join(text for text, _ in group)
        yield f"{style}{text}{RESET}" if colour and style else text


def _wrapped(line: _Styled, width: int | None) -> list[_Styled]:
    """Lines of at most `width` columns, broken at spaces where possible; also where the text has its own breaks."""
    lines: list[_Styled] = [[]]
    used = 0
    word: _Styled = []

    def flush() -> None:
        nonlocal used, word
        size = sum(cells(text) for text, _ in word)
        if width is not None and used and used + size > width:
            lines.append([])
            used = 0
        for text, style in word:
            for part in _characters(text) if width is not None and size > width else [text]:
                if width is not None and used and used + cells(part) > width:
                    lines.append([])
                    used = 0
                lines[-1].append((part, style))
                used += cells(part)
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
    return [_stripped(one) for one in lines]


def _characters(text: str) -> list[str]:
    return [text[start:end] for start, end in clusters(text)]


def _stripped(line: _Styled) -> _Styled:
    """Without the spaces at the end, which a ground would show."""
    while line and line[-1][0].isspace():
        line = line[:-1]
    return line
