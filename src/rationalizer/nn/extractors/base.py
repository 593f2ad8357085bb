"""What all methods have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar, get_type_hints

from torch import Tensor, nn


class Extraction(NamedTuple):
    z: Tensor  # (batch, n) what the words are multiplied with: in [0, 1], 0 where not selected and on padding
    scores: Tensor  # (batch, n) what ranks the tokens; meaningless on padding


class Objective(NamedTuple):
    loss: Tensor  # what training minimises
    state: Mapping[str, Tensor] = {}  # new values of the extractor's buffers: multipliers, moving averages


class Extractor(nn.Module):
    """Selects tokens. `forward` is for training, `decode` for validation and use; neither has side effects.

    `states` are the generator's, (batch, n, size); `budget` is (batch,) int64. A method's own settings are
    the keyword-only arguments of its constructor.
    """

    name: ClassVar[str]
    reads_text: ClassVar[bool] = True  # whether it needs the generator's states
    uses_budget: ClassVar[bool] = True  # whether the budget makes any difference, in training or in use

    def __init__(self, size: int) -> None:
        super().__init__()

    @property
    def follows_budget(self) -> bool:
        """Whether `decode` keeps to the budget it is given."""
        return True

    def forward(self, states: Tensor, mask: Tensor, budget: Tensor) -> Extraction:
        raise NotImplementedError

    def decode(self, states: Tensor, mask: Tensor, budget: Tensor) -> Extraction:
        raise NotImplementedError

    def objective(self, extraction: Extraction, task_loss: Tensor, mask: Tensor, budget: Tensor) -> Objective:
        """What to minimise, from the (batch,) losses of the task; by default their mean."""
        return Objective(task_loss.mean())

    @classmethod
    def options(cls) -> dict[str, tuple[type, Any]]:
        """The method's own settings: name -> (type, default)."""
        types = get_type_hints(cls.__init__)
        parameters = inspect.signature(cls.__init__).parameters.values()
        return {p.name: (types[p.name], p.default) for p in parameters if p.kind is p.KEYWORD_ONLY}


EXTRACTORS: dict[str, type[Extractor]] = {}

_E = TypeVar("_E", bound=type[Extractor])


def register(name: str) -> Callable[[_E], _E]:
    """Makes an extractor class known as `name`."""

    def add(cls: _E) -> _E:
        if name in EXTRACTORS:
            raise ValueError(f"the method {name!r} is already taken by {EXTRACTORS[name].__qualname__}")
        cls.name = name
        EXTRACTORS[name] = cls
        return cls

    return add


def neighbours(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Each pair of adjacent tokens: the left ones' values, the right ones', and whether both are real."""
    return values[:, :-1], values[:, 1:], mask[:, 1:]
