"""A trained model on examples: predictions, selections, and predictions from other selections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rationalizer.metrics import AnnotatorComparison, Scores, evaluate_pairs
from rationalizer.metrics import compare_with_annotators as compare_with_people
from rationalizer.metrics import evaluate as measure
from rationalizer.metrics.faithfulness import AOPC_FRACTIONS
from rationalizer.models.batch_constraints import BatchConstraints
from rationalizer.models.batches import batch_loader
from rationalizer.models.trained_model import TrainedModel
from rationalizer.nn import Aligner, Encoder, HighlightModel
from rationalizer.text import AnyExample, Budget, Example, PairExample
from rationalizer.text.word_splitting import join

BATCH = 128
# Batches of a file that are read and written in one round: out of several, texts of like length come together, and the
# model has less padding to read. A larger number gains little.
BATCHES_PER_ROUND = 8
OnBatch = Callable[[int], object]
FAITHFULNESS_PASSES = 3 + 1 + 2 * len(AOPC_FRACTIONS)  # how often `metrics.evaluate` asks for all texts


@dataclass(frozen=True)
class Predictions:
    """What a model says of each example, in the examples' order."""

    outputs: NDArray[np.float32]  # (examples, classes) probabilities, or (examples,) values
    # Per example, a number per token; for pairs of texts, a matrix with one per pair of words.
    weights: list[NDArray[np.float32]]  # what each token was multiplied with; 0 where not selected
    scores: list[NDArray[np.float32]]  # what ranks them

    @property
    def labels(self) -> NDArray[Any]:
        """The most probable classes as numbers, or the values."""
        return self.outputs.argmax(-1) if self.outputs.ndim == 2 else self.outputs

    @property
    def selected(self) -> list[NDArray[np.bool_]]:
        return [weights != 0 for weights in self.weights]


@torch.inference_mode()
def predict(
    trained: TrainedModel,
    examples: Sequence[AnyExample],
    *,
    budget: Budget | float | str | None = None,
    constraints: Any = None,
    batch_size: int = BATCH,
    on_batch: OnBatch | None = None,
) -> Predictions:
    """Predict and select; `budget` and `constraints` replace those of the training. `on_batch` is called with the size
    of each batch."""
    trained = _asked(trained, budget, constraints)
    _require_kind(trained, examples)
    model = trained.model.eval()
    ragged = _Ragged(examples)
    rows: list[tuple[Tensor, Tensor]] = []
    config = trained.config
    constraints = BatchConstraints(config, trained.encoder, len(examples))
    for batch in _batches(trained.encoder, examples, batch_size, constraints):
        batch = batch.to(trained.device)
        output = model(*batch.texts, budget=config.budget, limits=batch.limits)
        rows.append((batch.index.cpu(), model.head.predict(output.outputs).cpu()))
        ragged.add(rows[-1][0], output.z, output.scores)
        if on_batch is not None:
            on_batch(len(batch))
    return Predictions(_in_order(trained, rows), ragged.columns[0], ragged.columns[1])


