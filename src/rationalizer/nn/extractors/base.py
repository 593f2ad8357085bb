"""What the methods for one text have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor

from rationalizer import ops
from rationalizer.constraints import LayerConstraints
from rationalizer.nn.method import Method, Objective, register_in


class Extraction(NamedTuple):
    z: Tensor  # (batch, n) what the words are multiplied with: in [0, 1], 0 where not selected and on padding
    scores: Tensor  # (batch, n) what ranks the tokens; meaningless on padding
    info: ops.Info | None = None  # how the layer's solver ended in each row, where it has one


class Extractor(Method):
    """Selects words. `states` are the encoder's, (batch, n, size); `mask` is True on the words that can be selected,
    all
    others count as absent; `budget` is (batch,) int64. A method that `takes_constraints` also takes their `limits`
    in all three, where there are any."""

    reads_text: ClassVar[bool] = True  # whether it needs the generator's states
    passes_gradient: ClassVar[bool] = True  # whether what the predictor makes of z tells the generator what to change

    def __init__(self, size: int) -> None:
        super().__init__()

    def start(self, states: Tensor, mask: Tensor) -> None:
        """Called once, before training, with the states of some of its texts, if the method `starts_from_texts`."""

    def forward(self, states: Tensor, mask: Tensor, budget: Tensor) -> Extraction:
        raise NotImplementedError

    def decode(self, states: Tensor, mask: Tensor, budget: Tensor) -> Extraction:
        raise NotImplementedError

    def objective(self, extraction: Extraction, task_loss: Tensor, mask: Tensor, budget: Tensor) -> Objective:
        """What to minimise, from the (batch,) losses of the task; by default their mean."""
        return Objective(task_loss.mean())

    @staticmethod
    def size(z: Tensor, *masks: Tensor) -> Tensor:
        return (z != 0).sum(-1) / masks[0].sum(-1)


@torch.no_grad()
def best_of_most(scores: Tensor, mask: Tensor, budget: Tensor, limits: LayerConstraints) -> Tensor:
    """Among the selections with the most words that budget and limits allow, the one with the highest total; 0/1.

    Without limits these are the `budget` words with the highest scores, for `spans=1` the best window of that length.
    """
    real = scores.double().masked_fill(~mask, 0.0)
    low, high = real.amin(-1, keepdim=True), real.amax(-1, keepdim=True)
    # One word more outweighs whatever the scores of all the others differ by.
    shifted = real - low + (high - low + 1) * (budget[:, None] + 1)
    return ops.spans_map(shifted, budget, mask=mask, **limits.arguments()).to(scores.dtype)


EXTRACTORS: dict[str, type[Extractor]] = {}

_E = TypeVar("_E", bound=type[Extractor])


def register(name: str) -> Callable[[_E], _E]:
    """Makes an extractor class known as `name`."""
    return register_in(EXTRACTORS, name)


def neighbours(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Each pair of adjacent words, masked ones closed up: the left ones' values, the right ones', and whether both are
    real."""
    order = (~mask).to(torch.uint8).argsort(dim=-1, stable=True)
    closed = values.gather(-1, order)
    real = mask.gather(-1, order)
    return closed[:, :-1], closed[:, 1:], real[:, 1:]
