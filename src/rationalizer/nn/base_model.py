"""The base class of the models for one text and for two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from rationalizer.nn.encoders import Encoder
from rationalizer.nn.heads import Head
from rationalizer.nn.method import Method, MethodLoss
from rationalizer.text import Budget, WordBatch


class Output(NamedTuple):
    outputs: Tensor  # the head's raw outputs, (batch, classes) or (batch,)
    # The weight of every word, (batch, n), or with a rationale for each label (batch, labels, n); of every pair of
    # words, (batch, m, n).
    z: Tensor
    scores: Tensor  # the scores that rank words or pairs, of the same shape
    selection: Any  # the method's Extraction or Alignment
    masks: tuple[Tensor, ...]  # for each text, which words can be selected; a row for each row of `selection`
    budget: Tensor  # int64, in words or pairs; a number for each row of `selection`


class Model(nn.Module):
    """An encoder, a method that selects, and a head that predicts.

    `forward` takes the `WordBatch` of one text, or of two, a budget, and the batch's constraints
    (`constraints.LayerConstraints`), if any. In training mode the method relaxes or samples, in evaluation mode it
    decodes.
    """

    pairs: ClassVar[bool]
    encoder: Encoder
    method: Method
    head: Head

    @property
    def ignores_gaps(self) -> bool:
        """Whether predictions depend on the selected words and their order only, not on the gaps between them."""
        raise NotImplementedError

    def forward(self, *texts: WordBatch, budget: Budget, constraints: Any = None) -> Output:
        raise NotImplementedError

    def predict_from(self, z: Tensor, *texts: WordBatch) -> Tensor:
        """The head's raw outputs for any selection z: (batch, n), or (batch, m, n) for pairs."""
        raise NotImplementedError

    @property
    def can_leave_out(self) -> bool:
        """Whether `predict_without` is available."""
        return False

    def predict_without(self, z: Tensor, places: Sequence[Sequence[int]], words: WordBatch) -> Tensor:
        """`predict_from` for the selection z (batch, n) of each text, followed by z with a 0 at each of the text's
        `places`, in ascending order. Faster, and only available if `can_leave_out`."""
        raise NotImplementedError

    def shown(self, z: Tensor, texts: Sequence[WordBatch], constraints: Any = None) -> Tensor:
        """What the predictor sees of a selection that the method made: free punctuation is added."""
        return z

    def select(self, inputs: Tensor, *masks_and_budget: Tensor, constraints: Any, average: Any = None) -> Any:
        """The method's selection from states or scores. Methods without support for constraints, or for average
        budgets, do not take any."""
        method = self.method if self.training else self.method.decode
        optional = {"constraints": constraints, "average": average}
        return method(inputs, *masks_and_budget, **{k: v for k, v in optional.items() if v is not None})

    def score(self, *texts: WordBatch) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The scores that rank words or pairs, and for each text, which words can be selected; for methods that support
        average budgets."""
        raise NotImplementedError

    def initialize(self, *texts: WordBatch) -> None:
        """Scale weights to the encoder's states. Called once, before training, with some of the training texts, if the
        method `initializes_from_texts`."""

    def method_loss(self, output: Output, task_loss: Tensor) -> MethodLoss:
        """The loss to minimise, from the (batch,) losses of the task."""
        return self.method.loss(output.selection, task_loss, *output.masks, output.budget)

    def annotation_loss(self, output: Output, annotation: Tensor, removed: Tensor | None = None) -> Tensor:
        """(batch,) distance of the scores from selecting the annotated words (batch, n), or pairs (batch, m, n), bool,
        and none of the removed words; 0 if no selectable word is annotated or removed."""
        masks = output.masks
        annotation = annotation.reshape(output.selection.scores.shape)  # a row for each label, if it has its own
        annotation = annotation & (masks[0] if len(masks) == 1 else masks[0][:, :, None] & masks[1][:, None, :])
        known, options = annotation, {}
        if removed is not None and self.method.learns_removed:
            options["removed"] = removed & masks[0] & ~annotation
            known = annotation | options["removed"]
        losses = self.method.annotation_loss(output.selection, annotation, *masks, output.budget, **options)
        return torch.where(known.flatten(1).any(1), losses, 0.0)

    def size(self, output: Output) -> Tensor:
        """(batch,) how much is selected: the share of a text's words, or the number of pairs."""
        sizes = self.method.size(output.selection.z, *output.masks)
        return sizes.view(len(output.outputs), -1).mean(1)  # over the rationales of a text

    def full_text_outputs(self, *texts: WordBatch) -> Tensor | None:
        """The head's outputs from whole texts; None if the model always reads whole texts, or cannot."""
        return None
