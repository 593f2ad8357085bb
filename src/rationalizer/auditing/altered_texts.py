"""Texts with other words, other gaps or further words, and the rationale moved along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rationalizer.auditing.audited_model import Weights
from rationalizer.text import AnyExample, Example, PairExample

NEW = -1  # the origin of a word that is not in the original text


def main_text(example: AnyExample) -> Example:
    """The text whose dropped words must not matter: the text, or the premise of a pair."""
    return example.texts[0]


def selected_words(weights: Weights) -> NDArray[np.bool_]:
    """Which words of the main text are selected; in a pair, which ones are aligned."""
    visible: NDArray[np.bool_] = weights != 0
    return visible if weights.ndim == 1 else visible.max(axis=1)


def with_words(example: AnyExample, words: Sequence[str]) -> AnyExample:
    """The same text with other words at the same positions."""
    text = main_text(example)
    return _with_main_text(example, _build(words, _gaps(text), text.sentence_lengths))


def rearrange(
    example: AnyExample, weights: Weights, words: Sequence[str], origins: Sequence[int]
) -> tuple[AnyExample, Weights]:
    """A text of these words, and its rationale.

    Args:
        example: the original text.
        weights: its rationale.
        words: the words of the new text.
        origins: for each of them the position in the original text, or `NEW`. Known words keep the white space that
            precedes them, on which a tokenizer may depend.
    """
    gaps = _gaps(main_text(example))
    origin = np.asarray(origins, dtype=np.int64)
    text = _build(words, [gaps[k] if k != NEW else " " for k in origins])
    moved = np.zeros((len(words), *weights.shape[1:]), dtype=weights.dtype)
    moved[origin != NEW] = weights[origin[origin != NEW]]
    return _with_main_text(example, text), moved


def insert_word(example: AnyExample, word: str, at: int) -> AnyExample:
    """The text with one more word, before the word `at`."""
    text = main_text(example)
    n = len(text.tokens)
    words = [*text.tokens[:at], word, *text.tokens[at:]]
    nothing = np.zeros(n, dtype=np.float32)
    return _with_main_text(example, main_text(rearrange(text, nothing, words, [*range(at), NEW, *range(at, n)])[0]))


def _with_main_text(example: AnyExample, text: Example) -> AnyExample:
    if isinstance(example, PairExample):
        return replace(example, premise=text, alignment=None)
    return replace(text, label=example.label)


def _gaps(text: Example) -> list[str]:
    """The characters before each word."""
    ends = [0, *(end for _, end in text.offsets)]
    return [text.text[end:start] for end, (start, _) in zip(ends, text.offsets, strict=False)]


def _build(words: Sequence[str], gaps: Sequence[str], sentence_lengths: tuple[int, ...] | None = None) -> Example:
    pieces, offsets, end = [], [], 0
    for word, gap in zip(words, gaps, strict=True):
        start = end + len(gap)
        end = start + len(word)
        pieces += [gap, word]
        offsets.append((start, end))
    return Example("".join(pieces), tuple(words), tuple(offsets), sentence_lengths=sentence_lengths)
