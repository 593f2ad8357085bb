"""How the words of a text are highlighted: as selected by the model, annotated by people, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rationalizer.drawing.explanation import Explanation, PairExplanation
from rationalizer.drawing.text_width import GRAPHEME, sanitize

# Without an annotation "selected"; with one "both", "extra" (selected only) or "missed" (annotated only). "" is the
# rest of the text. "unknown" occurs in legends only: a word with any highlight can be unknown to the model.
Highlight = Literal["", "selected", "both", "extra", "missed", "unknown"]
SELECTED = ("selected", "both", "extra")


@dataclass(frozen=True)
class TextRun:
    """A part of the text with one highlight."""

    text: str
    kind: Highlight
    weight: float  # weight of the words in the predictor
    shade: float  # 0 to 1: the weight relative to the largest weight of the text
    unknown: bool = False  # whether it is a word that the model does not know


@dataclass(frozen=True)
class Link:
    """An aligned pair of words."""

    row: int
    column: int
    kind: Highlight
    weight: float
    shade: float


def highlight_of(selected: bool, annotated: bool | None) -> Highlight:
    if annotated is None:
        return "selected" if selected else ""
    if selected:
        return "both" if annotated else "extra"
    return "missed" if annotated else ""


def token_highlights(explanation: Explanation) -> list[Highlight]:
    annotation = explanation.annotation or [None] * len(explanation.tokens)
    return [highlight_of(*pair) for pair in zip(explanation.selected, annotation, strict=True)]


def relative_weights(weights: Sequence[float]) -> list[float]:
    """The weights divided by the largest one: attention has a sum of 1 per text, a mask has 1 for every word."""
    largest = max(weights, default=0.0)
    return [min(max(weight / largest, 0.0), 1.0) if largest > 0 else 0.0 for weight in weights]


def text_runs(explanation: Explanation) -> list[TextRun]:
    """The whole text. Neighbouring words with the same highlight and weight form one run."""
    return split_text(
        explanation.text, explanation.offsets, token_highlights(explanation), explanation.weights, explanation.unknown
    )


def pair_text_runs(explanation: PairExplanation) -> tuple[list[TextRun], list[TextRun]]:
    """Premise and hypothesis with their aligned words; the weight of a word is the sum over its alignments."""
    annotation = explanation.annotation
    runs = []
    texts = (explanation.premise, explanation.hypothesis)
    offsets = (explanation.premise_offsets, explanation.hypothesis_offsets)
    unknown = (explanation.premise_unknown, explanation.hypothesis_unknown)
    for side in (0, 1):
        aligned = {pair[side] for pair in explanation.pairs}
        annotated = None if annotation is None else {pair[side] for pair in annotation}
        words = range(len(offsets[side]))
        kinds = [highlight_of(k in aligned, None if annotated is None else k in annotated) for k in words]
        weights = [min(float(w), 1.0) for w in explanation.alignment.sum(axis=1 - side)]
        runs.append(split_text(texts[side], offsets[side], kinds, weights, unknown[side]))
    return runs[0], runs[1]


def pair_words(explanation: PairExplanation) -> tuple[list[str], list[str]]:
    """The words of premise and hypothesis as written in the texts."""
    premise = [sanitize(explanation.premise[start:end]) for start, end in explanation.premise_offsets]
    hypothesis = [sanitize(explanation.hypothesis[start:end]) for start, end in explanation.hypothesis_offsets]
    return premise, hypothesis


def alignment_links(explanation: PairExplanation) -> list[Link]:
    """Return the annotated pairs that the model missed, then the aligned pairs, which are drawn on top of them."""
    annotation = None if explanation.annotation is None else set(explanation.annotation)
    weights = [float(explanation.alignment[pair]) for pair in explanation.pairs]
    links = [Link(*pair, "missed", 0.0, 0.0) for pair in sorted((annotation or set()) - set(explanation.pairs))]
    for pair, weight, shade in zip(explanation.pairs, weights, relative_weights(weights), strict=True):
        kind = highlight_of(True, None if annotation is None else pair in annotation)
        links.append(Link(*pair, kind, weight, shade))
    return links


def split_text(
    text: str,
    offsets: Sequence[tuple[int, int]],
    kinds: Sequence[Highlight],
    weights: Sequence[float],
    unknown: Sequence[bool] = (),
) -> list[TextRun]:
    """Split a text, whose tokens have these highlights, between graphemes."""
    owners = _owners(text, offsets, kinds, weights)
    is_unknown = [False] * len(text)
    for (start, end), flag in zip(offsets, unknown, strict=False):
        is_unknown[start:end] = [flag] * (end - start)
    shades = relative_weights(weights)
    looks = [(_kind_and_weight(k, kinds, weights), flag) for k, flag in zip(owners, is_unknown, strict=True)]
    runs: list[TextRun] = []
    start = 0
    for end in range(1, len(text) + 1):
        if end < len(text) and looks[end] == looks[start]:
            continue
        k = owners[start]
        look = (kinds[k], weights[k], shades[k]) if k is not None else ("", 0.0, 0.0)
        runs.append(TextRun(text[start:end], *look, is_unknown[start]))
        start = end
    return runs


def _kind_and_weight(k: int | None, kinds: Sequence[Highlight], weights: Sequence[float]) -> tuple[Highlight, float]:
    if k is None or not kinds[k]:
        return "", 0.0
    return kinds[k], weights[k] if kinds[k] in SELECTED else 0.0


def _owners(
    text: str, offsets: Sequence[tuple[int, int]], kinds: Sequence[Highlight], weights: Sequence[float]
) -> list[int | None]:
    """For every character, the token whose highlight it gets."""
    owners: list[int | None] = [None] * len(text)
    last = None
    for k, (start, end) in enumerate(offsets):
        owners[start:end] = [k] * (end - start)
        if last is not None and kinds[k] and kinds[k] == kinds[last]:
            gap = offsets[last][1], start
            if "\n" not in text[slice(*gap)]:
                owners[slice(*gap)] = [last] * (gap[1] - gap[0])
        last = k
    # A tokenizer can split an accent or a part of an emoji off; the whole grapheme then looks like its strongest part.
    if not text.isascii():
        for start, end in (match.span() for match in GRAPHEME.finditer(text)):
            tokens = [k for k in owners[start:end] if k is not None]
            if end - start > 1 and tokens:
                strongest = max(tokens, key=lambda k: (kinds[k] in SELECTED, kinds[k] != "", weights[k]))
                owners[start:end] = [strongest] * (end - start)
    return owners
