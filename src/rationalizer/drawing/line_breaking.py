"""Pieces of text broken into lines, every fragment with its place: what a browser does, for pictures."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rationalizer.drawing.text_pieces import Piece
from rationalizer.drawing.text_width import clean, clusters, is_right_to_left, is_wide, width

_PARTS = re.compile(r"\s+|\S+")


@dataclass(frozen=True)
class Fragment:
    text: str
    piece: Piece
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

    parts: list[tuple[str, Piece]]
    space: bool = False

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.parts)


def flow(pieces: Sequence[Piece], room: float, size: float) -> list[Line]:
    """Lines of at most `room`, broken at spaces, beside wide characters, and in words that are longer than a line.

    Words run from right to left in paragraphs whose first letter does, and so do runs of such words in others.
    """
    lines = []
    for paragraph in _paragraphs(pieces):
        words = [part for word in _words(paragraph) for part in _divided(word, room, size)]
        backwards = bool(is_right_to_left("".join(word.text for word in words)))
        lines += [_placed(line, backwards, room, size) for line in _broken(words, room, size)]
    return lines


def _paragraphs(pieces: Sequence[Piece]) -> Iterator[list[tuple[str, Piece]]]:
    current: list[tuple[str, Piece]] = []
    for piece in pieces:
        first, *more = clean(piece.text).split("\n")
        current.append((first, piece))
        for text in more:
            yield current
            current = [(text, piece)]
    yield current


def _words(paragraph: Sequence[tuple[str, Piece]]) -> list[_Word]:
    words: list[_Word] = []
    open_word = False  # whether the next fragment belongs to the last word
    for text, piece in paragraph:
        for part in _PARTS.findall(text):
            if part.isspace():
                if not (words and words[-1].space):
                    words.append(_Word([(" ", piece)], space=True))
                open_word = False
                continue
            for chunk, wide in _chunks(part):
                closing = unicodedata.category(chunk[0]) in ("Pe", "Pf", "Po")
                if words and not words[-1].space and (closing if wide else open_word):
                    words[-1].parts.append((chunk, piece))
                else:
                    words.append(_Word([(chunk, piece)]))
                open_word = not wide
    return words


def _chunks(text: str) -> Iterator[tuple[str, bool]]:
    """Wide characters one by one, the text between them in one."""
    if text.isascii():
        yield text, False
        return
    characters = [text[start:end] for start, end in clusters(text)]
    for wide, group in groupby(characters, key=lambda character: is_wide(character[0])):
        members = list(group)
        yield from [(character, True) for character in members] if wide else [("".join(members), False)]


def _divided(word: _Word, room: float, size: float) -> list[_Word]:
    """The word, in parts if it is longer than a line."""
    if width(word.text, size) <= room:
        return [word]
    found, used = [_Word([])], 0.0
    for text, piece in word.parts:
        for start, end in clusters(text):
            character = text[start:end]
            used += width(character, size)
            if used > room and found[-1].parts:
                found.append(_Word([]))
                used = width(character, size)
            parts = found[-1].parts
            if parts and parts[-1][1] is piece:
                parts[-1] = (parts[-1][0] + character, piece)
            else:
                parts.append((character, piece))
    return found


def _broken(words: Sequence[_Word], room: float, size: float) -> list[list[_Word]]:
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


def _placed(words: Sequence[_Word], backwards: bool, room: float, size: float) -> Line:
    parts = [part for word in words for part in word.parts]
    if any(is_right_to_left(character) for text, _ in parts for character in text):
        parts = [(text, piece) for whole, piece in parts for text in _of_one_direction(whole)]
    directions = _directions([text for text, _ in parts], backwards)
    runs = [[k for k, _ in group] for _, group in groupby(enumerate(directions), key=lambda item: item[1])]
    order = []  # of the parts, from left to right
    for run in reversed(runs) if backwards else runs:
        order += run[::-1] if directions[run[0]] else run
    widths = [width(text, size) for text, _ in parts]
    x = room - sum(widths) if backwards else 0.0
    placed: dict[int, Fragment] = {}
    for k in order:
        placed[k] = Fragment(*parts[k], x, widths[k])
        x += widths[k]
    return Line([placed[k] for k in range(len(parts))], backwards)


def _of_one_direction(text: str) -> list[str]:
    """Letters of either direction, and what has none, apart: a bracket may go with the words around it."""
    characters = [text[start:end] for start, end in clusters(text)]
    return ["".join(group) for _, group in groupby(characters, key=is_right_to_left)]


def _directions(parts: Sequence[str], backwards: bool) -> list[bool]:
    """Whether each part runs from right to left; one without letters goes with neighbours that agree."""
    own = [is_right_to_left(part) for part in parts]
    following, after = backwards, []
    for direction in reversed(own):
        after.append(following)
        following = following if direction is None else direction
    before, found = backwards, []
    for direction, behind in zip(own, reversed(after), strict=True):
        found.append((before if before == behind else backwards) if direction is None else direction)
        before = before if direction is None else direction
    return found
