"""The status of an iterative solver."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, ParamSpec, Protocol, cast, overload

from torch import Tensor

from rationalizer.ops._inputs import can_inspect


class ConvergenceWarning(UserWarning):
    """A solver stopped before it reached the optimum."""


class Info(NamedTuple):
    """One entry per row of the batch."""

    converged: Tensor  # bool
    iterations: Tensor  # int64; 0 if the closed form is the solution
    gap: Tensor  # float64: an upper bound on the distance of the objective from the optimum


P = ParamSpec("P")


class InfoOp(Protocol[P]):
    """The type of an op with `return_info`: the op's own parameters, and two return types."""

    @overload
    def __call__(  # type: ignore[overload-overlap]  # P contains `return_info: bool`, which cannot be left out
        self, *args: Any, return_info: Literal[True], **kwargs: Any
    ) -> tuple[Tensor, Info]: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Tensor: ...


def reports_info(op: Callable[P, Tensor | tuple[Tensor, Info]]) -> InfoOp[P]:
    """Give an op a type in which `return_info=True` returns a pair and every other call a tensor."""
    return cast(InfoOp[P], op)


def report(z: Tensor, info: Info, return_info: bool, op: str, remedy: str) -> Tensor | tuple[Tensor, Info]:
    """Return what the public op returns: (z, info), or z with a warning if a row has not converged."""
    if return_info:
        return z, info
    warn_unless_converged(info, op, remedy, stacklevel=4)
    return z


def warn_unless_converged(info: Info, op: str, remedy: str, stacklevel: int = 3) -> None:
    """Warn once per call, if the data may be inspected."""
    if not can_inspect(info.converged) or bool(info.converged.all()):
        return
    count = int((~info.converged).sum())
    warnings.warn(
        f"{op}: {count} of {info.converged.numel()} rows did not converge (gap up to {float(info.gap.max()):.1e}); "
        f"{remedy}",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
