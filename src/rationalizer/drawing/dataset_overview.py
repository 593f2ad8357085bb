"""Overview of a model on a whole dataset: what it selects for which class, accuracy and confidence, notable texts.

`overview` computes it once; the report, the web page and the terminal draw it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from rationalizer.drawing.explanation import AnyExplanation, Explanation, PairExplanation
from rationalizer.drawing.selected_words import Label, label_text
from rationalizer.metrics import Calibration, ClassScores, WordUse, calibration, class_scores, confusions, word_use

Unit = tuple[str, ...]  # a word; for pairs of texts, two aligned words
CONTEXT = 12  # words to show on either side of a selected word
MOST_GROUPS = 25  # predictions with words and examples, of hundreds of classes


@dataclass(frozen=True)
class PredictionGroup:
    """The texts with one prediction, and the words selected in them."""

    name: str
    texts: int
    words: tuple[WordUse[Unit], ...]  # the most characteristic ones first


def most_frequent(groups: Sequence[PredictionGroup]) -> list[PredictionGroup]:
    """The groups with the most texts, as many as a reader can look at, in their order."""
    chosen = sorted(range(len(groups)), key=lambda k: -groups[k].texts)[:MOST_GROUPS]
    return [groups[k] for k in sorted(chosen)]


@dataclass(frozen=True)
class ClassResults:
    """Comparison of predictions with the true classes."""

    names: tuple[str, ...]
    by_class: tuple[ClassScores, ...]
    confusions: NDArray[np.int64]  # (classes, classes): rows are true classes, columns predicted ones
    calibration: Calibration


@dataclass(frozen=True)
class Overview:
    """Word groups, class results and notable texts of a dataset. Texts are identified by their indices."""

    groups: tuple[PredictionGroup, ...]  # by predicted class; for regression, the lower and the upper half
    class_results: ClassResults | None  # for classification with known labels
    # For each predicted class, the most confident predictions, correct ones if that is known; for values, the smallest
    # errors.
    best: tuple[int, ...]
    surprising: tuple[int, ...]  # wrong predictions with the lowest probability of the true class, or largest errors
    uncertain: tuple[int, ...]  # predictions with the lowest confidence


def overview(
    explanations: Sequence[AnyExplanation], truths: Sequence[Label] | None = None, *, examples: int = 4
) -> Overview:
    """Compute the overview of the predictions for a dataset.

    Args:
        explanations: of its texts, or pairs of texts.
        truths: their true labels, if known.
        examples: number of texts of each kind.
    """
    if truths is not None and len(truths) != len(explanations):
        raise ValueError(f"{len(explanations)} explanations, but {len(truths)} true labels")
    if not explanations:
        return Overview((), None, (), (), ())
    groups = _groups(explanations)
    if any(one.probabilities is None for one in explanations):
        order = [] if truths is None else _by_error(explanations, truths)
        return Overview(groups, None, tuple(order[:examples]), tuple(order[: -examples - 1 : -1]), ())
    confidence = np.array([max((one.probabilities or {}).values()) for one in explanations])
    uncertain = tuple(np.argsort(confidence, kind="stable")[:examples].tolist())
    predicted = [label_text(one.label) for one in explanations]
    by_confidence = np.argsort(-confidence, kind="stable").tolist()
    if truths is None:
        return Overview(groups, None, _of_each_class(by_confidence, predicted, groups, examples), (), uncertain)
    true = [label_text(truth) for truth in truths]
    correct = np.array(predicted) == np.array(true)
    true_probability = np.array([_true_probability(one, truth) for one, truth in zip(explanations, true, strict=True)])
    best = _of_each_class([k for k in by_confidence if correct[k]], predicted, groups, examples)
    surprising = [k for k in np.argsort(true_probability, kind="stable").tolist() if not correct[k]]
    names = tuple(dict.fromkeys([*map(label_text, explanations[0].probabilities or ()), *true, *predicted]))
    class_results = ClassResults(
        names,
        tuple(class_scores(true, predicted, names)),
        confusions(true, predicted, names),
        calibration(confidence.tolist(), correct.tolist()),
    )
    return Overview(groups, class_results, best, tuple(surprising[:examples]), uncertain)


def _of_each_class(
    order: Sequence[int], predicted: Sequence[str], groups: Sequence[PredictionGroup], examples: int
) -> tuple[int, ...]:
    """The first texts of each predicted class, of many the most frequent ones: about `examples` in all, but at least
    one of each."""
    count = max(1, examples // max(len(groups), 1))
    return tuple(k for group in most_frequent(groups) for k in [k for k in order if predicted[k] == group.name][:count])


def _true_probability(explanation: AnyExplanation, truth: str) -> float:
    """The probability of the true class."""
    return next((p for label, p in (explanation.probabilities or {}).items() if label_text(label) == truth), 0.0)


def _by_error(explanations: Sequence[AnyExplanation], truths: Sequence[Label]) -> list[int]:
    errors = [abs(float(one.label) - float(truth)) for one, truth in zip(explanations, truths, strict=True)]
    return np.argsort(errors, kind="stable").tolist()


def _groups(explanations: Sequence[AnyExplanation]) -> tuple[PredictionGroup, ...]:
    if any(one.probabilities is None for one in explanations):
        middle = float(np.median([float(one.label) for one in explanations]))
        below, above = f"up to {label_text(middle)}", f"above {label_text(middle)}"
        names = [below if float(one.label) <= middle else above for one in explanations]
        order = [below, above]
    else:
        names = [label_text(one.label) for one in explanations]
        order = [label_text(label) for label in explanations[0].probabilities or ()]
    selected = [selected_units(one) for one in explanations]
    units = frozenset().union(*selected)
    uses = word_use(selected, [seen_units(one, units) for one in explanations], names)
    return tuple(PredictionGroup(name, names.count(name), tuple(uses[name])) for name in order if name in uses)


def selected_units(explanation: AnyExplanation) -> frozenset[Unit]:
    """The selected words, or pairs of aligned words."""
    if isinstance(explanation, PairExplanation):
        return frozenset((word.premise.casefold(), word.hypothesis.casefold()) for word in explanation.words)
    return frozenset((word.text.casefold(),) for word in explanation.words)


def seen_units(explanation: AnyExplanation, units: frozenset[Unit]) -> frozenset[Unit]:
    """Those of `units` that the text contains."""
    if isinstance(explanation, PairExplanation):
        sides = (
            {t.casefold() for t in explanation.premise_tokens},
            {t.casefold() for t in explanation.hypothesis_tokens},
        )
        return frozenset(product(*sides)) & units
    return frozenset((token.casefold(),) for token in explanation.tokens) & units


def unit_text(unit: Unit) -> str:
    return " – ".join(unit)


def excerpt(explanation: AnyExplanation, unit: Unit) -> AnyExplanation:
    """The words around the first selection of the unit; a pair is returned as a whole."""
    if isinstance(explanation, PairExplanation):
        return explanation
    (word,) = unit
    positions = [
        k for k, token in enumerate(explanation.tokens) if explanation.selected[k] and token.casefold() == word
    ]
    first, last = max(0, positions[0] - CONTEXT), min(len(explanation.tokens), positions[0] + CONTEXT + 1)
    return _slice(explanation, first, last)


def _slice(explanation: Explanation, first: int, last: int) -> Explanation:
    """Tokens `first` to `last`, with an ellipsis for omitted text."""
    start = 0 if first == 0 else explanation.offsets[first][0]
    end = len(explanation.text) if last == len(explanation.tokens) else explanation.offsets[last - 1][1]
    before, after = "… " if start else "", " …" if end < len(explanation.text) else ""
    shift = len(before) - start
    return replace(
        explanation,
        text=before + explanation.text[start:end] + after,
        tokens=explanation.tokens[first:last],
        offsets=tuple((a + shift, b + shift) for a, b in explanation.offsets[first:last]),
        mask=explanation.mask[first:last],
        selected=explanation.selected[first:last],
        spans=tuple((a + shift, b + shift) for a, b in explanation.spans if start <= a and b <= end),
        annotation=None if explanation.annotation is None else explanation.annotation[first:last],
        unknown=explanation.unknown[first:last],
        counted=explanation.counted[first:last],
        labels=(),
        words=tuple(
            replace(word, index=word.index - first, start=word.start + shift, end=word.end + shift)
            for word in explanation.words
            if first <= word.index < last
        ),
    )
