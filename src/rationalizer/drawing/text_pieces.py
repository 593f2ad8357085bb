"""A text cut into the pieces that look different: which words the model read, which ones people named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rationalizer.drawing.explanation import Explanation, PairExplanation
from rationalizer.drawing.text_width import clusters

# "selected" where no human rationale is known; else "both", "extra" (selected, not human) and "missed" (human,
# not selected). "" is the rest of the text. "unknown" stands in keys only: a word of any look may be unknown.
Look = Literal["", "selected", "both", "extra", "missed", "unknown"]
CHOSEN = ("selected", "both", "extra")


@dataclass(frozen=True)
class Piece:
    """A part of the original text in one look."""

    text: str
    kind: Look
    weight: float  # as the model used it
    shade: float  # 0 to 1: the weight beside the largest of this text
    unknown: bool = False  # whether it is a word that the model does not know


def kind_of(selected: bool, human: bool | None) -> Look:
    if human is None:
        return "selected" if selected else ""
    if selected:
        return "both" if human else "extra"
    return "missed" if human else ""


def token_kinds(explanation: Explanation) -> list[Look]:
    rationale = explanation.annotation or [None] * len(explanation.tokens)
    return [kind_of(*pair) for pair in zip(explanation.selected, rationale, strict=True)]


def shades(weights: Sequence[float]) -> list[float]:
    """The weights beside the largest: attention spreads a total of 1 over a text, a mask gives 1 to every word."""
    largest = max(weights, default=0.0)
    return [min(max(weight / largest, 0.0), 1.0) if largest > 0 else 0.0 for weight in weights]


def pieces(explanation: Explanation) -> list[Piece]:
    """The whole text, in order. Neighbouring words of one look are one piece, with what stands between them."""
    return cut(
        explanation.text, explanation.offsets, token_kinds(explanation), explanation.weights, explanation.unknown
    )


def sides(explanation: PairExplanation) -> tuple[list[Piece], list[Piece]]:
    """Premise and hypothesis, the aligned words marked; a word's weight is that of its alignments together."""
    annotation = explanation.annotation
    found = []
    texts = (explanation.premise, explanation.hypothesis)
    offsets = (explanation.premise_offsets, explanation.hypothesis_offsets)
    unknown = (explanation.premise_unknown, explanation.hypothesis_unknown)
    for side in (0, 1):
        aligned = {pair[side] for pair in explanation.pairs}
        human = None if annotation is None else {pair[side] for pair in annotation}
        words = range(len(offsets[side]))
        kinds = [kind_of(k in aligned, None if human is None else k in human) for k in words]
        weights = [min(float(w), 1.0) for w in explanation.alignment.sum(axis=1 - side)]
        found.append(cut(texts[side], offsets[side], kinds, weights, unknown[side]))
    return found[0], found[1]


def cut(
    text: str,
    offsets: Sequence[tuple[int, int]],
    kinds: Sequence[Look],
    weights: Sequence[float],
    unknown: Sequence[bool] = (),
) -> list[Piece]:
    """Pieces of a text whose tokens have these looks, cut between the characters that a reader sees."""
    owners = _owners(text, offsets, kinds, weights)
    strange = [False] * len(text)
    for (start, end), is_unknown in zip(offsets, unknown, strict=False):
        strange[start:end] = [is_unknown] * (end - start)
    relative = shades(weights)
    looks = [(_look(k, kinds, weights), flag) for k, flag in zip(owners, strange, strict=True)]
    found: list[Piece] = []
    start = 0
    for end in range(1, len(text) + 1):
        if end < len(text) and looks[end] == looks[start]:
            continue
        k = owners[start]
        look = (kinds[k], weights[k], relative[k]) if k is not None else ("", 0.0, 0.0)
        found.append(Piece(text[start:end], *look, strange[start]))
        start = end
    return found


def _look(k: int | None, kinds: Sequence[Look], weights: Sequence[float]) -> tuple[Look, float]:
    if k is None or not kinds[k]:
        return "", 0.0
    return kinds[k], weights[k] if kinds[k] in CHOSEN else 0.0


def _owners(
    text: str, offsets: Sequence[tuple[int, int]], kinds: Sequence[Look], weights: Sequence[float]
) -> list[int | None]:
    """For every character, the token whose look it has."""
    owners: list[int | None] = [None] * len(text)
    last = None
    for k, (start, end) in enumerate(offsets):
        owners[start:end] = [k] * (end - start)
        if last is not None and kinds[k] and kinds[k] == kinds[last]:
            gap = offsets[last][1], start
            if "\n" not in text[slice(*gap)]:
                owners[slice(*gap)] = [last] * (gap[1] - gap[0])
        last = k
    # A tokenizer may cut off an accent or half an emoji; the whole character then looks like its strongest part.
    if not text.isascii():
        for start, end in clusters(text):
            tokens = [k for k in owners[start:end] if k is not None]
            if end - start > 1 and tokens:
                strongest = max(tokens, key=lambda k: (kinds[k] in CHOSEN, kinds[k] != "", weights[k]))
                owners[start:end] = [strongest] * (end - start)
    return owners
