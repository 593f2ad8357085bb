"""The columns that explanations add to a table: label, probabilities, rationale, words, warnings.

A column that is also a field of `Explanation` has its content.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from rationalizer.drawing.explanation import AnyExplanation, Explanation
from rationalizer.drawing.selected_words import Label, label_text

MAX_CLASSES = 10  # with a column of their own; of more classes, one column has the most probable ones


def result_columns(
    existing: Collection[Any], *, pairs: bool, classes: Sequence[Label] | None, record: bool = False
) -> list[str]:
    """The names of the added columns; a name that already exists gets a number. `classes` is None for regression."""
    selected = ["pairs"] if pairs else ["rationale", "spans"]
    added = ["predicted", "probability", *_class_columns(classes), *selected, "words", "warnings"]
    names: list[str] = []
    for name in [*added, "record"] if record else added:
        number = 1
        while (unique := name if number == 1 else f"{name}_{number}") in existing:
            number += 1
        names.append(unique)
    return names


def _class_columns(classes: Sequence[Label] | None) -> list[str]:
    if classes is None or len(classes) == 1:
        return []
    if len(classes) > MAX_CLASSES:
        return ["top_probabilities"]
    return [f"probability_{label_text(label)}" for label in classes]


def result_values(
    explanation: AnyExplanation | None, *, pairs: bool, classes: Sequence[Label] | None, record: bool = False
) -> list[Any]:
    """The values of the added columns; all None if nothing could be explained."""
    if explanation is None:
        return [None] * len(result_columns((), pairs=pairs, classes=classes, record=record))
    p = explanation.probabilities
    values = [explanation.label, max(p.values()) if p else None, *_class_values(p)]
    if isinstance(explanation, Explanation):
        values += [explanation.rationale, [list(span) for span in explanation.spans]]
    else:
        values += [[list(pair) for pair in explanation.pairs]]
    words = [word.to_dict() for word in explanation.words]
    for word in words:
        del word["by_class"]
    values += [words, " ".join(explanation.warnings) or None]
    return [*values, explanation.record.to_json()] if record else values


def _class_values(p: dict[Label, float] | None) -> list[Any]:
    if p is None or len(p) == 1:
        return []
    if len(p) <= MAX_CLASSES:
        return list(p.values())
    return [{label_text(label): p[label] for label in sorted(p, key=lambda label: -p[label])[:MAX_CLASSES]}]
