"""A model on a whole dataset: what it selects for which class, how right and how sure it is, which texts to look at.

`overview` computes all of it once; the report, the web page and the terminal draw what it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from rationalizer.drawing.captions import label_text
from rationalizer.drawing.explanation import AnyExplanation, Explanation, Label, PairExplanation
from rationalizer.metrics import Calibration, ClassScores, WordUse, calibration, class_scores, confusions, word_use

Unit = tuple[str, ...]  # a word; of pairs of texts, two words that were aligned
AROUND = 12  # words to show on either side of one that is looked up


@dataclass(frozen=True)
class Group:
    """The texts with one prediction, and what was selected in them."""

    name: str
    texts: int
    words: tuple[WordUse[Unit], ...]  # those first that are most its own


@dataclass(frozen=True)
class ClassResults:
    """Predictions beside the true classes."""

    names: tuple[str, ...]
    by_class: tuple[ClassScores, ...]
    confusions: NDArray[np.int64]  # (classes, classes): the row's class was taken for the column's
    calibration: Calibration


@dataclass(frozen=True)
class Overview:
    """Explanations are meant by their numbers, counted from 0."""

    groups: tuple[Group, ...]  # by predicted class; of values, the lower and the upper half
    class_results: ClassResults | None  # of classes that are known
    best: tuple[int, ...]  # the right ones that the model was surest of, or the values that are closest
    surprising: tuple[
        int, ...
    ]  # wrong ones by how little they gave the true class, or the values that are farthest off
    uncertain: tuple[int, ...]  # classes by how little the model was sure, right or wrong


def overview(
    explanations: Sequence[AnyExplanation], truths: Sequence[Label] | None = None, *, examples: int = 4
) -> Overview:
    """What there is to see in the predictions for a whole dataset.

    Args:
        explanations: of its texts, or pairs of texts.
        truths: their true labels, if known.
        examples: how many texts to name of each kind.
    """
    if truths is not None and len(truths) != len(explanations):
        raise ValueError(f"{len(explanations)} explanations have {len(truths)} true labels; give one for each")
    if not explanations:
        return Overview((), None, (), (), ())
    groups = _groups(explanations)
    if any(one.probabilities is None for one in explanations):
        order = [] if truths is None else _by_error(explanations, truths)
        return Overview(groups, None, tuple(order[:examples]), tuple(order[: -examples - 1 : -1]), ())
    sure = np.array([max((one.probabilities or {}).values()) for one in explanations])
    uncertain = tuple(np.argsort(sure, kind="stable")[:examples].tolist())
    if truths is None:
        return Overview(groups, None, (), (), uncertain)
    predicted, true = [label_text(one.label) for one in explanations], [label_text(truth) for truth in truths]
    right = np.array(predicted) == np.array(true)
    given = np.array([_given(one, truth) for one, truth in zip(explanations, true, strict=True)])
    best = [k for k in np.argsort(-sure, kind="stable").tolist() if right[k]]
    surprising = [k for k in np.argsort(given, kind="stable").tolist() if not right[k]]
    names = tuple(dict.fromkeys([*map(label_text, explanations[0].probabilities or ()), *true, *predicted]))
    class_results = ClassResults(
        names,
        tuple(class_scores(true, predicted, names)),
        confusions(true, predicted, names),
        calibration(sure.tolist(), right.tolist()),
    )
    return Overview(groups, class_results, tuple(best[:examples]), tuple(surprising[:examples]), uncertain)


def _given(explanation: AnyExplanation, truth: str) -> float:
    """The probability of the true class."""
    return next((p for label, p in (explanation.probabilities or {}).items() if label_text(label) == truth), 0.0)


def _by_error(explanations: Sequence[AnyExplanation], truths: Sequence[Label]) -> list[int]:
    off = [abs(float(one.label) - float(truth)) for one, truth in zip(explanations, truths, strict=True)]
    return np.argsort(off, kind="stable").tolist()


def _groups(explanations: Sequence[AnyExplanation]) -> tuple[Group, ...]:
    if any(one.probabilities is None for one in explanations):
        middle = float(np.median([float(one.label) for one in explanations]))
        below, above = f"up to {label_text(middle)}", f"above {label_text(middle)}"
        names = [below if float(one.label) <= middle else above for one in explanations]
        order = [below, above]
    else:
        names = [label_text(one.label) for one in explanations]
        order = [label_text(label) for label in explanations[0].probabilities or ()]
    selected = [_selected(one) for one in explanations]
    wanted = frozenset().union(*selected)
    found = word_use(selected, [_seen(one, wanted) for one in explanations], names)
    return tuple(Group(name, names.count(name), tuple(found[name])) for name in order if name in found)


def _selected(explanation: AnyExplanation) -> frozenset[Unit]:
    if isinstance(explanation, PairExplanation):
        return frozenset((p.casefold(), h.casefold()) for p, h in explanation.words)
    return frozenset(
        (token.casefold(),)
        for token, chosen, word in zip(explanation.tokens, explanation.selected, explanation.counted, strict=True)
        if chosen and word
    )


def _seen(explanation: AnyExplanation, wanted: frozenset[Unit]) -> frozenset[Unit]:
    """What is there to be selected, of what is selected anywhere."""
    if isinstance(explanation, PairExplanation):
        sides = (
            {t.casefold() for t in explanation.premise_tokens},
            {t.casefold() for t in explanation.hypothesis_tokens},
        )
        return frozenset(product(*sides)) & wanted
    return frozenset((token.casefold(),) for token in explanation.tokens) & wanted


def unit_text(unit: Unit) -> str:
    return " – ".join(unit)


def excerpt(explanation: AnyExplanation, unit: Unit) -> AnyExplanation:
    """The words around the first place where the unit is selected; a pair is short enough as it is."""
    if isinstance(explanation, PairExplanation):
        return explanation
    (word,) = unit
    places = [k for k, token in enumerate(explanation.tokens) if explanation.selected[k] and token.casefold() == word]
    first, last = max(0, places[0] - AROUND), min(len(explanation.tokens), places[0] + AROUND + 1)
    return _cut_out(explanation, first, last)


def _cut_out(explanation: Explanation, first: int, last: int) -> Explanation:
    """Tokens `first` to `last`, an ellipsis where something is left out."""
    start = 0 if first == 0 else explanation.offsets[first][0]
    end = len(explanation.text) if last == len(explanation.tokens) else explanation.offsets[last - 1][1]
    before, after = "… " if start else "", " …" if end < len(explanation.text) else ""
    shift = len(before) - start
    return replace(
        explanation,
        text=before + explanation.text[start:end] + after,
        tokens=explanation.tokens[first:last],
        offsets=tuple((a + shift, b + shift) for a, b in explanation.offsets[first:last]),
        weights=explanation.weights[first:last],
        selected=explanation.selected[first:last],
        spans=tuple((a + shift, b + shift) for a, b in explanation.spans if start <= a and b <= end),
        annotation=None if explanation.annotation is None else explanation.annotation[first:last],
        unknown=explanation.unknown[first:last],
        counted=explanation.counted[first:last],
    )
