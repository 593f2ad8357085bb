"""Line breaking for pictures: fragments of text with their positions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rationalizer.drawing.highlight_kinds import TextRun
from rationalizer.drawing.text_width import graphemes, is_right_to_left, is_wide, sanitize, width

_PARTS = re.compile(r"\s+|\S+")


@dataclass(frozen=True)
class Fragment:
    text: str
    run: TextRun
    x: float  # its left edge
    width: float

    @property
    def right(self) -> float:
        return self.x + self.width


@dataclass(frozen=True)
class Line:
    fragments: list[Fragment]  # in reading order; spaces between words are fragments too
    right_to_left: bool


@dataclass
class _Word:
    """Fragments between which no line may break; or one space."""

    parts: list[tuple[str, TextRun]]
    space: bool = False

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.parts)


def break_lines(runs: Sequence[TextRun], room: float, size: float) -> list[Line]:
    """Break text into lines of at most `room`: at spaces, next to wide characters, and inside words longer than a line.

    A paragraph whose first letter is right-to-left is laid out from right to left. In other paragraphs only runs of
    right-to-left words are.
    """
    lines = []
    for paragraph in _paragraphs(runs):
        words = [part for word in _words(paragraph) for part in _split_long(word, room, size)]
        rtl = bool(is_right_to_left("".join(word.text for word in words)))
        lines += [_position(line, rtl, room, size) for line in _fill_lines(words, room, size)]
    return lines


def _paragraphs(runs: Sequence[TextRun]) -> Iterator[list[tuple[str, TextRun]]]:
    current: list[tuple[str, TextRun]] = []
    for run in runs:
        first, *more = sanitize(run.text).split("\n")
        current.append((first, run))
        for text in more:
            yield current
            current = [(text, run)]
    yield current


def _words(paragraph: Sequence[tuple[str, TextRun]]) -> list[_Word]:
    words: list[_Word] = []
    open_word = False  # whether the next fragment continues the last word
    for text, run in paragraph:
        for part in _PARTS.findall(text):
            if part.isspace():
                if not (words and words[-1].space):
                    words.append(_Word([(" ", run)], space=True))
                open_word = False
                continue
            for chunk, wide in _chunks(part):
                closing = unicodedata.category(chunk[0]) in ("Pe", "Pf", "Po")
                if words and not words[-1].space and (closing if wide else open_word):
                    words[-1].parts.append((chunk, run))
                else:
                    words.append(_Word([(chunk, run)]))
                open_word = not wide
    return words


def _chunks(text: str) -> Iterator[tuple[str, bool]]:
    """Split between wide characters; the text between them stays in one chunk."""
    if text.isascii():
        yield text, False
        return
    for wide, group in groupby(graphemes(text), key=lambda character: is_wide(character[0])):
        members = list(group)
        yield from [(character, True) for character in members] if wide else [("".join(members), False)]


def _split_long(word: _Word, room: float, size: float) -> list[_Word]:
    """Split the word if it is longer than a line."""
    if width(word.text, size) <= room:
        return [word]
    words, used = [_Word([])], 0.0
    for text, run in word.parts:
        for character in graphemes(text):
            used += width(character, size)
            if used > room and words[-1].parts:
                words.append(_Word([]))
                used = width(character, size)
            parts = words[-1].parts
            if parts and parts[-1][1] is run:
                parts[-1] = (parts[-1][0] + character, run)
            else:
                parts.append((character, run))
    return words


def _fill_lines(words: Sequence[_Word], room: float, size: float) -> list[list[_Word]]:
    lines: list[list[_Word]] = [[]]
    used = 0.0
    for word in words:
        needed = width(word.text, size)
        if used + needed > room and lines[-1] and not word.space:
            lines.append([])
            used = 0.0
        if word.space and not lines[-1]:
            continue
        lines[-1].append(word)
        used += needed
    for line in lines:
        while line and line[-1].space:
            line.pop()
    return lines


def _position(words: Sequence[_Word], rtl: bool, room: float, size: float) -> Line:
    parts = [part for word in words for part in word.parts]
    if any(is_right_to_left(character) for text, _ in parts for character in text):
        parts = [(text, run) for whole, run in parts for text in _split_directions(whole)]
    directions = _directions([text for text, _ in parts], rtl)
    runs = [[k for k, _ in group] for _, group in groupby(enumerate(directions), key=lambda item: item[1])]
    order = []  # indices of the parts from left to right
    for run in reversed(runs) if rtl else runs:
        order += run[::-1] if directions[run[0]] else run
    widths = [width(text, size) for text, _ in parts]
    x = room - sum(widths) if rtl else 0.0
    placed: dict[int, Fragment] = {}
    for k in order:
        placed[k] = Fragment(*parts[k], x, widths[k])
        x += widths[k]
    return Line([placed[k] for k in range(len(parts))], rtl)


def _split_directions(text: str) -> list[str]:
    """Split into letters of either direction and characters without one: a bracket goes with the words around it."""
    return ["".join(group) for _, group in groupby(graphemes(text), key=is_right_to_left)]


def _directions(parts: Sequence[str], rtl: bool) -> list[bool]:
    """Whether each part runs from right to left; parts without letters follow neighbours that agree."""
    own = [is_right_to_left(part) for part in parts]
    following, after = rtl, []
    for direction in reversed(own):
        after.append(following)
        following = following if direction is None else direction
    before, directions = rtl, []
    for direction, behind in zip(own, reversed(after), strict=True):
        directions.append((before if before == behind else rtl) if direction is None else direction)
        before = before if direction is None else direction
    return directions
