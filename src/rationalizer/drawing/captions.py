"""Texts above and below a drawing: the prediction, its probabilities, the legend of the highlights."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

from rationalizer.drawing.explanation import AnyExplanation, Label, PairExplanation
from rationalizer.drawing.highlight_kinds import Highlight, token_highlights

MAX_BARS = 5  # classes with a bar of their own


@dataclass(frozen=True)
class PredictionText:
    """A prediction, and a comparison with the true label if that is known."""

    label: str
    remark: str = ""
    correct: bool | None = None  # None: unknown, or a regression


def label_text(label: Label) -> str:
    if isinstance(label, Real) and not isinstance(label, Integral):
        return f"{float(label):.4g}"
    return str(label)


def describe_prediction(explanation: AnyExplanation, truth: Label | None) -> PredictionText:
    label = label_text(explanation.label)
    remarks = list(explanation.warnings)
    if _has_one_class(explanation):
        selects = "align words" if isinstance(explanation, PairExplanation) else "select words"
        remarks = remarks or [f"the model has learned to {selects}, not to predict labels"]
        return PredictionText("no label", " ".join(remarks))
    if truth is None:
        return PredictionText(label, " ".join(remarks))
    if explanation.probabilities is None:
        error = abs(float(explanation.label) - float(truth))
        return PredictionText(label, " ".join([f"true value {label_text(truth)}, off by {error:.3g}", *remarks]))
    correct = label == label_text(truth)
    verdict = "right" if correct else f"wrong: the true label is {label_text(truth)}"
    return PredictionText(label, " ".join([f"{verdict}.", *remarks] if remarks else [verdict]), correct)


def _has_one_class(explanation: AnyExplanation) -> bool:
    """Whether the model was trained on annotations without labels: its probability of 100% means nothing."""
    return explanation.probabilities is not None and len(explanation.probabilities) == 1


def probabilities(explanation: AnyExplanation) -> list[tuple[str, float]]:
    """The most probable classes, and the sum over the others; empty if there is only one class."""
    if explanation.probabilities is None or _has_one_class(explanation):
        return []
    ordered = sorted(explanation.probabilities.items(), key=lambda item: -item[1])
    bars = [(label_text(label), float(p)) for label, p in ordered]
    if len(bars) <= MAX_BARS + 1:
        return bars
    rest = bars[MAX_BARS:]
    return [*bars[:MAX_BARS], (f"{len(rest)} others", sum(p for _, p in rest))]


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


def legend_entries(explanation: AnyExplanation) -> list[tuple[Highlight, str]]:
    """Return the highlights and their meanings. With an annotation all three are listed, even if unused."""
    kinds: list[Highlight] = ["both", "extra", "missed"] if explanation.annotation is not None else ["selected"]
    if isinstance(explanation, PairExplanation):
        kinds += ["unknown"] if any((*explanation.premise_unknown, *explanation.hypothesis_unknown)) else []
        entries = [(kind, PAIR_HIGHLIGHT_TEXTS[kind]) for kind in kinds]
        return entries if explanation.faithful else [*entries, ("", UNFAITHFUL_NOTE)]
    entries = [(kind, HIGHLIGHT_TEXTS[kind]) for kind in kinds]
    if not any(token_highlights(explanation)) and len(entries) == 1:
        entries = [("", "no word was read by the model")]
    return [*entries, ("unknown", HIGHLIGHT_TEXTS["unknown"])] if any(explanation.unknown) else entries


def has_shades(explanation: AnyExplanation) -> bool:
    """Whether the weights differ, so that the legend must explain the shading."""
    if isinstance(explanation, PairExplanation):
        weights = [float(explanation.alignment[pair]) for pair in explanation.pairs]
    else:
        weights = [w for w, selected in zip(explanation.weights, explanation.selected, strict=True) if selected]
    return bool(weights) and max(weights) - min(weights) > 0.005 * max(weights)
