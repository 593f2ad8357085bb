"""The explanations of several labels, targets or classes of a text, from its outputs and rationales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.drawing import Label, LabelExplanation
from rationalizer.drawing.selected_words import SMALLEST
from rationalizer.explaining import character_spans
from rationalizer.inference.several_targets import predicted_values, split_outputs
from rationalizer.models.trained_model import TrainedModel
from rationalizer.text import AnyExample, Example, PairExample
from rationalizer.word_support import selected_places


def explain_labels(
    trained: TrainedModel,
    example: AnyExample,
    output: NDArray[np.float32],
    weights: NDArray[np.float32],
    classes: Sequence[Label] | None,
) -> tuple[LabelExplanation, ...]:
    """Return the explanation of each label or target, or of each class if it has its own rationale; else none.

    Args:
        weights: (tokens,), or a row for each rationale.
        classes: the classes as the user wrote them.
    """
    description = trained.description
    if isinstance(example, PairExample):
        return ()
    if trained.task == "multi-label":
        values = [bool(value[0]) for value in predicted_values(trained, output[None])]
        each: list[dict[str, Any]] = [
            {"name": name, "value": value, "probability": float(p), "threshold": limit}
            for name, value, p, limit in zip(classes or (), values, output, trained.thresholds, strict=True)
        ]
    elif description.targets:
        each = []
        for target, part in zip(description.targets, split_outputs(description, output[None]), strict=True):
            if target.classes:
                found: dict[Any, float] = dict(zip(target.classes, part[0].tolist(), strict=True))
                best = max(found, key=found.__getitem__)
                each.append({"name": target.name, "value": best, "probability": found[best], "probabilities": found})
            else:
                each.append({"name": target.name, "value": float(part[0]), "probability": None})
    elif weights.ndim == 2:
        best = int(output.argmax())
        each = [
            {"name": name, "value": k == best, "probability": float(p)}
            for k, (name, p) in enumerate(zip(classes or (), output, strict=True))
        ]
    else:
        return ()
    annotations = example.label_annotations or {}
    rows = weights if weights.ndim == 2 else [weights] * len(each)
    return tuple(
        LabelExplanation(
            mask=tuple(row.tolist()),
            selected=tuple((row != 0).tolist()),
            spans=character_spans(row != 0, example.offsets),
            annotation=annotations.get(str(one["name"])),
            **one,
        )
        for one, row in zip(each, rows, strict=True)
    )


def explain_classes(
    example: Example,
    output: NDArray[np.float32],
    mask: NDArray[np.float32],
    weights: NDArray[np.float64] | None,
    counted: NDArray[np.bool_],
    classes: Sequence[Label],
    labels: Sequence[LabelExplanation],
) -> tuple[LabelExplanation, ...]:
    """Return for each class, or label, the words of the shared rationale without which its log-odds fall.

    Args:
        example: the text.
        output: the probabilities.
        mask: (tokens,) the rationale.
        weights: (selected words, classes) of `inference.word_weights`; None if there is no word to leave out.
        counted: (tokens,) which tokens are words.
        classes: as the user wrote them.
        labels: the explanations of several labels that share the rationale; none for classes.
    """
    best = int(output.argmax())
    found = []
    for k, (name, p) in enumerate(zip(classes, output.tolist(), strict=True)):
        own = np.zeros_like(mask)
        for row, (place,) in enumerate(selected_places(mask, counted) if weights is not None else ()):
            own[place] = mask[place] if weights is not None and weights[row, k] >= SMALLEST else 0
        chosen = own != 0
        words: dict[str, Any] = {"mask": tuple(own.tolist()), "selected": tuple(chosen.tolist())}
        words["spans"] = character_spans(chosen, example.offsets)
        one = labels[k] if labels else LabelExplanation(name, k == best, p, **words)
        found.append(replace(one, **words))
    return tuple(found)


def several_label(trained: TrainedModel, labels: Sequence[LabelExplanation]) -> Any:
    """The names of the labels that a text has, or the values of its targets by name; None for models of one label."""
    if trained.task == "multi-label":
        return tuple(one.name for one in labels if one.value)
    return {one.name: one.value for one in labels} if trained.task == "multi-target" else None
