"""What an iterative solver says about how it ended."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from torch import Tensor

from rationalizer.ops._inputs import may_look_at


class ConvergenceWarning(UserWarning):
    """A solver stopped before it reached the optimum."""


class Info(NamedTuple):
    """One entry per row of the batch."""

    converged: Tensor  # bool
    iterations: Tensor  # int64; 0 where a closed form was the answer
    gap: Tensor  # float64: how far the objective is from the optimum, at most


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
