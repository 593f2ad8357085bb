"""Overview of a model with several labels or targets: scores and selected words of each, and notable texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rationalizer.drawing.dataset_overview import Overview, PredictionGroup, Unit, seen_units
from rationalizer.drawing.explanation import Explanation, LabelExplanation
from rationalizer.drawing.html import HtmlTable
from rationalizer.drawing.selected_words import Label, label_text
from rationalizer.metrics import METRICS, word_use

MAX_LABELS = 25  # in tables of terminals and model cards
HEADINGS = {
    "micro_f1": "F1",
    "macro_f1": "macro-F1",
    "label_precision": "precision",
    "label_recall": "recall",
    "average_precision": "average precision",
    "accuracy": "accuracy",
    "mse": "squared error",
    "r2": "R²",
    "size": "rationale size",
    "token_f1": "token-F1",
    "iou_f1": "IOU-F1",
    "auprc": "AUPRC",
}


def label_table(by_label: Mapping[str, Mapping[str, float]], *, most: int | None = None) -> HtmlTable:
    """The scores of each label or target; of more than `most` labels the first ones."""
    shown = {name: head for name, head in HEADINGS.items() if any(name in scores for scores in by_label.values())}
    if "micro_f1" in shown:
        shown.pop("accuracy", None)  # that of a rare label says nothing
    lines = [
        [label, *(METRICS[name].format_value(scores[name]) if name in scores else "" for name in shown)]
        for label, scores in by_label.items()
    ]
    return HtmlTable(("label", *shown.values()), lines).first(most)


def label_overview(
    explanations: Sequence[Explanation], truths: Sequence[Label] | None = None, *, examples: int = 4
) -> Overview:
    """Compute the overview of the predictions of several labels or targets; see `dataset_overview.overview`."""
    best: list[int] = []
    surprising: list[int] = []
    if truths is not None:
        errors = _errors(explanations, truths)
        order = np.argsort(errors, kind="stable").tolist()
        wrong = [k for k in reversed(order) if explanations[k].label != truths[k]]
        best, surprising = order[:examples], wrong[:examples]
    return Overview(_groups(explanations), None, tuple(best), tuple(surprising), ())


def _groups(explanations: Sequence[Explanation]) -> tuple[PredictionGroup, ...]:
    """The words selected for each label in the texts that have it, by their prediction; for targets for each class, or
    for lower and higher values."""
    middles = _middles(explanations)
    names: list[str] = []
    owners: list[int] = []  # the text of each name
    selected: list[frozenset[Unit]] = []
    for number, explanation in enumerate(explanations):
        for one in explanation.labels:
            if one.value is not False:
                names.append(_group_name(one, middles))
                owners.append(number)
                tokens = zip(explanation.tokens, one.selected, explanation.counted, strict=True)
                selected.append(frozenset((token.casefold(),) for token, chosen, word in tokens if chosen and word))
    if not names:
        return ()
    units = frozenset().union(*selected)
    seen = [seen_units(explanations[number], units) for number in owners]
    uses = word_use(selected, seen, names)
    return tuple(
        PredictionGroup(
            name,
            names.count(name),
            tuple(replace(use, documents=tuple(owners[k] for k in use.documents)) for use in uses[name]),
        )
        for name in sorted(set(names))
    )


def _middles(explanations: Sequence[Explanation]) -> dict[Label, float]:
    """The median of the predictions of each target with values."""
    values: dict[Label, list[float]] = {}
    for explanation in explanations:
        for one in explanation.labels:
            if isinstance(one.value, float):
                values.setdefault(one.name, []).append(one.value)
    return {name: float(np.median(each)) for name, each in values.items()}


def _group_name(one: LabelExplanation, middles: Mapping[Label, float]) -> str:
    name = label_text(one.name)
    if one.name in middles:
        middle = label_text(middles[one.name])
        return f"{name}: {'up to' if float(one.value) <= middles[one.name] else 'above'} {middle}"
    return name if isinstance(one.value, bool) else f"{name}: {label_text(one.value)}"


def _errors(explanations: Sequence[Explanation], truths: Sequence[Label]) -> list[float]:
    """By text the mean over labels of |truth − p|; over targets of 1 − p(true class), or of the error of a value
    relative to the standard deviation of the true ones."""
    spreads = _spreads(truths)
    errors = []
    for explanation, truth in zip(explanations, truths, strict=True):
        own: list[float] = []
        for one in explanation.labels:
            if isinstance(truth, tuple):
                own.append(abs((one.name in truth) - (one.probability or 0.0)))
            elif isinstance(truth, dict) and truth.get(one.name) is not None:
                given = truth[one.name]
                if one.probabilities is not None:
                    own.append(1 - one.probabilities.get(given, 0.0))
                else:
                    own.append(abs(float(one.value) - float(given)) / spreads[one.name])
        errors.append(float(np.mean(own)) if own else 0.0)
    return errors


def _spreads(truths: Sequence[Label]) -> dict[Label, float]:
    values: dict[Label, list[float]] = {}
    for truth in truths:
        given: dict[Label, Any] = truth if isinstance(truth, dict) else {}
        for name, value in given.items():
            if isinstance(value, float | int):
                values.setdefault(name, []).append(float(value))
    return {name: max(float(np.std(each)), 1e-9) for name, each in values.items()}
