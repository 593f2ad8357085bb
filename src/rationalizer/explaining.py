"""From a prediction and its selection to an explanation, for models with and without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rationalizer.constraints import ConstraintConflict
from rationalizer.data import InputRow
from rationalizer.data.bad_rows import SKIP_REMEDY
from rationalizer.drawing import AnyExplanation, Explanation, Label, PairExplanation
from rationalizer.prediction_warnings import WordKinds
from rationalizer.text import AnyExample, PairExample
from rationalizer.text.token_kinds import UNKNOWN


class WordFacts(WordKinds, Protocol):
    """What an explanation needs to know of a model's encoder."""

    def counted(self, tokens: Sequence[str]) -> NDArray[np.bool_]: ...


def make_explanation(
    example: AnyExample,
    output: NDArray[np.float32],
    weights: NDArray[np.float32],
    *,
    classes: Sequence[Label] | None,
    encoder: WordFacts,
    faithful: bool = True,
    warnings: tuple[str, ...] = (),
    record: Any = None,
) -> AnyExplanation:
    """Return the explanation of a prediction.

    Args:
        example: the text or the pair.
        output: probabilities, or the value.
        weights: of the tokens, or of the pairs of tokens; 0 if not selected.
        classes: as the user wrote them; None for a regression.
        encoder: knows which words are known, and which count towards the budget.
        faithful: for pairs, whether the premise is read only through the alignment.
        warnings: why the prediction may be a guess.
        record: the decision record.
    """

    def unknown(tokens: Sequence[str]) -> tuple[bool, ...]:
        return tuple((encoder.kinds(tokens) == UNKNOWN).tolist())

    common: dict[str, Any] = {
        "label": float(output) if classes is None else classes[int(output.argmax())],
        "probabilities": dict(zip(classes, output.tolist(), strict=True)) if classes else None,
        "warnings": warnings,
        "record": record,
    }
    if isinstance(example, PairExample):
        return PairExplanation(
            premise=example.premise.text,
            hypothesis=example.hypothesis.text,
            premise_tokens=example.premise.tokens,
            premise_offsets=example.premise.offsets,
            hypothesis_tokens=example.hypothesis.tokens,
            hypothesis_offsets=example.hypothesis.offsets,
            alignment=weights,
            pairs=tuple((int(i), int(j)) for i, j in np.argwhere(weights)),
            faithful=faithful,
            annotation=example.alignment,
            premise_unknown=unknown(example.premise.tokens),
            hypothesis_unknown=unknown(example.hypothesis.tokens),
            **common,
        )
    selected = weights != 0
    return Explanation(
        text=example.text,
        tokens=example.tokens,
        offsets=example.offsets,
        weights=tuple(weights.tolist()),
        selected=tuple(selected.tolist()),
        spans=_character_spans(selected, example.offsets),
        annotation=example.annotation,
        unknown=unknown(example.tokens),
        counted=tuple(encoder.counted(example.tokens).tolist()),
        **common,
    )


def _character_spans(selected: NDArray[np.bool_], offsets: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Character spans of the runs of selected tokens."""
    edges = np.flatnonzero(np.diff(selected, prepend=False, append=False)).tolist()
    return tuple((offsets[first][0], offsets[end - 1][1]) for first, end in zip(edges[::2], edges[1::2], strict=True))


def as_label(name: str, kind: Literal["str", "int", "float", "bool"]) -> Label:
    """The label of a class, of the type that it had in training."""
    if kind == "bool":
        return name == "true"
    return {"int": int, "float": float, "str": str}[kind](name)


def conflict_in_row(error: ConstraintConflict, row: InputRow) -> ConstraintConflict:
    """The same conflict, in a row of a file."""
    remedy = error.remedy if row.number is None else f"{error.remedy}, or {SKIP_REMEDY}"
    return ConstraintConflict(error.problem, remedy, place=row.place or error.place)
