"""What the methods for one text have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple, TypeVar

from torch import Tensor

from rationalizer.nn.method import Method, Objective, register_in


class Extraction(NamedTuple):
    z: Tensor  # (batch, n) what the words are multiplied with: in [0, 1], 0 where not selected and on padding
    scores: Tensor  # (batch, n) what ranks the tokens; meaningless on padding


class Extractor(Method):
    """Selects tokens. `states` are the generator's, (batch, n, size); `budget` is (batch,) int64."""

    reads_text: ClassVar[bool] = True  # whether it needs the generator's states

    def __init__(self, size: int) -> None:
        super().__init__()

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


EXTRACTORS: dict[str, type[Extractor]] = {}

_E = TypeVar("_E", bound=type[Extractor])


def register(name: str) -> Callable[[_E], _E]:
    """Makes an extractor class known as `name`."""
    return register_in(EXTRACTORS, name)


def neighbours(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Each pair of adjacent tokens: the left ones' values, the right ones', and whether both are real."""
    return values[:, :-1], values[:, 1:], mask[:, 1:]
