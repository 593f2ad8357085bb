"""What all methods have in common: settings that are read off their constructors, and a name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, TypeVar, get_type_hints

from torch import Tensor, nn

from rationalizer.ranges import check_ranges, ranges_of


class Objective(NamedTuple):
    loss: Tensor  # what training minimises
    state: Mapping[str, Tensor] = {}  # new values of the method's buffers: multipliers, moving averages


class Method(nn.Module):
    """The layer that selects. `forward` is for training, `decode` for validation and use; neither has side
    effects. A method's own settings are the keyword-only arguments of its constructor, their types one of `ranges.py`.
    """

    name: ClassVar[str]
    uses_budget: ClassVar[bool] = True  # whether the budget makes any difference, in training or in use

    imitates: ClassVar[bool] = False  # whether `imitation` says how far its scores are from what people marked
    takes_factors: ClassVar[bool] = False  # whether constraints may be users' own factors
    excludes: ClassVar[frozenset[str]] = frozenset()  # names of constraints that say what the method has settled
    starts_from_texts: bool = False  # whether the model's `start` has something to do
    progress: float = 0.0  # the share of the training that is done; set by what trains, before every batch

    # What comes in differs: the states of one text, or the scores of two texts' words.
    decode: Callable[..., Any]
    objective: Callable[..., Objective]
    # (batch,) from the selection, what people marked (0/1, of what can be selected), and what `objective` gets.
    imitation: Callable[..., Tensor]

    @staticmethod
    def size(z: Tensor, *masks: Tensor) -> Tensor:
        """(batch,) how much is selected: the share of a text, or the number of pairs."""
        raise NotImplementedError

    def whole_batch_mean(self, mean: Tensor) -> Tensor:
        """The mean over the whole batch, from that over the texts at hand, which are part of it where several processes
        train together; without gradient. Whatever the `state` of an `objective` depends on goes through here, and is
        then the same in all processes."""
        return self._over_parts(mean.detach())

    _over_parts: Callable[[Tensor], Tensor] = staticmethod(lambda mean: mean)

    @contextmanager
    def in_parts(self, over_parts: Callable[[Tensor], Tensor]) -> Iterator[None]:
        """Within, batches are parts, and `over_parts` makes a mean over all of them from that over one."""
        self._over_parts = over_parts
        try:
            yield
        finally:
            del self._over_parts

    @property
    def follows_budget(self) -> bool:
        """Whether `decode` keeps to the budget it is given."""
        return self.uses_budget

    @classmethod
    def takes_constraints(cls, options: Mapping[str, Any]) -> bool:
        """Whether, with these settings, `decode` keeps to constraints: it then takes them as `limits`."""
        return False

    @classmethod
    def options(cls) -> dict[str, tuple[type, Any]]:
        """The method's own settings: name -> (type, default)."""
        types = get_type_hints(cls.__init__)
        parameters = inspect.signature(cls.__init__).parameters.values()
        return {p.name: (types[p.name], p.default) for p in parameters if p.kind is p.KEYWORD_ONLY}

    @classmethod
    def check(cls, options: Mapping[str, Any]) -> None:
        """ValueError where the settings are out of their ranges, or do not go together."""
        check_ranges(ranges_of(cls.__init__), options)


_M = TypeVar("_M", bound=type[Method])


def register_in(registry: dict[str, Any], name: str) -> Callable[[_M], _M]:
    """Makes a class known as `name`."""

    def add(cls: _M) -> _M:
        if name in registry:
            raise ValueError(f"the method {name!r} is already taken by {registry[name].__qualname__}")
        cls.name = name
        registry[name] = cls
        return cls

    return add
