"""From a prediction and its selection to an explanation, for models with and without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rationalizer.constraints import ConstraintConflict
from rationalizer.data import InputRow
from rationalizer.data.bad_rows import SKIP_REMEDY
from rationalizer.drawing import AnyExplanation, Explanation, Label, LabelExplanation, PairExplanation
from rationalizer.drawing.result_columns import MAX_CLASSES
from rationalizer.drawing.selected_words import (
    SMALLEST,
    AnyWord,
    aligned_words,
    describe_direction,
    selected_word,
)
from rationalizer.prediction_warnings import WordKinds
from rationalizer.text import AnyExample, PairExample
from rationalizer.text.token_kinds import UNKNOWN
from rationalizer.word_support import selected_places


class WordFacts(WordKinds, Protocol):
    """What an explanation needs to know of a model's encoder."""

    def counted(self, tokens: Sequence[str]) -> NDArray[np.bool_]: ...


def make_explanation(
    example: AnyExample,
    output: NDArray[np.float32],
    mask: NDArray[np.float32],
    *,
    weights: NDArray[np.float64] | None = None,
    classes: Sequence[Label] | None,
    encoder: WordFacts,
    faithful: bool = True,
    warnings: tuple[str, ...] = (),
    record: Any = None,
    labels: tuple[LabelExplanation, ...] = (),
    label: Any = None,
) -> AnyExplanation:
    """Return the explanation of a prediction.

    Args:
        example: the text or the pair.
        output: probabilities, or the value.
        mask: the factors of the tokens, with several rationales in a row for each; or of the pairs of tokens; 0 if not
            selected.
        weights: of the selected words (or pairs) for each class, if they are known.
        classes: as the user wrote them; None for a regression.
        encoder: knows which words are known, and which count towards the budget.
        faithful: for pairs, whether the premise is read only through the alignment.
        warnings: why the prediction may be a guess.
        record: the decision record.
        labels: the explanations of several labels, targets or classes.
        label: what is predicted, if it is not one class or value.
    """

    def unknown(tokens: Sequence[str]) -> tuple[bool, ...]:
        return tuple((encoder.kinds(tokens) == UNKNOWN).tolist())

    separate = mask.ndim == 2 and not isinstance(example, PairExample)
    mask = mask.max(0) if separate else mask  # what is drawn is the union of several rationales
    if label is None:
        label = float(output) if classes is None else classes[int(output.argmax())]
    counted = None if isinstance(example, PairExample) else encoder.counted(example.tokens)
    common: dict[str, Any] = {
        "label": label,
        "probabilities": dict(zip(classes, output.tolist(), strict=True)) if classes else None,
        "words": tuple(_words(example, output, mask, weights, classes, counted)),
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
            alignment=mask,
            pairs=tuple((int(i), int(j)) for i, j in np.argwhere(mask)),
            faithful=faithful,
            annotation=example.alignment,
            premise_unknown=unknown(example.premise.tokens),
            hypothesis_unknown=unknown(example.hypothesis.tokens),
            **common,
        )
    assert counted is not None
    selected = mask != 0
    return Explanation(
        text=example.text,
        tokens=example.tokens,
        offsets=example.offsets,
        mask=tuple(mask.tolist()),
        selected=tuple(selected.tolist()),
        spans=character_spans(selected, example.offsets),
        annotation=example.annotation,
        unknown=unknown(example.tokens),
        counted=tuple(counted.tolist()),
        labels=labels,
        separate=separate,
        **common,
    )


def _words(
    example: AnyExample,
    output: NDArray[np.float32],
    mask: NDArray[np.float32],
    weights: NDArray[np.float64] | None,
    classes: Sequence[Label] | None,
    counted: NDArray[np.bool_] | None,
) -> list[AnyWord]:
    """The selected words, or aligned pairs of words; the largest weights first."""
    tokens, offsets = ([getattr(text, name) for text in example.texts] for name in ("tokens", "offsets"))
    words: list[AnyWord] = []
    places = selected_places(mask, counted)
    facts: Sequence[dict[str, Any]] = [{}] * len(places) if weights is None else _facts(classes, output, weights)
    for place, own in zip(places, facts, strict=True):
        if len(place) == 1:
            words.append(selected_word(tokens[0], offsets[0], place[0], **own))
        else:
            words.append(aligned_words((tokens[0], tokens[1]), (offsets[0], offsets[1]), (place[0], place[1]), **own))
    return sorted(words, key=lambda word: -abs(word.weight or 0.0))


def _facts(
    classes: Sequence[Label] | None, output: NDArray[np.float32], weights: NDArray[np.float64]
) -> list[dict[str, Any]]:
    """For each word its weight, its direction, and its weights for the most probable classes."""
    rows = [[float(f"{weight:.6g}") for weight in row] for row in weights.tolist()]  # the predictor: single precision
    if classes is None:
        value, smallest = float(output), SMALLEST * float(np.abs(weights).max())
        return [
            {"weight": own, "direction": describe_direction(own, value, None, smallest=smallest)} for (own,) in rows
        ]
    chosen = int(output.argmax())
    kept = sorted(np.argsort(-output, kind="stable")[:MAX_CLASSES].tolist())
    return [
        {
            "weight": own[chosen],
            "direction": describe_direction(own[chosen], classes[chosen], classes),
            "by_class": {classes[k]: own[k] for k in kept},
        }
        for own in rows
    ]


def character_spans(selected: NDArray[np.bool_], offsets: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Character spans of the runs of selected tokens."""
    padded = np.zeros(len(selected) + 2, np.bool_)
    padded[1:-1] = selected
    edges = np.flatnonzero(padded[1:] != padded[:-1]).tolist()
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
