"""The base class of extractors and aligners: settings are read from the constructors' signatures."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, get_type_hints

from torch import Tensor, nn

from rationalizer.ranges import check_ranges, ranges_in
from rationalizer.text import Budget


def constructor_settings(kind: type) -> dict[str, tuple[Any, Any]]:
    """The keyword-only arguments of a constructor: name -> (type, default).

    A constructor with `**settings` also has those of its base class, to which it passes them on.
    """
    settings: dict[str, tuple[Any, Any]] = {}
    for constructor in _constructors(kind):
        types, parameters = get_type_hints(constructor), inspect.signature(constructor).parameters.values()
        settings |= {p.name: (types[p.name], p.default) for p in parameters if p.kind is p.KEYWORD_ONLY}
    return settings


def settings_hints(kind: type) -> dict[str, Any]:
    """The type hints of a constructor's keyword-only arguments, with the ranges of `ranges.py`."""
    hints: dict[str, Any] = {}
    for constructor in _constructors(kind):
        hints |= get_type_hints(constructor, include_extras=True)
    return {name: hints[name] for name in constructor_settings(kind)}


def check_settings(kind: type, values: Mapping[str, Any]) -> None:
    """Raise ValueError if a keyword-only argument of the constructor is out of its range."""
    check_ranges(ranges_in(settings_hints(kind)), values)


def _constructors(kind: type) -> list[Callable[..., None]]:
    """The constructor of a class, after those of the base classes to which it passes settings on."""
    found = []
    for base in kind.__mro__:
        if "__init__" in vars(base):
            found.append(base.__init__)  # type: ignore[misc]
            if all(p.kind is not p.VAR_KEYWORD for p in inspect.signature(found[-1]).parameters.values()):
                break
    return found[::-1]


class MethodLoss(NamedTuple):
    loss: Tensor  # scalar to minimise
    state: Mapping[str, Tensor] = {}  # new values of the method's buffers: multipliers, moving averages


class Method(nn.Module):
    """The layer that selects. `forward` is for training, `decode` for validation and inference; neither has side
    effects. The keyword-only arguments of the constructor are the method's settings, and so are those of its base class
    if the constructor takes `**settings`; annotate numbers with the types of `ranges.py`.
    """

    name: ClassVar[str]
    uses_budget: ClassVar[bool] = True  # whether the budget has an effect, in training or in decoding
    has_annotation_loss: ClassVar[bool] = False  # whether `annotation_loss` is implemented
    learns_removed: ClassVar[bool] = False  # whether it takes `removed`; else it selects annotated words alone anyway
    supports_average: ClassVar[bool] = False  # whether the budget may be an average over texts
    supports_factors: ClassVar[bool] = False  # whether constraints may be user-defined factors
    excluded_constraints: ClassVar[frozenset[str]] = frozenset()  # names of constraints the method contradicts
    initializes_from_texts: bool = False  # whether `initialize` must be called before training
    progress: float = 0.0  # the completed share of the training; the training loop sets it before every batch

    @property
    def is_warmed_up(self) -> bool:
        """Whether training already selects as `decode` will; weights of earlier epochs are never kept."""
        return True

    # The arguments differ: an extractor takes the states of one text, an aligner the scores of word pairs.
    decode: Callable[..., Any]
    decode_budgets: Callable[..., Tensor]  # only of methods that follow a budget and take constraints
    loss: Callable[..., MethodLoss]
    # (batch,) losses from the selection, the annotation (0/1, only of words that can be selected), masks and budget.
    annotation_loss: Callable[..., Tensor]

    @classmethod
    def compile_ahead(cls) -> None:
        """Start to compile, in the background, CPU kernels for training without constraints that take seconds."""

    @staticmethod
    def size(z: Tensor, *masks: Tensor) -> Tensor:
        """(batch,) how much is selected: the share of a text's words, or the number of pairs."""
        raise NotImplementedError

    def global_mean(self, mean: Tensor) -> Tensor:
        """The mean over the whole batch, without gradient, from the mean over this process' part of it.

        Everything that the `state` of a `MethodLoss` depends on must pass through here, so that it is the same in all
        processes of a distributed training.
        """
        return self._reduce(mean.detach())

    _reduce: Callable[[Tensor], Tensor] = staticmethod(lambda mean: mean)

    @contextmanager
    def synchronized(self, reduce: Callable[[Tensor], Tensor]) -> Iterator[None]:
        """Within this context `global_mean` uses `reduce`, which turns one process' mean into that of the batch."""
        self._reduce = reduce
        try:
            yield
        finally:
            del self._reduce

    def track_average(self, budget: Budget) -> None:
        """Keep a multiplier for this average budget, in training; `supports_average`."""
        raise NotImplementedError

    @property
    def follows_budget(self) -> bool:
        """Whether `decode` never exceeds the budget."""
        return self.uses_budget

    @classmethod
    def supports_constraints(cls, options: Mapping[str, Any]) -> bool:
        """Whether, with these settings, `forward` and `decode` take `constraints`, and `decode` satisfies them."""
        return False

    @classmethod
    def options(cls) -> dict[str, tuple[type, Any]]:
        """The method's settings: name -> (type, default)."""
        return constructor_settings(cls)

    @classmethod
    def check(cls, options: Mapping[str, Any]) -> None:
        """Raise ValueError if a setting is out of its range, or if settings contradict each other."""
        check_settings(cls, options)
