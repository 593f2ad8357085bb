"""Texts with several labels, targets or classes, each with its own words: which of them are drawn, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rationalizer.drawing.colours import LIGHT_SERIES
from rationalizer.drawing.explanation import AnyExplanation, Explanation, LabelExplanation
from rationalizer.drawing.highlight_kinds import TextRun, text_runs
from rationalizer.drawing.selected_words import label_text

MAX_OTHERS = 5  # labels that a text does not have, the most probable ones
MAX_ROWS = 20
FOR, AGAINST = 0, 1  # colours of the palette

SEPARATE_NOTE = "each row: the words from which alone this was predicted"
SHARED_NOTE = "each row: of the words read for all classes, those without which its probability would fall"
SEVERAL_COLOURS_NOTE = "several colours: words of several rows"
ABSENT_NOTE = "a label that the text does not have shows the words from which the model concluded this"


@dataclass(frozen=True)
class LabelRow:
    """A label, target or class, its colour, and the text with its words."""

    label: LabelExplanation
    colour: int  # its number in the palette
    name: str
    p: float | None  # the probability; None for values
    words: str
    runs: Sequence[TextRun]


@dataclass(frozen=True)
class LabelRows:
    """The rows of a text, and the others, which are only counted."""

    rows: Sequence[LabelRow]
    others: int
    most: float  # the largest probability of the others
    runs: Sequence[TextRun]  # the text with the words of all labels that it has


def label_rows(explanation: AnyExplanation) -> LabelRows | None:
    """The labels of the text, all targets, or the predicted class; then the most probable others. None if there is only
    one rationale."""
    if not isinstance(explanation, Explanation) or not explanation.has_label_rationales:
        return None
    labels = explanation.labels
    targets = isinstance(explanation.label, dict)
    if targets:
        order = list(range(len(labels)))
        kept = order[:MAX_ROWS]
    else:
        order = sorted(range(len(labels)), key=lambda k: (not labels[k].value, -(labels[k].probability or 0.0)))
        has = sum(bool(one.value) for one in labels)
        kept = order[: min(MAX_ROWS, has + MAX_OTHERS)]
    # A label keeps its colour in all texts if there are enough colours.
    few = len(labels) <= len(LIGHT_SERIES)
    colours = {k: (k if few else place) % len(LIGHT_SERIES) for place, k in enumerate(kept)}
    if not explanation.separate:
        colours = _directions(labels, kept)
    rows = [_row(explanation, labels[k], colours[k]) for k in kept]
    coloured = [k for k in kept if targets or labels[k].value]
    owners = [
        tuple(colours[k] for k in coloured if labels[k].selected[token]) for token in range(len(explanation.tokens))
    ]
    most = max((labels[k].probability or 0.0 for k in order[len(kept) :]), default=0.0)
    if not explanation.separate:
        return LabelRows(rows, len(labels) - len(kept), most, text_runs(explanation))
    chosen = tuple(map(bool, owners))
    union = replace(explanation, selected=chosen, mask=tuple(map(float, chosen)), words=())
    runs = _named(text_runs(union, owners), {row.colour: row.name for row in reversed(rows)})
    return LabelRows(rows, len(labels) - len(kept), most, runs)


def label_view(explanation: Explanation, one: LabelExplanation) -> Explanation:
    """The explanation with the words of one label only."""
    return replace(
        explanation,
        mask=one.mask,
        selected=one.selected,
        spans=one.spans,
        annotation=one.annotation,
        labels=(),
        words=tuple(word for word in explanation.words if one.selected[word.index]),
    )


def notes(explanation: Explanation, drawn: LabelRows) -> list[str]:
    """What the rows mean."""
    found = [SEPARATE_NOTE if explanation.separate else SHARED_NOTE]
    if any(len(run.look.labels) > 1 for run in drawn.runs):
        found.append(SEVERAL_COLOURS_NOTE)
    if explanation.separate and any(row.label.threshold is not None and not row.label.value for row in drawn.rows):
        found.append(ABSENT_NOTE)
    return found


def _directions(labels: Sequence[LabelExplanation], kept: Sequence[int]) -> dict[int, int]:
    """The colours of words for and against the prediction: of two classes the first has the second colour, of more the
    predicted one the first colour."""
    if len(labels) == 2:
        return {0: AGAINST, 1: FOR}
    return {k: FOR if labels[k].value else AGAINST for k in kept}


def _row(explanation: Explanation, one: LabelExplanation, colour: int) -> LabelRow:
    name = label_text(one.name)
    if not isinstance(one.value, bool):
        name = f"{name}: {label_text(one.value)}"
    plain = replace(label_view(explanation, one), words=())
    owners = [(colour,) if chosen else () for chosen in one.selected]
    words = " ... ".join(explanation.text[start:end] for start, end in one.spans)
    return LabelRow(one, colour, name, one.probability, words, _named(text_runs(plain, owners), {colour: name}))


def _named(runs: Sequence[TextRun], names: Mapping[int, str]) -> list[TextRun]:
    """Give words the names of their labels as a hint."""
    hints = [", ".join(names[colour] for colour in run.look.labels) for run in runs]
    return [replace(run, look=replace(run.look, hint=hint)) for run, hint in zip(runs, hints, strict=True)]
