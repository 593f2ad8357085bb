"""Texts above and below a drawing: the prediction, its probabilities, the legend of the highlights."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

from rationalizer.drawing.explanation import AnyExplanation, Explanation, PairExplanation
from rationalizer.drawing.highlight_kinds import Highlight, Look, Sign, sign_of, token_highlights
from rationalizer.drawing.label_rows import LabelRows, label_rows, notes
from rationalizer.drawing.selected_words import Label, label_text
from rationalizer.plurals import count_of

MAX_BARS = 5  # classes with a bar of their own
MAX_NAMED = 20  # labels of a text in its headline, the most probable ones


@dataclass(frozen=True)
class PredictionText:
    """A prediction, and a comparison with the true label if that is known."""

    label: str
    remark: str = ""
    correct: bool | None = None  # None: unknown, or a regression


def describe_prediction(explanation: AnyExplanation, truth: Label | None) -> PredictionText:
    label = _headline(explanation.label, explanation)
    if _has_one_class(explanation):
        selects = "align words" if isinstance(explanation, PairExplanation) else "select words"
        return PredictionText("no label", f"the model has learned to {selects}, not to predict labels")
    if truth is None:
        return PredictionText(label)
    if isinstance(explanation.label, dict):
        return PredictionText(label, f"true: {label_text(truth)}")
    if explanation.probabilities is None:
        error = abs(float(explanation.label) - float(truth))
        return PredictionText(label, f"true value {label_text(truth)}, off by {error:.3g}")
    correct = label_text(explanation.label) == label_text(truth)
    wrong = f"wrong: the true label is {_headline(truth, explanation)}"
    return PredictionText(label, "right" if correct else wrong, correct)


def _headline(label: Any, explanation: AnyExplanation) -> str:
    """The label in words; of many labels the most probable ones."""
    if not isinstance(label, tuple) or len(label) <= MAX_NAMED:
        return label_text(label)
    p = explanation.probabilities or {}
    first = sorted(label, key=lambda name: -p.get(name, 0.0))[:MAX_NAMED]
    return f"{label_text(tuple(first))} and {len(label) - MAX_NAMED} more"


def _has_one_class(explanation: AnyExplanation) -> bool:
    """Whether the model was trained on annotations without labels: its probability of 100% means nothing."""
    return explanation.probabilities is not None and len(explanation.probabilities) == 1


class Bar(NamedTuple):
    """A class and its probability."""

    name: str
    p: float
    sign: Sign = ""  # that of the words that speak for the class, if there are two classes and the words have weights


def probabilities(explanation: AnyExplanation) -> list[Bar]:
    """The most probable classes, and the sum over the others; empty if there is only one class."""
    if explanation.probabilities is None or _has_one_class(explanation):
        return []
    weighed = any(word.weight is not None for word in explanation.words)
    signs: tuple[Sign, ...] = ("-", "+") if weighed and len(explanation.probabilities) == 2 else ()
    named: Any = zip_longest(explanation.probabilities.items(), signs, fillvalue="")
    bars = sorted((Bar(label_text(label), float(p), sign) for (label, p), sign in named), key=lambda bar: -bar.p)
    if len(bars) <= MAX_BARS + 1:
        return bars
    rest = bars[MAX_BARS:]
    if isinstance(explanation.label, tuple):  # the probabilities of several labels have no sum
        return [*bars[:MAX_BARS], Bar(f"{len(rest)} others, at most", rest[0].p)]
    return [*bars[:MAX_BARS], Bar(f"{len(rest)} others", sum(bar.p for bar in rest))]


def rest_text(drawn: LabelRows) -> str:
    """A note on the labels without a row."""
    return f"{count_of(drawn.others, 'other')}, at most {percent(drawn.most)}"


def percent(share: float) -> str:
    """Format a share; only exact values are shown as 0% or 100%."""
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 <= share < 1:
        return ">99.9%"
    return f"{share:.0%}" if 0.005 <= share < 0.995 or share in (0, 1) else f"{share:.1%}"


HIGHLIGHT_TEXTS: dict[Highlight, str] = {
    "selected": "read by the model",
    "both": "read by the model and marked in the data",
    "extra": "read by the model only",
    "missed": "marked in the data only",
    "unknown": "unknown to the model",
}
PAIR_HIGHLIGHT_TEXTS: dict[Highlight, str] = {
    "selected": "aligned by the model",
    "both": "aligned by the model and in the data",
    "extra": "aligned by the model only",
    "missed": "aligned in the data only",
    "unknown": "unknown to the model",
}
UNFAITHFUL_NOTE = "the model also read the premise past the alignment"
SHADING_NOTE = "the stronger the colour, the larger the weight"


@dataclass(frozen=True)
class LegendEntry:
    """A sample of a highlight (none if its kind is ""), and what it means."""

    look: Look
    text: str


def legend_entries(explanation: AnyExplanation) -> list[LegendEntry]:
    """Return the highlights and their meanings. With an annotation all three are listed, even if unused."""
    remarks: list[LegendEntry] = []
    if isinstance(explanation, Explanation) and (drawn := label_rows(explanation)) is not None:
        remarks = [LegendEntry(Look(), text) for text in notes(explanation, drawn)]
        if explanation.separate:
            return remarks
    pair = isinstance(explanation, PairExplanation)
    texts = PAIR_HIGHLIGHT_TEXTS if pair else HIGHLIGHT_TEXTS
    annotated = explanation.annotation is not None
    entries = _directions(explanation, "aligned" if pair else "read")
    kinds: list[Highlight] = ["both", "extra", "missed"] if annotated else ["selected"]
    if entries:
        kinds = ["both", "missed"] if annotated else []
    sign: Sign = "0" if entries else ""
    entries += [LegendEntry(Look(kind, 1.0, sign), texts[kind]) for kind in kinds]
    if not isinstance(explanation, PairExplanation):
        if not any(token_highlights(explanation)) and not annotated:
            entries = [LegendEntry(Look(), "no word was read by the model")]
        unknown = any(explanation.unknown)
    else:
        unknown = any((*explanation.premise_unknown, *explanation.hypothesis_unknown))
    entries += [LegendEntry(Look("unknown"), texts["unknown"])] if unknown else []
    faithful = not isinstance(explanation, PairExplanation) or explanation.faithful
    entries += [] if faithful else [LegendEntry(Look(), UNFAITHFUL_NOTE)]
    return [*entries, *([LegendEntry(Look(), SHADING_NOTE)] if _has_shades(explanation) else []), *remarks]


def _directions(explanation: AnyExplanation, verb: str) -> list[LegendEntry]:
    """What the colours of selected words mean; nothing if the weights of the words are not known."""
    signs = {sign_of(word, explanation) for word in explanation.words} - {""}
    if not signs:
        return []
    if explanation.probabilities is None:
        names: dict[Sign, str] = {"+": "raises the value", "-": "lowers the value"}
    elif len(explanation.probabilities) == 2:
        first, second = (f"for {label_text(label)}" for label in explanation.probabilities)
        names = {"+": second, "-": first}
    else:
        names = {"+": "for the predicted class", "-": "against it"}
    names |= {"0": "no effect"} if "0" in signs else {}
    return [LegendEntry(Look("selected", 1.0, sign), f"{verb}, {name}") for sign, name in names.items()]


def _has_shades(explanation: AnyExplanation) -> bool:
    """Whether the weights differ, so that the legend must explain the shading."""
    weights = [abs(word.weight) for word in explanation.words if word.weight is not None]
    if not weights and isinstance(explanation, PairExplanation):
        weights = [float(explanation.alignment[pair]) for pair in explanation.pairs]
    elif not weights and isinstance(explanation, Explanation):
        weights = [w for w, selected in zip(explanation.mask, explanation.selected, strict=True) if selected]
    return bool(weights) and max(weights) - min(weights) > 0.005 * max(weights)
