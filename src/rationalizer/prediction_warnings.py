"""Warnings that belong to single predictions, and their summary for many texts."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rationalizer.constraints import ConstraintConflict, Constraints
from rationalizer.constraints.base import list_constraints
from rationalizer.drawing import AnyExplanation, Explanation, Label
from rationalizer.drawing.selected_words import label_text
from rationalizer.text import AnyExample, Budget
from rationalizer.text.errors import short_repr
from rationalizer.text.language import Languages
from rationalizer.text.token_kinds import KNOWN


class Settings(Protocol):
    """The settings under which a rationale was selected."""

    @property
    def pairs(self) -> bool: ...
    @property
    def constraints(self) -> Constraints: ...
    @property
    def budget(self) -> Budget: ...


class WordKinds(Protocol):
    """Knows the kinds of words, as encoders do."""

    def kinds(self, tokens: Iterable[str]) -> NDArray[Any]: ...


def prediction_warnings(
    example: AnyExample,
    weights: NDArray[Any],
    config: Settings,
    encoder: WordKinds,
    languages: Languages,
    *,
    smallest: Callable[[AnyExample], tuple[Budget, int] | None] | None = None,
) -> tuple[str, ...]:
    """Return a sentence for each reason why the prediction for this text is only a guess.

    `weights` is the rationale of the text, 0 for the words that were not selected; `config` has the constraints under
    which it was selected; `languages` are those of the training texts; `smallest` finds the smallest budget under which
    anything is selected, see `smallest_budget`.
    """
    found = []
    sides = tuple(zip(("premise", "hypothesis") if config.pairs else ("text",), example.texts, strict=True))
    for name, text in sides:
        if language := languages.other_language(text):
            found.append(
                f"The {name} seems to be in {language}, but the model was trained on texts in {languages.names}; the "
                "prediction may be a guess."
            )
    unknown = [name for name, text in sides if not (encoder.kinds(text.tokens) == KNOWN).any()]
    if unknown:
        found.append(f"The model knows none of the words of the {' or the '.join(unknown)}; the prediction is a guess.")
    if weights.any():
        return tuple(found)
    if config.constraints:
        remedy = "Raise the budget." if smallest is None else _remedy(config, smallest(example))
        found.append(f"No word is selected under {_describe(config)}; the prediction is a guess. {remedy}")
    elif not unknown:
        found.append("No words are aligned." if config.pairs else "No word is selected; the prediction is a guess.")
    return tuple(found)


def abstain(explanation: AnyExplanation, threshold: float) -> AnyExplanation:
    """Return the explanation, with a further warning if its label has a lower probability."""
    if explanation.probabilities is None:
        raise ValueError("a regression has no probabilities; leave --abstain out")
    if max(explanation.probabilities.values()) >= threshold:
        return explanation
    sentence = f"The probability is below {threshold:g}: the model abstains."
    return replace(explanation, warnings=(*explanation.warnings, sentence))


def _remedy(config: Settings, needed: tuple[Budget, int] | None) -> str:
    if needed is None:
        return "No budget helps: change the constraints."
    budget, count = needed
    unit = "pair" if config.pairs else "word"
    words = "" if budget.kind == "count" else f" ({count} {unit}{'' if count == 1 else 's'})"
    return f"Raise the budget to at least {budget.describe(unit)}{words}."


def smallest_budget(budget: Budget, selectable: int, selects: Callable[[Budget], Any]) -> tuple[Budget, int] | None:
    """Return the smallest budget above `budget` under which anything is selected, and how many words (or pairs) it is.

    A share is rounded up to whole percents. A larger budget allows every selection that a smaller one allows, so the
    search is by bisection. None: there is no such budget.

    Args:
        budget: the one under which nothing is selected.
        selectable: the number of words of the text; of the shorter one, for pairs.
        selects: selects under another budget.
    """

    def works(words: int) -> bool:
        try:
            return bool(np.any(selects(Budget.count(words))))
        except ConstraintConflict:
            return False

    low, high = budget.bounds_for(selectable)[1], selectable
    if low >= high or not works(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    if budget.kind == "count":
        return Budget.count(high), high
    shares = (Budget.share(percent / 100) for percent in range(1, 101))
    return next(share for share in shares if share.bounds_for(selectable)[1] >= high), high


def changed_label_warning(label: Label, config: Settings, own_label: Label, own: Settings) -> tuple[str, ...]:
    """Return a sentence if the label differs from that with the model's own settings."""
    if label == own_label:
        return ()
    return (
        f"The label depends on the settings: {label_text(label)} under {_describe(config)}, {label_text(own_label)} "
        f"with the model's own settings ({_describe(own)}).",
    )


def _describe(config: Settings) -> str:
    budget = f"a budget of {config.budget.describe('pair' if config.pairs else 'word')}"
    return " and ".join(filter(None, (list_constraints(config.constraints), budget)))


class WarningSummary:
    """Collects the warnings of many predictions and reports each distinct sentence once.

    >>> summary = WarningSummary()
    >>> summary.add("A good film.", ())
    >>> summary.add("Xyzzy!", ["The model knows none of the words of the text."])
    >>> str(summary)
    "1 of 2 texts (first: text 2, 'Xyzzy!'): The model knows none of the words of the text."
    """

    def __init__(self, explanations: Iterable[AnyExplanation] = ()) -> None:
        self.texts = 0
        self._first: dict[str, str] = {}
        self._counts = Counter[str]()
        self.add_explanations(explanations)

    def add(self, text: str, warnings: Iterable[str]) -> None:
        self.texts += 1
        for sentence in warnings:
            self._first.setdefault(sentence, f"text {self.texts}, {short_repr(text)}")
            self._counts[sentence] += 1

    def add_explanations(self, explanations: Iterable[AnyExplanation]) -> None:
        for one in explanations:
            self.add(one.text if isinstance(one, Explanation) else f"{one.premise} / {one.hypothesis}", one.warnings)

    def __str__(self) -> str:
        """One line for each distinct warning; empty if there are none. A single text needs no number."""
        if self.texts == 1:
            return "\n".join(self._counts)
        return "\n".join(
            f"{count} of {self.texts} texts (first: {self._first[sentence]}): {sentence}"
            for sentence, count in self._counts.items()
        )

    def emit(self, stacklevel: int) -> None:
        """Emit one Python warning if there is anything to report; `stacklevel` counts from the caller, as 1."""
        if self._counts:
            warnings.warn(str(self), stacklevel=stacklevel + 1)