@torch.inference_mode()
def predict_from(
    trained: TrainedModel,
    examples: Sequence[Example],
    masks: Sequence[Any],
    *,
    batch_size: int = BATCH,
    on_batch: OnBatch | None = None,
) -> NDArray[np.float32]:
    """Probabilities (or values) when exactly the tokens of `masks` are shown: one 0/1 or weight per token."""
    _check_masks(examples, masks)
    model = trained.model.eval()
    if not isinstance(model, HighlightModel):
        raise ValueError("predict_from shows tokens of single texts; this model reads pairs of texts")
    rows: list[tuple[Tensor, Tensor]] = []
    for batch in _batches(trained.encoder, examples, batch_size):
        (words,) = batch.texts
        z = np.zeros(words.mask.shape, dtype=np.float32)
        for row, position in enumerate(batch.index.tolist()):
            z[row, : len(masks[position])] = masks[position]
        outputs = model.predict_from(torch.from_numpy(z).to(trained.device), words.to(trained.device))
        rows.append((batch.index.cpu(), model.head.predict(outputs).cpu()))
        if on_batch is not None:
            on_batch(len(batch))
    return _in_order(trained, rows)


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
    """All scores that the examples allow; they need labels, or else human rationales or alignments.

    Args:
        trained: the model.
        examples: texts or pairs of texts, with labels, human rationales or alignments, or both. Where none has a label,
            or the model knows one class only, its predictions are not scored.
        budget, constraints: if not the trained ones.
        faithfulness: (single texts) also comprehensiveness and sufficiency, which run the predictor on many
            other masks; the full-text prediction they compare with is this predictor's on an all-ones mask.
        predictions: what `predict` gave for these examples, if already there.
        on_batch: called with the size of each batch. Each example counts once, and with faithfulness
            `FAITHFULNESS_PASSES` times more.
    """
    trained = _asked(trained, budget, constraints)
    predictions = predictions or predict(trained, examples, on_batch=on_batch)
    unlabelled = [i for i, example in enumerate(examples) if example.label is None]
    marked = any(example.annotated for example in examples)
    if unlabelled and (len(unlabelled) < len(examples) or not marked):
        other = "" if marked else ", and nothing that people marked"
        raise ValueError(f"example {unlabelled[0]} has no label to compare with{other}; use predict")
    predicts = not unlabelled and len(trained.classes) != 1
    classification = predicts and trained.task == "classification"
    common: dict[str, Any] = {
        "task": trained.task if predicts else None,
        "truth": [example.label for example in examples] if predicts else None,
        "predictions": predictions.labels.tolist(),
        "classes": range(len(trained.classes)) if classification else None,
        "outputs": predictions.outputs if classification else None,
        "seconds_per_epoch": trained.history.get("seconds_per_epoch"),
    }
    if trained.pairs:
        if faithfulness:
            raise ValueError("comprehensiveness and sufficiency are defined for single texts; leave faithfulness out")
        pairs = cast("Sequence[PairExample]", examples)
        counted = [
            (trained.encoder.counted(pair.premise.tokens), trained.encoder.counted(pair.hypothesis.tokens))
            for pair in pairs
        ]
        return evaluate_pairs(
            **common,
            alignments=predictions.weights,
            annotations=[pair.alignment for pair in pairs],
            highlights=[(pair.premise.annotation, pair.hypothesis.annotation) for pair in pairs],
            constraints=_constraints(trained, counted),
            counted=counted,
        )
    texts = cast("Sequence[Example]", examples)
    return measure(
        **common,
        masks=predictions.selected,
        weights=predictions.scores,
        annotations=[text.annotation for text in texts],
        counted=[trained.encoder.counted(text.tokens) for text in texts],
        probabilities=(lambda masks: predict_from(trained, texts, masks, on_batch=on_batch))
        if faithfulness and classification
        else None,
    )


def _constraints(trained: TrainedModel, counted: Sequence[tuple[Any, Any]]) -> list[dict[str, Any]] | None:
    """What the alignments of the words that count have to keep to; None for a method that promises nothing."""
    aligner = trained.model.method
    assert isinstance(aligner, Aligner)
    kept = []
    for sides in counted:
        allowed = trained.config.budget.words(*(torch.from_numpy(side)[None] for side in sides))
        kept.append(aligner.constraints(int(sides[0].sum()), int(sides[1].sum()), int(allowed)))
    return None if any(each is None for each in kept) else cast("list[dict[str, Any]]", kept)


def compare_with_annotators(
    trained: TrainedModel, examples: Sequence[Example], *, on_batch: OnBatch | None = None
) -> AnnotatorComparison:
    """The model beside the people who marked the same texts, each of whom it replaces in turn: for that it selects as
    many words as the person marked. Texts that fewer than two people marked are left out. `on_batch` counts people."""
    shared = [
        example for example in examples if example.annotator_masks is not None and len(example.annotator_masks) > 1
    ]
    if trained.pairs or not shared:
        raise ValueError("no text was marked by two people or more; there is nobody to compare the model with")
    places: dict[int, list[tuple[int, int]]] = {}
    for i, example in enumerate(shared):
        counted = trained.encoder.counted(example.tokens)
        for k, mask in enumerate(example.annotator_masks or ()):
            places.setdefault(max(1, int((np.array(mask) & counted).sum())), []).append((i, k))
    selections: list[list[Any]] = [[None] * len(example.annotator_masks or ()) for example in shared]
    scores: list[Any] = [None] * len(shared)
    for words, of_size in sorted(places.items()):  # one budget at a time
        found = predict(trained, [shared[i] for i, _ in of_size], budget=Budget.count(words), on_batch=on_batch)
        for (i, k), selected, ranking in zip(of_size, found.selected, found.scores, strict=True):
            selections[i][k], scores[i] = selected, ranking
    return compare_with_people([example.annotator_masks for example in shared], selections, scores)


