"""What `spans` and `spans_map` may be asked to keep to, checked and in the kernels' form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._inputs import Rows


class Constraints(NamedTuple):
    """The arguments of the opaque ops, in their order; what was not asked for forbids nothing."""

    spans: Tensor  # (rows,)
    unit: Tensor  # (rows, n)
    fixed: Tensor  # (rows, n)
    group: Tensor  # (rows, n)
    shortest: int
    longest: int
    per_group: int
    fixed_alone: bool  # whether at most `fixed` was asked for; not an argument of the ops

    @property
    def arguments(self) -> tuple[Tensor | int, ...]:
        return self[:-1]


def as_constraints(
    rows: Rows,
    spans: int | Tensor | None,
    shortest: int,
    longest: int | None,
    unit: Tensor | None,
    fixed: Tensor | None,
    group: Tensor | None,
    per_group: int | None,
) -> Constraints:
    n, device = rows.shape[-1], rows.scores.device
    most = _inputs.as_budget(n if spans is None else spans, rows.shape[:-1], device, "spans")
    low = _count(shortest, "shortest", 1)
    high = max(n, low) if longest is None else _count(longest, "longest", 1)
    if high < low:
        raise ValueError(f"longest must be at least shortest ({low}), got {high}")
    if (group is None) != (per_group is None):
        given, missing = ("group", "per_group") if per_group is None else ("per_group", "group")
        raise ValueError(
            f"{given} is given without {missing}: per_group is how many words of each group may be selected"
        )
    each = n if per_group is None else _count(per_group, "per_group", 0)
    alone = torch.arange(n, device=device).expand(rows.scores.shape)
    return Constraints(
        most,
        _numbers(unit, rows, "unit", torch.int64, alone),
        _numbers(fixed, rows, "fixed", torch.int8, torch.zeros_like(alone)),
        _numbers(group, rows, "group", torch.int64, torch.zeros_like(alone)),
        low,
        high,
        each,
        spans is None and shortest == 1 and longest is None and unit is None and group is None,
    )


def _count(value: int, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} counts words and must be an int, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def _numbers(values: Tensor | None, rows: Rows, name: str, dtype: torch.dtype, default: Tensor) -> Tensor:
    if values is None:
        return default.to(dtype)
    if (
        not isinstance(values, Tensor)
        or values.is_floating_point()
        or values.is_complex()
        or values.dtype == torch.bool
    ):
        kind = values.dtype if isinstance(values, Tensor) else type(values).__name__
        raise TypeError(f"{name} must be an integer tensor of the scores' shape, got {kind}")
    if values.shape != rows.shape:
        raise ValueError(f"{name} must have shape {tuple(rows.shape)}, got {tuple(values.shape)}")
    return values.to(device=rows.scores.device, dtype=dtype, non_blocking=True).reshape(rows.scores.shape)


def require_fixed(fixed: Tensor, mask: Tensor) -> None:
    wrong = (fixed.abs() > 1) & mask
    if wrong.any():
        where = [int(i) for i in wrong.nonzero()[0]]
        raise ValueError(f"fixed{where} is {int(fixed[tuple(where)])}; 1 is must, -1 is never, 0 is free")


def require_constraints(mask: Tensor, spans: Tensor, fixed: Tensor, group: Tensor) -> None:
    """What only the data can tell; on the CPU."""
    _inputs.require_budget(spans, "spans")
    require_fixed(fixed, mask)
    if group.numel() == 0:
        return
    real = group.masked_fill(~mask, torch.iinfo(torch.int64).min)
    fallen = (real < real.cummax(-1).values) & mask
    if fallen.any():
        where = [int(i) for i in fallen.nonzero()[0]]
        raise ValueError(f"group{where} is {int(group[tuple(where)])}, less than one before it; groups are in order")


def require_feasible(feasible: Tensor) -> None:
    if not feasible.all():
        where = int((~feasible).nonzero()[0])
        raise ValueError(
            f"row {where} of the batch has no feasible selection: what must be selected breaks another constraint "
            "(the budget, spans, their lengths, units, words of a group); fix fewer words or allow more"
        )
