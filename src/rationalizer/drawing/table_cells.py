"""An explanation as the cells that a table gets beside its own columns."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from rationalizer.drawing.explanation import AnyExplanation, Explanation

OF_TEXTS = ("predicted", "probability", "rationale", "spans")
OF_PAIRS = ("predicted", "probability", "alignment", "words")


def cell_names(taken: Collection[Any], *, pairs: bool) -> list[str]:
    """What the added columns are called: a name that the table has already gets a number."""
    names: list[str] = []
    for name in OF_PAIRS if pairs else OF_TEXTS:
        number = 1
        while (unique := name if number == 1 else f"{name}_{number}") in taken:
            number += 1
        names.append(unique)
    return names


def cells_of(explanation: AnyExplanation | None) -> list[Any]:
    """The label, its probability, and what it rests on; four times nothing where nothing could be explained."""
    if explanation is None:
        return [None] * len(OF_TEXTS)
    probability = max(explanation.probabilities.values()) if explanation.probabilities else None
    if isinstance(explanation, Explanation):
        rationale = " ... ".join(explanation.text[start:end] for start, end in explanation.spans)
        return [explanation.label, probability, rationale, [list(span) for span in explanation.spans]]
    alignment = " ".join(f"{i}-{j}" for i, j in explanation.pairs)
    words = " ".join(f"{one}-{other}" for one, other in explanation.words)
    return [explanation.label, probability, alignment, words]
