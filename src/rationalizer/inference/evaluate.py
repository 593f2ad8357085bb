"""Score a trained model on examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from rationalizer.inference.predict import (
    OnBatch,
    Predictions,
    one_rationale,
    predict,
    predict_from,
    with_settings,
)
from rationalizer.inference.several_targets import evaluate_several
from rationalizer.metrics import AnnotatorComparison, PairEvaluation, Scores, TextEvaluation, compute_scores
from rationalizer.metrics import compare_with_annotators as compare_masks
from rationalizer.metrics.faithfulness import AOPC_FRACTIONS
from rationalizer.models.trained_model import TrainedModel
from rationalizer.nn import Aligner
from rationalizer.text import AnyExample, Budget, Example, PairExample
from rationalizer.text.word_splitting import join

FAITHFULNESS_PASSES = 1 + 2 * (1 + len(AOPC_FRACTIONS))  # passes of all texts through the predictor


def evaluate(
    trained: TrainedModel,
    examples: Sequence[AnyExample],
    *,
    budget: Budget | float | str | None = None,
    constraints: Any = None,
    faithfulness: bool = False,
    predictions: Predictions | None = None,
    on_batch: OnBatch | None = None,
) -> Scores:
    """Compute all scores that the examples allow. They need labels or annotations.

    Args:
        trained: the model.
        examples: texts or pairs of texts with labels, annotations (rationales or alignments), or both. Predictions are
            not scored if no example has a label, or if the model has a single class.
        budget, constraints: replace those of the training.
        faithfulness: (single texts) also compute comprehensiveness and sufficiency, which run the predictor on many
            other masks; the full-text prediction is this predictor's on an all-ones mask.
        predictions: the result of `predict` for these examples, if available.
        on_batch: called with the size of each batch. Each example counts once, and with faithfulness
            `FAITHFULNESS_PASSES` times more.
    """
    trained = with_settings(trained, budget, constraints)
    predictions = predictions or predict(trained, examples, on_batch=on_batch)
    separate = trained.description.rationales != "shared"
    if faithfulness and (separate or trained.description.labels.names):
        raise ValueError(
            "comprehensiveness and sufficiency are for models with one rationale and one label; leave it out"
        )
    if trained.description.labels.names:
        return evaluate_several(trained, cast("Sequence[Example]", examples), predictions)
    if not trained.pairs:
        predictions = one_rationale(predictions)
    unlabelled = [i for i, example in enumerate(examples) if example.label is None]
    marked = any(example.annotated for example in examples)
    if unlabelled and (len(unlabelled) < len(examples) or not marked):
        missing = "no label" if marked else "neither a label nor an annotation"
        raise ValueError(f"example {unlabelled[0]} has {missing} to compare with; use predict")
    predicts = not unlabelled and len(trained.classes) != 1
    classification = predicts and trained.task == "classification"
    common: dict[str, Any] = {
        "task": trained.task if predicts else None,
        "truth": [example.label for example in examples] if predicts else None,
        "predictions": predictions.labels.tolist(),
        "classes": range(len(trained.classes)) if classification else None,
        "class_names": trained.classes if classification else None,
        "outputs": predictions.outputs if classification else None,
        "seconds_per_epoch": trained.history.get("seconds_per_epoch"),
    }
    if trained.pairs:
        if faithfulness:
            raise ValueError(
                "comprehensiveness and sufficiency are defined for single texts only; use faithfulness=False"
            )
        pairs = cast("Sequence[PairExample]", examples)
        counted = [
            (trained.encoder.counted(pair.premise.tokens), trained.encoder.counted(pair.hypothesis.tokens))
            for pair in pairs
        ]
        return compute_scores(
            PairEvaluation(
                **common,
                alignments=predictions.weights,
                annotations=[pair.alignment for pair in pairs],
                highlights=[(pair.premise.annotation, pair.hypothesis.annotation) for pair in pairs],
                constraints=_constraints(trained, counted),
                counted=counted,
            )
        )
    texts = cast("Sequence[Example]", examples)

    def probabilities(masks: Sequence[Any]) -> Any:
        return predict_from(trained, texts, masks, on_batch=on_batch)

    counted_words = [trained.encoder.counted(text.tokens) for text in texts]
    budget_words = trained.config.budget.word_limit
    limits = [int(budget_words(torch.from_numpy(words)[None])) for words in counted_words]
    return compute_scores(
        TextEvaluation(
            **common,
            limits=limits if trained.model.method.follows_budget else None,
            masks=predictions.selected,
            weights=predictions.scores,
            annotations=[text.annotation for text in texts],
            counted=counted_words,
            probabilities=probabilities if faithfulness and classification else None,
        )
    )


def _constraints(trained: TrainedModel, counted: Sequence[tuple[Any, Any]]) -> list[dict[str, Any]] | None:
    """The constraints on the alignments of the counted words; None if the method guarantees none."""
    aligner = trained.model.method
    assert isinstance(aligner, Aligner)
    constraints = []
    for sides in counted:
        allowed = trained.config.budget.word_limit(*(torch.from_numpy(side)[None] for side in sides))
        guaranteed = aligner.guarantees(int(sides[0].sum()), int(sides[1].sum()), int(allowed))
        if guaranteed is not None and trained.config.budget.kind == "enough":
            guaranteed["exact"] = False
        constraints.append(guaranteed)
    return None if any(each is None for each in constraints) else cast("list[dict[str, Any]]", constraints)


def compare_with_annotators(
    trained: TrainedModel, examples: Sequence[Example], *, on_batch: OnBatch | None = None
) -> AnnotatorComparison:
    """Compare the model with the people who annotated the same texts, each of whom it replaces in turn, selecting as
    many words as that person marked. Texts with fewer than two annotators are ignored. `on_batch` counts annotators."""
    shared = [
        example for example in examples if example.annotator_masks is not None and len(example.annotator_masks) > 1
    ]
    trained.require_single("a comparison with annotators")
    if trained.pairs or not shared:
        raise ValueError("no text has annotations of at least two people")
    by_size: dict[int, list[tuple[int, int]]] = {}  # number of words -> (text, person)
    for i, example in enumerate(shared):
        counted = trained.encoder.counted(example.tokens)
        for k, mask in enumerate(example.annotator_masks or ()):
            by_size.setdefault(max(1, int((np.array(mask) & counted).sum())), []).append((i, k))
    selections: list[list[Any]] = [[None] * len(example.annotator_masks or ()) for example in shared]
    scores: list[Any] = [None] * len(shared)
    for words, indices in sorted(by_size.items()):
        predictions = predict(trained, [shared[i] for i, _ in indices], budget=Budget.count(words), on_batch=on_batch)
        for (i, k), selected, ranking in zip(indices, predictions.selected, predictions.scores, strict=True):
            selections[i][k], scores[i] = selected, ranking
    return compare_masks([example.annotator_masks for example in shared], selections, scores)


def standalone_agreement(
    trained: TrainedModel, examples: Sequence[Example], predictions: Predictions | None = None
) -> float:
    """The share of examples whose prediction stays the same if the rationale is read as a text of its own.

    The selected words move together, without the gaps that show their positions, and the predictor sees all of them.
    An empty rationale counts as a change. A value (regression) stays the same if it changes by at most half the
    standard deviation of the predictions.
    """
    if trained.pairs:
        raise ValueError("standalone_agreement takes single texts; this model takes pairs of texts")
    trained.require_single("standalone_agreement")
    predictions = predictions or predict(trained, examples)
    nonempty = [i for i, selected in enumerate(predictions.selected) if selected.any()]
    if not nonempty:
        return 0.0
    alone = [_excerpt(examples[i], predictions.selected[i]) for i in nonempty]
    after = predict_from(trained, alone, [np.ones(len(example.tokens)) for example in alone])
    before = predictions.outputs[nonempty]
    if after.ndim == 2:
        same = after.argmax(-1) == before.argmax(-1)
    else:
        same = np.abs(after - before) <= predictions.outputs.std() / 2
    return float(same.sum() / len(examples))


def _excerpt(example: Example, selected: NDArray[np.bool_]) -> Example:
    tokens = tuple(example.tokens[i] for i in np.flatnonzero(selected))
    text, offsets = join(tokens)
    return Example(text, tokens, offsets)
