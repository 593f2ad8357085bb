"""What the models of one text and of two have in common."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from rationalizer.nn.encoders import Encoder
from rationalizer.nn.heads import Head
from rationalizer.nn.method import Method, Objective
from rationalizer.text import Budget, WordBatch


class Output(NamedTuple):
    outputs: Tensor  # the head's raw outputs, (batch, classes) or (batch,)
    z: Tensor  # what every word was multiplied with, (batch, n); of pairs of texts every pair of words, (batch, m, n)
    scores: Tensor  # what ranks them
    selection: Any  # the method's own Extraction or Alignment,
    given: tuple[Tensor, ...]  # and what it was made under: a mask for each text, and the budget in words;
    limits: Any = None  # under constraints, what they ask


class Model(nn.Module):
    """A encoder, a method that selects, and a head that speaks for the rest.

    `forward` takes the `WordBatch` of one text, or of two, a budget, and what constraints ask of these texts
    (`constraints.LayerConstraints`), if any. In training mode the method relaxes or samples, in evaluation mode it
    decodes.
    """

    pairs: ClassVar[bool]
    encoder: Encoder
    method: Method
    head: Head

    @staticmethod
    def limited(limits: Any) -> dict[str, Any]:
        """As an argument of methods, of which those that know no constraints do not take any."""
        return {} if limits is None else {"limits": limits}

    def forward(self, *texts: WordBatch, budget: Budget, limits: Any = None) -> Output:
        raise NotImplementedError

    def start(self, *texts: WordBatch) -> None:
        """Called once, before training, with some of its texts, if the method `starts_from_texts`: what depends on the
        size of states is set to suit."""

    def objective(self, output: Output, task_loss: Tensor) -> Objective:
        """What to minimise, from the (batch,) losses of the task."""
        return self.method.objective(output.selection, task_loss, *output.given, **self.limited(output.limits))

    def imitation(self, output: Output, marked: Tensor) -> Tensor:
        """(batch,) how far the scores are from selecting what people marked, (batch, n) or (batch, m, n) bool; 0 where
        they marked nothing that can be selected."""
        *masks, _ = output.given
        marked = marked & (masks[0] if len(masks) == 1 else masks[0][:, :, None] & masks[1][:, None, :])
        losses = self.method.imitation(output.selection, marked, *output.given, **self.limited(output.limits))
        return torch.where(marked.flatten(1).any(1), losses, 0.0)

    def size(self, output: Output) -> Tensor:
        """(batch,) how much is selected: the share of a text's words, or the number of pairs."""
        return self.method.size(output.selection.z, *output.given[:-1])

    def full_text_outputs(self, *texts: WordBatch) -> Tensor | None:
        """The head's outputs where nothing is left out; None where that is the same, or not defined."""
        return None
