"""How the words of a text are highlighted: as selected by the model, annotated by people, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rationalizer.drawing.explanation import AnyExplanation, Explanation, PairExplanation
from rationalizer.drawing.selected_words import NO_EFFECT, AlignedWords, AnyWord, SelectedWord
from rationalizer.drawing.text_width import GRAPHEME, sanitize

# Without an annotation "selected"; with one "both", "extra" (selected only) or "missed" (annotated only). "" is the
# rest of the text. "unknown" occurs in legends only: a word with any highlight can be unknown to the model.
Highlight = Literal["", "selected", "both", "extra", "missed", "unknown"]
SELECTED = ("selected", "both", "extra")
# What a selected word speaks for. Two classes: "-" the first, "+" the second; more classes: "+" for the predicted one,
# "-" against it; regression: "+" a larger value. "0": neither. "": its weight is not known.
Sign = Literal["", "+", "-", "0"]


@dataclass(frozen=True)
class Look:
    """How a word is highlighted."""

    kind: Highlight = ""
    shade: float = 0.0  # 0 to 1: the weight relative to the largest weight of the text
    sign: Sign = ""
    hint: str = ""  # the weight, in words
    labels: tuple[int, ...] = ()  # the colours of the labels for which it is selected, if each has its own words

    @property
    def group(self) -> tuple[Highlight, Sign, tuple[int, ...]]:
        """Neighbours of one group are drawn as one highlight."""
        return self.kind, self.sign, self.labels


@dataclass(frozen=True)
class TextRun:
    """A part of the text with one look."""

    text: str
    look: Look = Look()
    unknown: bool = False  # whether it is a word that the model does not know

    @property
    def kind(self) -> Highlight:
        return self.look.kind


@dataclass(frozen=True)
class Link:
    """An aligned pair of words."""

    row: int
    column: int
    look: Look
    share: float  # its entry in the alignment

    @property
    def kind(self) -> Highlight:
        return self.look.kind


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


def sign_of(word: AnyWord, explanation: AnyExplanation) -> Sign:
    if word.weight is None:
        return ""
    if word.direction == NO_EFFECT:
        return "0"
    classes = list(explanation.probabilities or ())
    for_second = len(classes) != 2 or explanation.label == classes[1]
    return "+" if (word.weight > 0) == for_second else "-"


def weighed_looks(explanation: AnyExplanation) -> list[tuple[AnyWord, Look]]:
    """The words with known weights, and their looks without kinds."""
    weighed = [(word, word.weight) for word in explanation.words if word.weight is not None]
    shades = relative_weights([abs(weight) for _, weight in weighed])
    return [
        (word, Look("", shade, sign_of(word, explanation), f"{abs(weight):.2g} {word.direction}"))
        for (word, weight), shade in zip(weighed, shades, strict=True)
    ]


def text_runs(explanation: Explanation, labels: Sequence[tuple[int, ...]] | None = None) -> list[TextRun]:
    """The whole text. Neighbouring words with the same look form one run.

    Args:
        explanation: of the text.
        labels: for each token the colours of the labels for which it is selected, if each has its own words.
    """
    kinds = token_highlights(explanation)
    looks = [
        Look(kind, shade, "", f"weight {factor:.3g}") if kind in SELECTED else Look(kind)
        for kind, shade, factor in zip(kinds, relative_weights(explanation.mask), explanation.mask, strict=True)
    ]
    if labels is not None:
        looks = [replace(look, labels=own) for look, own in zip(looks, labels, strict=True)]
    elif weighed := {w.index: look for w, look in weighed_looks(explanation) if isinstance(w, SelectedWord)}:
        last = neither = Look(sign="0")
        for k, look in enumerate(looks):
            if look.kind in SELECTED:
                last = weighed.get(k, last)  # punctuation looks like the word before it
                looks[k] = replace(last, kind=look.kind)
            else:
                last = neither
    return split_text(explanation.text, explanation.offsets, looks, explanation.unknown)


def pair_text_runs(explanation: PairExplanation) -> tuple[list[TextRun], list[TextRun]]:
    """Premise and hypothesis; a word looks like its strongest link."""
    annotation = explanation.annotation
    links = sorted(alignment_links(explanation), key=lambda link: link.look.shade)
    runs = []
    texts = (explanation.premise, explanation.hypothesis)
    offsets = (explanation.premise_offsets, explanation.hypothesis_offsets)
    unknown = (explanation.premise_unknown, explanation.hypothesis_unknown)
    for side in (0, 1):
        annotated = None if annotation is None else {pair[side] for pair in annotation}
        best = {(link.row, link.column)[side]: link.look for link in links if link.kind in SELECTED}
        looks = []
        for k in range(len(offsets[side])):
            kind = highlight_of(k in best, None if annotated is None else k in annotated)
            looks.append(replace(best.get(k, Look()), kind=kind))
        runs.append(split_text(texts[side], offsets[side], looks, unknown[side]))
    return runs[0], runs[1]


def pair_words(explanation: PairExplanation) -> tuple[list[str], list[str]]:
    """The words of premise and hypothesis as written in the texts."""
    premise = [sanitize(explanation.premise[start:end]) for start, end in explanation.premise_offsets]
    hypothesis = [sanitize(explanation.hypothesis[start:end]) for start, end in explanation.hypothesis_offsets]
    return premise, hypothesis


def alignment_links(explanation: PairExplanation) -> list[Link]:
    """Return the annotated pairs that the model missed, then the aligned pairs, which are drawn on top of them."""
    annotation = None if explanation.annotation is None else set(explanation.annotation)
    shares = [float(explanation.alignment[pair]) for pair in explanation.pairs]
    weighed = {
        (word.premise_index, word.hypothesis_index): look
        for word, look in weighed_looks(explanation)
        if isinstance(word, AlignedWords)
    }
    links = [Link(*pair, Look("missed"), 0.0) for pair in sorted((annotation or set()) - set(explanation.pairs))]
    for pair, share, shade in zip(explanation.pairs, shares, relative_weights(shares), strict=True):
        kind = highlight_of(True, None if annotation is None else pair in annotation)
        look = replace(weighed.get(pair) or Look("", shade, "", f"weight {share:.3g}"), kind=kind)
        links.append(Link(*pair, look, share))
    return links


def split_text(
    text: str, offsets: Sequence[tuple[int, int]], looks: Sequence[Look], unknown: Sequence[bool] = ()
) -> list[TextRun]:
    """Split a text between graphemes into runs of the same look; `looks` has one per token."""
    owners = _owners(text, offsets, looks)
    is_unknown = [False] * len(text)
    for (start, end), flag in zip(offsets, unknown, strict=False):
        is_unknown[start:end] = [flag] * (end - start)
    plain = Look()
    styled = [(plain if k is None else looks[k], flag) for k, flag in zip(owners, is_unknown, strict=True)]
    runs: list[TextRun] = []
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or styled[end] != styled[start]:
            runs.append(TextRun(text[start:end], *styled[start]))
            start = end
    return runs


def _owners(text: str, offsets: Sequence[tuple[int, int]], looks: Sequence[Look]) -> list[int | None]:
    """For every character, the index of the token that gives it its look."""
    owners: list[int | None] = [None] * len(text)
    last = None
    for k, (start, end) in enumerate(offsets):
        owners[start:end] = [k] * (end - start)
        if last is not None and looks[k].kind and looks[k].group == looks[last].group:
            gap = offsets[last][1], start
            if "\n" not in text[slice(*gap)]:
                owners[slice(*gap)] = [last] * (gap[1] - gap[0])
        last = k
    # A tokenizer can split an accent or a part of an emoji off; the whole grapheme then looks like its strongest part.
    if not text.isascii():
        for start, end in (match.span() for match in GRAPHEME.finditer(text)):
            tokens = [k for k in owners[start:end] if k is not None]
            if end - start > 1 and tokens:
                strongest = max(tokens, key=lambda k: (looks[k].kind in SELECTED, looks[k].kind != "", looks[k].shade))
                owners[start:end] = [strongest] * (end - start)
    return owners
