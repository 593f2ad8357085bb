"""Sentence boundaries: from the data, or by a rule that is saved with the encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import regex
from numpy.typing import NDArray

from rationalizer.text.example import Example

SentenceRule = Literal["punctuation", "lines"]

_ENDS = frozenset(".!?…。！？")
_CLOSING = regex.compile(r"[\p{Pe}\p{Pf}'\"]+")
# Words whose final dot does not end a sentence: initials, words with inner dots, common titles.
_ABBREVIATION = regex.compile(r"(?:\p{L}\.)+|(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|no)\.", regex.IGNORECASE)
_BREAK = regex.compile(r"\n\s*\n|<br", regex.IGNORECASE)


def sentence_numbers(example: Example, rule: SentenceRule = "punctuation") -> NDArray[np.int64]:
    """The sentence number of each token, from 0.

    If the example has `sentence_lengths`, they are used. Otherwise a rule:
        punctuation: a sentence ends at a full stop, exclamation or question mark and the closing quotes or brackets
            after it, unless a lower-case letter follows in a text that has upper-case ones; and before an empty line.
        lines: every line is a sentence.
    """
    if rule not in get_args(SentenceRule):
        raise ValueError(f"unknown rule {rule!r}: use one of {', '.join(map(repr, get_args(SentenceRule)))}")
    if example.sentence_lengths is not None:
        return np.repeat(np.arange(len(example.sentence_lengths)), example.sentence_lengths)
    gaps = [example.text[a[1] : b[0]] for a, b in zip(example.offsets, example.offsets[1:], strict=False)]
    if rule == "lines":
        ends = ["\n" in gap or _BREAK.search(gap) is not None for gap in gaps]
    else:
        ends = _punctuation_ends(example.tokens, gaps, cased=any(map(str.isupper, example.text)))
    return np.cumsum([False, *ends][: len(example.tokens)], dtype=np.int64)


def _punctuation_ends(tokens: Sequence[str], gaps: Sequence[str], *, cased: bool) -> list[bool]:
    """Whether a sentence ends between each token and the next."""
    ends = []
    ended = False  # whether the sentence has ended, though closing quotes or brackets may follow
    quotes = 0  # straight quotes so far in the sentence; every second one closes
    for token, after, gap in zip(tokens, tokens[1:], gaps, strict=False):
        quotes += token == '"'
        ended = _ends_sentence(token) or (ended and _closes(token, quotes % 2 == 0))
        goes_on = _closes(after, quotes % 2 == 1) or after[:1] in _ENDS or (cased and after[:1].islower())
        end = (ended and not goes_on) or (len(gap) > 1 and _BREAK.search(gap) is not None)
        if end:
            ended, quotes = False, 0
        ends.append(end)
    return ends


def _closes(token: str, second_quote: bool) -> bool:
    return second_quote if token == '"' else _CLOSING.fullmatch(token) is not None


def _ends_sentence(token: str) -> bool:
    if token[-1:] not in _ENDS and _CLOSING.fullmatch(token[-1:]) is None:
        return False  # the fast path for most words
    bare = _CLOSING.sub("", token)
    return bare[-1:] in _ENDS and _ABBREVIATION.fullmatch(bare) is None