def standalone_agreement(
    trained: TrainedModel, examples: Sequence[Example], predictions: Predictions | None = None
) -> float:
    """How often the prediction stays the same when the selected words are read as a text of their own.

    The words move together and all of them are shown to the predictor: the question is whether the rationale
    says enough alone, without the gaps that tell where its words stood. A share of the examples; an empty
    selection does not survive. A value (in regression) survives if it moves by no more than half the standard
    deviation of the predictions.
    """
    if trained.pairs:
        raise ValueError(
            "standalone_agreement asks whether a text's selected words suffice alone; this model reads pairs of texts"
        )
    predictions = predictions or predict(trained, examples)
    kept = [i for i, selected in enumerate(predictions.selected) if selected.any()]
    if not kept:
        return 0.0
    alone = [_excerpt(examples[i], predictions.selected[i]) for i in kept]
    after = predict_from(trained, alone, [np.ones(len(example.tokens)) for example in alone])
    before = predictions.outputs[kept]
    if after.ndim == 2:
        same = after.argmax(-1) == before.argmax(-1)
    else:
        same = np.abs(after - before) <= predictions.outputs.std() / 2
    return float(same.sum() / len(examples))


def _excerpt(example: Example, selected: NDArray[np.bool_]) -> Example:
    tokens = tuple(example.tokens[i] for i in np.flatnonzero(selected))
    text, offsets = join(tokens)
    return Example(text, tokens, offsets)


class _Ragged:
    """Rows of padded tensors, cut to their examples' lengths and put in the examples' order."""

    def __init__(self, examples: Sequence[AnyExample]) -> None:
        self.shapes = [example.shape for example in examples]
        self.columns: tuple[list[Any], list[Any]] = ([None] * len(examples), [None] * len(examples))

    def add(self, index: Tensor, *padded: Tensor) -> None:
        positions = index.tolist()
        for column, tensor in zip(self.columns, padded, strict=True):
            for position, row in zip(positions, tensor.float().cpu().numpy(), strict=True):
                column[position] = row[tuple(map(slice, self.shapes[position]))]


def _asked(trained: TrainedModel, budget: Budget | float | str | None, constraints: Any) -> TrainedModel:
    trained = trained if budget is None else trained.with_budget(budget)
    return trained if constraints is None else trained.with_constraints(constraints)


def _batches(
    encoder: Encoder, examples: Sequence[AnyExample], batch_size: int, constraints: BatchConstraints | None = None
) -> Any:
    return batch_loader(examples, encoder, batch_size=batch_size, shuffle=False, seed=0, constraints=constraints)


def _require_kind(trained: TrainedModel, examples: Sequence[AnyExample]) -> None:
    if examples and isinstance(examples[0], PairExample) != trained.pairs:
        ours, theirs = ("pairs of texts", "single texts") if trained.pairs else ("single texts", "pairs of texts")
        raise ValueError(f"this model reads {ours}, but was given {theirs}")


def _in_order(trained: TrainedModel, rows: list[tuple[Tensor, Tensor]]) -> NDArray[np.float32]:
    if not rows:
        return np.zeros((0, len(trained.classes)) if trained.classes else 0, dtype=np.float32)
    index, outputs = (torch.cat(part) for part in zip(*rows, strict=True))
    return outputs[index.argsort()].numpy()


def _check_masks(examples: Sequence[Example], masks: Sequence[Any]) -> None:
    if len(masks) != len(examples):
        raise ValueError(f"one mask per example is needed, got {len(masks)} for {len(examples)} examples")
    for i, (example, mask) in enumerate(zip(examples, masks, strict=True)):
        if len(mask) != len(example.tokens):
            raise ValueError(f"mask {i} has {len(mask)} entries for {len(example.tokens)} tokens")
