"""The columns that explanations add to a table: label, probabilities, rationale, words, warnings.

A column that is also a field of `Explanation` has its content.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rationalizer.drawing.explanation import AnyExplanation, Explanation, LabelExplanation
from rationalizer.drawing.selected_words import Label, label_text

MAX_CLASSES = 10  # with a column of their own; of more classes, one column has the most probable ones


def result_columns(
    existing: Collection[Any],
    *,
    pairs: bool,
    classes: Sequence[Label] | None,
    several: bool = False,
    targets: Mapping[str, Sequence[str]] | None = None,
    separate: bool = False,
    record: bool = False,
) -> list[str]:
    """The names of the added columns; a name that already exists gets a number.

    Args:
        existing: the names of the table's columns.
        pairs: whether the explanations are of pairs.
        classes: the classes or labels; None for regression and several targets.
        several: whether a text has several labels.
        targets: of several targets the classes by name, none for values.
        separate: whether each label, target or class has a rationale of its own.
        record: whether there are decision records.
    """
    selected = ["pairs"] if pairs else ["rationale", "spans"]
    selected += _rationale_columns([*targets] if targets else classes) if separate else []
    if targets:
        predicted = [f"predicted_{name}" for name in targets]
        predicted += [f"probability_{name}" for name, own in targets.items() if own]
    else:
        predicted = ["predicted", *([] if several else ["probability"]), *_class_columns(classes, several)]
    added = [*predicted, *selected, "words", "warnings"]
    names: list[str] = []
    for name in [*added, "record"] if record else added:
        number = 1
        while (unique := name if number == 1 else f"{name}_{number}") in existing:
            number += 1
        names.append(unique)
    return names


def _class_columns(classes: Sequence[Label] | None, several: bool) -> list[str]:
    if classes is None or (len(classes) == 1 and not several):
        return []
    if len(classes) > MAX_CLASSES:
        return ["top_probabilities"]
    return [f"probability_{label_text(label)}" for label in classes]


def _rationale_columns(names: Sequence[Label] | None) -> list[str]:
    if names is not None and len(names) <= MAX_CLASSES:
        return [f"rationale_{label_text(name)}" for name in names]
    return ["rationales"]


def result_values(
    explanation: AnyExplanation | None,
    *,
    pairs: bool,
    classes: Sequence[Label] | None,
    several: bool = False,
    targets: Mapping[str, Sequence[str]] | None = None,
    separate: bool = False,
    record: bool = False,
) -> list[Any]:
    """The values of the added columns; all None if nothing could be explained. For arguments see `result_columns`."""
    if explanation is None:
        form: dict[str, Any] = {"several": several, "targets": targets, "separate": separate, "record": record}
        return [None] * len(result_columns((), pairs=pairs, classes=classes, **form))
    p = explanation.probabilities
    if targets:
        assert isinstance(explanation, Explanation)
        values: list[Any] = [one.value for one in explanation.labels]
        values += [one.probability for one in explanation.labels if one.probabilities is not None]
    elif several:
        assert isinstance(explanation, Explanation)
        values = [list(map(label_text, explanation.label)), *_class_values(p, several)]
    else:
        values = [explanation.label, max(p.values()) if p else None, *_class_values(p, several)]
    if isinstance(explanation, Explanation):
        values += [explanation.rationale, [list(span) for span in explanation.spans]]
        values += _rationale_values(explanation) if separate else []
    else:
        values += [[list(pair) for pair in explanation.pairs]]
    words = [word.to_dict() for word in explanation.words]
    for word in words:
        del word["by_class"]
    values += [words, " ".join(explanation.warnings) or None]
    return [*values, explanation.record.to_json()] if record else values


def _class_values(p: dict[Label, float] | None, several: bool) -> list[Any]:
    if p is None or (len(p) == 1 and not several):
        return []
    if len(p) <= MAX_CLASSES:
        return list(p.values())
    return [{label_text(label): p[label] for label in sorted(p, key=lambda label: -p[label])[:MAX_CLASSES]}]


def _rationale_values(explanation: Explanation) -> list[Any]:
    """The rationale of each label; of many labels, of those that the text has, and the predicted class."""

    def rationale(one: LabelExplanation) -> str:
        return explanation.rationale_of(one.name)

    if len(explanation.labels) <= MAX_CLASSES:
        return [rationale(one) for one in explanation.labels]
    return [{label_text(one.name): rationale(one) for one in explanation.labels if one.value is not False}]
