"""What stands above and below a drawing, in words: the prediction, its probabilities, the key to the looks."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

from rationalizer.drawing.explanation import AnyExplanation, Label, PairExplanation
from rationalizer.drawing.text_pieces import Look, token_kinds

SHOWN = 5  # classes with a bar of their own


@dataclass(frozen=True)
class Verdict:
    """A prediction, and how it compares with the truth if that is known."""

    label: str
    remark: str = ""
    right: bool | None = None  # None: unknown, or a matter of degree


def label_text(label: Label) -> str:
    if isinstance(label, Real) and not isinstance(label, Integral):
        return f"{float(label):.4g}"
    return str(label)


def verdict(explanation: AnyExplanation, truth: Label | None) -> Verdict:
    label = label_text(explanation.label)
    guess = "" if explanation.readable else "a guess: the model knows none of the words"
    if _knows_one_class(explanation):
        does = "align words" if isinstance(explanation, PairExplanation) else "select words"
        return Verdict("no label", guess or f"the model has learned to {does}, not to tell labels apart")
    if truth is None:
        return Verdict(label, guess)
    remarks = [guess] if guess else []
    if explanation.probabilities is None:
        off = abs(float(explanation.label) - float(truth))
        return Verdict(label, "; ".join([*remarks, f"true value {label_text(truth)}, off by {off:.3g}"]))
    right = label == label_text(truth)
    remarks.append("right" if right else f"wrong: the true label is {label_text(truth)}")
    return Verdict(label, "; ".join(remarks), right)


def _knows_one_class(explanation: AnyExplanation) -> bool:
    """It then is of a model that learned from what people marked, and whose 100% say nothing."""
    return explanation.probabilities is not None and len(explanation.probabilities) == 1


def probabilities(explanation: AnyExplanation) -> list[tuple[str, float]]:
    """The most probable classes, and what is left for the others; none where there is only one."""
    if explanation.probabilities is None or _knows_one_class(explanation):
        return []
    ordered = sorted(explanation.probabilities.items(), key=lambda item: -item[1])
    shown = [(label_text(label), float(p)) for label, p in ordered]
    if len(shown) <= SHOWN + 1:
        return shown
    rest = shown[SHOWN:]
    return [*shown[:SHOWN], (f"{len(rest)} others", sum(p for _, p in rest))]


def percent(share: float) -> str:
    """A share as a person would say it; only what is certain is called 0 or 100%."""
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 <= share < 1:
        return ">99.9%"
    return f"{share:.0%}" if 0.005 <= share < 0.995 or share in (0, 1) else f"{share:.1%}"


WORDS: dict[Look, str] = {
    "selected": "read by the model",
    "both": "read by the model and marked in the data",
    "extra": "read by the model only",
    "missed": "marked in the data only",
    "unknown": "unknown to the model",
}
PAIR_WORDS: dict[Look, str] = {
    "selected": "aligned by the model",
    "both": "aligned by the model and in the data",
    "extra": "aligned by the model only",
    "missed": "aligned in the data only",
    "unknown": "unknown to the model",
}


UNFAITHFUL = "the model also read the premise past the alignment"
SHADES = "the stronger the colour, the larger the weight"


def key(explanation: AnyExplanation) -> list[tuple[Look, str]]:
    """The looks that occur, in words; all three where a rationale is known, so that absence says something."""
    if isinstance(explanation, PairExplanation):
        kinds: list[Look] = ["both", "extra", "missed"] if explanation.annotation is not None else ["selected"]
        kinds += ["unknown"] if any((*explanation.premise_unknown, *explanation.hypothesis_unknown)) else []
        words = [(kind, PAIR_WORDS[kind]) for kind in kinds]
        return words if explanation.faithful else [*words, ("", UNFAITHFUL)]
    kinds = ["both", "extra", "missed"] if explanation.annotation is not None else ["selected"]
    words = [(kind, WORDS[kind]) for kind in kinds]
    if not any(token_kinds(explanation)) and len(words) == 1:
        words = [("", "no word was read by the model")]
    return [*words, ("unknown", WORDS["unknown"])] if any(explanation.unknown) else words


def is_shaded(explanation: AnyExplanation) -> bool:
    """Whether there are weights that differ, so that the shades need a word."""
    if isinstance(explanation, PairExplanation):
        weights = [float(explanation.alignment[pair]) for pair in explanation.pairs]
    else:
        weights = [w for w, chosen in zip(explanation.weights, explanation.selected, strict=True) if chosen]
    return bool(weights) and max(weights) - min(weights) > 0.005 * max(weights)
