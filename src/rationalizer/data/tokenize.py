"""Texts into tokens that know where they stand in the text."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import lru_cache

Offsets = tuple[tuple[int, int], ...]

# Runs of letters and digits, or runs of punctuation; a line break written as HTML counts as white space.
_BREAK = r"<br\s*/?>"
_TOKEN = re.compile(rf"{_BREAK}|(\w+|(?:(?!{_BREAK})[^\w\s])+)", re.IGNORECASE)
_WORD = re.compile(r"\S+")


@lru_cache(maxsize=1 << 18)
def _span(start: int, end: int) -> tuple[int, int]:
    return start, end


def tokenize(text: str) -> tuple[tuple[str, ...], Offsets]:
    """Words and punctuation of a text, each with its character span.

    >>> tokenize("Warm,<br />funny!")
    (('Warm', ',', 'funny', '!'), ((0, 4), (4, 5), (11, 16), (16, 17)))
    """
    return _cut(text, [match.span() for match in _TOKEN.finditer(text) if match.lastindex])


def split(text: str) -> tuple[tuple[str, ...], Offsets]:
    """Tokens of a text that comes tokenized: what stands between white space."""
    return _cut(text, [match.span() for match in _WORD.finditer(text)])


def _cut(text: str, spans: list[tuple[int, int]]) -> tuple[tuple[str, ...], Offsets]:
    # Tokens and spans recur by the million; one object for each keeps large corpora in memory.
    tokens = tuple([sys.intern(text[start:end]) for start, end in spans])
    return tokens, tuple([_span(*span) for span in spans])


def join(tokens: Sequence[str]) -> tuple[str, Offsets]:
    """Given tokens as a text, joined by spaces, with each token's span in it."""
    offsets, start = [], 0
    for token in tokens:
        offsets.append(_span(start, start + len(token)))
        start += len(token) + 1
    return " ".join(tokens), tuple(offsets)


def align(tokens: Sequence[str], text: str) -> Offsets:
    """Spans of given tokens in the text they were cut from, found from left to right.

    Between two tokens only white space may be left over, so that a token is never found further on by chance.
    """
    offsets, end = [], 0
    for k, token in enumerate(tokens):
        start = text.find(token, end)
        if start < 0 or text[end:start].strip():
            raise ValueError(
                f"token {k + 1} ({token!r}) does not follow {text[max(0, end - 20) : end]!r} in the text; "
                "leave the text column out to have the tokens joined by spaces"
            )
        end = start + len(token)
        offsets.append(_span(start, end))
    return tuple(offsets)
