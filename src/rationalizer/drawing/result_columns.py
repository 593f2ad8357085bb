"""The columns that explanations add to a table: label, probability, rationale, warnings."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from rationalizer.drawing.explanation import AnyExplanation, Explanation

TEXT_COLUMNS = ("predicted", "probability", "rationale", "spans", "warnings")
PAIR_COLUMNS = ("predicted", "probability", "alignment", "words", "warnings")


def result_columns(existing: Collection[Any], *, pairs: bool, record: bool = False) -> list[str]:
    """The names of the added columns; a name that already exists gets a number."""
    names: list[str] = []
    for name in (*(PAIR_COLUMNS if pairs else TEXT_COLUMNS), *(["record"] if record else [])):
        number = 1
        while (unique := name if number == 1 else f"{name}_{number}") in existing:
            number += 1
        names.append(unique)
    return names


def result_values(explanation: AnyExplanation | None, *, record: bool = False) -> list[Any]:
    """The label, its probability, the rationale in two forms, the warnings; all None if nothing could be explained.

    With `record`, the decision record as JSON comes last.
    """
    if record:
        return [*result_values(explanation), None if explanation is None else explanation.record.to_json()]
    if explanation is None:
        return [None] * len(TEXT_COLUMNS)
    probability = max(explanation.probabilities.values()) if explanation.probabilities else None
    warnings = " ".join(explanation.warnings) or None
    if isinstance(explanation, Explanation):
        return [
            explanation.label,
            probability,
            explanation.rationale,
            [list(span) for span in explanation.spans],
            warnings,
        ]
    alignment = " ".join(f"{i}-{j}" for i, j in explanation.pairs)
    words = " ".join(f"{one}-{other}" for one, other in explanation.words)
    return [explanation.label, probability, alignment, words, warnings]
