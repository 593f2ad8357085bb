"""Selected words with their weights: how much each speaks for the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

Label = str | int | float | bool
NO_EFFECT = "no effect"
SMALLEST = 0.005  # weight with a direction, in log-odds; for regression, relative to the largest weight of the text


class _Weighed:
    by_class: dict[Label, float] | None

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values for JSON."""
        by_class = None if self.by_class is None else {str(label): value for label, value in self.by_class.items()}
        return {**vars(self), "by_class": by_class}


@dataclass(frozen=True)
class SelectedWord(_Weighed):
    """A selected word, its place, and how much it speaks for the prediction.

    The weight is what the log-odds of the predicted class lose without the word, that is if the predictor reads the
    same rationale once more with the word left out; for regression, what the value loses. It is positive if the word
    speaks for the prediction. None: not computed.
    """

    text: str
    index: int  # of the token
    start: int  # character offsets
    end: int
    weight: float | None = None
    direction: str | None = None  # "for negative", "against sports", "raises the value", "no effect"
    by_class: dict[Label, float] | None = None  # the weight for each class; for the 10 most probable if there are more


@dataclass(frozen=True)
class AlignedWords(_Weighed):
    """A word of a premise and the word of the hypothesis that it is aligned with; the rest as in `SelectedWord`."""

    premise: str
    hypothesis: str
    premise_index: int
    premise_start: int
    premise_end: int
    hypothesis_index: int
    hypothesis_start: int
    hypothesis_end: int
    weight: float | None = None
    direction: str | None = None
    by_class: dict[Label, float] | None = None


AnyWord = SelectedWord | AlignedWords


def selected_word(tokens: Sequence[str], offsets: Sequence[tuple[int, int]], index: int, **weight: Any) -> SelectedWord:
    return SelectedWord(tokens[index], index, *offsets[index], **weight)


def aligned_words(
    tokens: tuple[Sequence[str], Sequence[str]],
    offsets: tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]],
    pair: tuple[int, int],
    **weight: Any,
) -> AlignedWords:
    i, j = pair
    return AlignedWords(tokens[0][i], tokens[1][j], i, *offsets[0][i], j, *offsets[1][j], **weight)


def describe_direction(
    weight: float, label: Label, classes: Sequence[Label] | None, *, smallest: float = SMALLEST
) -> str:
    """Return what a word with this weight speaks for; `classes` is None for regression."""
    if not (abs(weight) >= smallest and weight):
        return NO_EFFECT
    if classes is None:
        return "raises the value" if weight > 0 else "lowers the value"
    if len(classes) == 2:
        other = classes[1] if label == classes[0] else classes[0]
        return f"for {label_text(label if weight > 0 else other)}"
    return f"{'for' if weight > 0 else 'against'} {label_text(label)}"


def label_text(label: Any) -> str:
    if isinstance(label, tuple):  # of several labels those that the text has
        return ", ".join(map(label_text, label)) or "no label"
    if isinstance(label, dict):  # of several targets
        return ", ".join(f"{name}: {label_text(value)}" for name, value in label.items())
    if isinstance(label, Real) and not isinstance(label, Integral):
        return f"{float(label):.4g}"
    return str(label)
