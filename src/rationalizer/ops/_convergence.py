"""What an iterative solver says about how it ended."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, ParamSpec, Protocol, cast, overload

from torch import Tensor

from rationalizer.ops._inputs import may_look_at


class ConvergenceWarning(UserWarning):
    """A solver stopped before it reached the optimum."""


class Info(NamedTuple):
    """One entry per row of the batch."""

    converged: Tensor  # bool
    iterations: Tensor  # int64; 0 where a closed form was the answer
    gap: Tensor  # float64: how far the objective is from the optimum, at most


P = ParamSpec("P")


class InfoOp(Protocol[P]):
    """The type of an op with `return_info`: its own parameters, and two kinds of result."""

    @overload
    def __call__(  # type: ignore[overload-overlap]  # P has `return_info: bool`, which cannot be left out of it
        self, *args: Any, return_info: Literal[True], **kwargs: Any
    ) -> tuple[Tensor, Info]: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Tensor: ...


def reports_info(op: Callable[P, Tensor | tuple[Tensor, Info]]) -> InfoOp[P]:
    """Type an op so that `return_info=True` gives a pair and any other call a tensor; the function stays as it is."""
    return cast(InfoOp[P], op)


def warn_unless_converged(info: Info, op_name: str, remedy: str) -> None:
    """Warn once per call, where the data may be looked at."""
    if not may_look_at(info.converged) or bool(info.converged.all()):
        return
    late = int((~info.converged).sum())
    worst = float(info.gap.max())
    warnings.warn(
        f"{op_name}: {late} of {info.converged.numel()} rows stopped before the optimum "
        f"(gap up to {worst:.1e}); {remedy}",
        ConvergenceWarning,
        stacklevel=3,
    )
