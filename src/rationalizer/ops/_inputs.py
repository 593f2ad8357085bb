"""Check the arguments of an op and bring them into the form that the kernels take.

Types and shapes are checked in Python. Checks that read the data (`require_...`) run inside the custom ops, so that
they also hold under `torch.compile`. On CUDA, reading the data would make the host wait for the device, so nothing is
raised: **a row without a solution (a score or transition that is not finite, a negative budget, a lower bound above the
budget) is NaN at all its unmasked positions**, and the loss shows it.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from rationalizer.ops._errors import InfeasibleError

LARGEST_FLOAT = sys.float_info.max
LARGEST_COUNT = 2**62  # larger budgets mean the same, and int64 must hold them


class Rows(NamedTuple):
    """A batch of score rows in the form that the kernels take."""

    scores: Tensor  # (rows, n), float64, divided by the temperature
    mask: Tensor  # (rows, n), bool, True on words
    shape: torch.Size
    dtype: torch.dtype

    def restore(self, z: Tensor) -> Tensor:
        """Return `z` (rows, n) in the shape and dtype of the scores."""
        return _reshape(z, self.shape).to(self.dtype)

    def restore_rows(self, values: Tensor) -> Tensor:
        """Return one value per row in the leading dimensions of the scores."""
        return _reshape(values, self.shape[:-1])


def as_rows(scores: Tensor, mask: Tensor | None, temperature: float) -> Rows:
    check_scores(scores, dims=1, shape_hint="(batch, n)")
    check_temperature(temperature)
    flat = torch.Size([math.prod(scores.shape[:-1]), scores.shape[-1]])
    # float64 before the division: at low temperatures scores/T reach 1e5, where float32 is too coarse for the solution.
    # PyTorch takes no int above 2⁶³.
    scaled = _reshape(scores.to(compute_dtype(scores.device)), flat) / float(temperature)
    return Rows(scaled, _reshape(check_mask(mask, scores.shape, scores.device), flat), scores.shape, scores.dtype)


def _reshape(values: Tensor, shape: torch.Size) -> Tensor:
    """`reshape` without an autograd node if the shape is the same: on a GPU these nodes dominate the cost of a step."""
    return values if values.shape == shape else values.reshape(shape)


def compute_dtype(device: torch.device) -> torch.dtype:
    """Return float64, except on devices that do not support it."""
    return torch.float32 if device.type == "mps" else torch.float64


def check_scores(scores: Any, dims: int, shape_hint: str) -> None:
    if not isinstance(scores, Tensor):
        raise TypeError(f"scores must be a torch.Tensor, got {type(scores).__name__}; use torch.as_tensor(scores)")
    if not scores.is_floating_point():
        raise TypeError(f"scores must be floating point, got {scores.dtype}; use scores.float()")
    if scores.dim() < dims:
        raise ValueError(f"scores must have shape {shape_hint}, got {tuple(scores.shape)}")
    check_no_forward_mode(scores)


def check_no_forward_mode(values: Tensor) -> None:
    """Raise if `values` has a tangent: without a forward-mode rule PyTorch would silently return a derivative of 0."""
    if torch.compiler.is_compiling() or forward_ad._current_level < 0:
        return
    if forward_ad.unpack_dual(values).tangent is not None:  # type: ignore[no-untyped-call]
        raise NotImplementedError(
            "the ops have no forward-mode derivatives (torch.func.jvp); use reverse mode (torch.autograd.grad): "
            "the Jacobians are symmetric in the scores, so it computes the same product"
        )


def check_temperature(temperature: float) -> None:
    if not isinstance(temperature, (int, float)) or not 0 < temperature <= LARGEST_FLOAT:
        raise ValueError(f"temperature must be a positive number, got {temperature!r}; for the limit 0 use the MAP op")


def check_iterations(max_iterations: int) -> None:
    if isinstance(max_iterations, bool) or not isinstance(max_iterations, int) or max_iterations < 1:
        raise ValueError(f"max_iterations must be an int of at least 1, got {max_iterations!r}")
    if max_iterations > LARGEST_COUNT:
        raise ValueError(f"max_iterations must be at most 2**62, got {max_iterations!r}")


def check_number(value: float, name: str) -> None:
    """Check a tolerance or a weight: a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LARGEST_FLOAT:
        raise ValueError(f"{name} must be a number of at least 0, got {value!r}")


def check_mask(mask: Tensor | None, shape: torch.Size, device: torch.device, name: str = "mask") -> Tensor:
    if mask is None:
        return torch.ones(shape, dtype=torch.bool, device=device)
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"{name} must be a bool tensor, True on words, got {kind}; use {name}.bool()")
    if mask.shape != shape:
        raise ValueError(f"{name} must have shape {tuple(shape)}, got {tuple(mask.shape)}")
    return mask


def check_integers(values: Any, shape: torch.Size, name: str) -> None:
    """Check an integer tensor of the shape of the scores."""
    is_tensor = isinstance(values, Tensor)
    if not is_tensor or values.is_floating_point() or values.is_complex() or values.dtype == torch.bool:
        kind = values.dtype if is_tensor else type(values).__name__
        raise TypeError(f"{name} must be an integer tensor of the shape of the scores, got {kind}")
    if values.shape != shape:
        raise ValueError(f"{name} must have the shape of the scores, {tuple(shape)}, got {tuple(values.shape)}")


def as_budget(budget: int | Tensor, lead: torch.Size, device: torch.device, name: str = "budget") -> Tensor:
    """Return the budget as an int64 tensor with one entry per row."""
    if isinstance(budget, Tensor):
        if budget.is_floating_point() or budget.is_complex() or budget.dtype == torch.bool:
            raise TypeError(
                f"{name} must be a number of words (an integer tensor), got {budget.dtype}; use {name}.long()"
            )
        if budget.dim() and budget.shape != lead:
            raise ValueError(f"{name} must be a number or have shape {tuple(lead)}, got {tuple(budget.shape)}")
        return budget.to(device=device, dtype=torch.int64, non_blocking=True).expand(lead).reshape(-1)
    if isinstance(budget, bool) or not isinstance(budget, (int, np.integer)):
        raise TypeError(
            f"{name} must be a number of words (an int or an integer tensor), got {budget!r}; "
            "for a fraction of the text use max(1, round(fraction * length))"
        )
    if budget < 0:
        raise ValueError(f"{name} must be at least 0, got {budget}")
    return torch.full((math.prod(lead),), min(int(budget), LARGEST_COUNT), dtype=torch.int64, device=device)


def as_lower_bound(at_least: int | Tensor, lead: torch.Size, device: torch.device) -> Tensor | None:
    """Return the lower bound as an int64 tensor with one entry per row; None if there is none."""
    if isinstance(at_least, int) and not isinstance(at_least, bool) and at_least == 0:
        return None
    return as_budget(at_least, lead, device, "at_least")


def as_transition(transition: float | Tensor, rows: Rows, temperature: float) -> Tensor:
    """Return the transitions as a (rows, n − 1) float64 tensor, divided by the temperature."""
    edges = max(rows.shape[-1] - 1, 0)
    lead = rows.shape[:-1]
    if isinstance(transition, Tensor):
        if not transition.is_floating_point():
            raise TypeError(f"transition must be floating point, got {transition.dtype}; use transition.float()")
        check_no_forward_mode(transition)
        allowed = (torch.Size([]), torch.Size([edges]), lead + torch.Size([edges]))
        if transition.shape not in allowed:
            raise ValueError(
                f"transition must be a number or have shape {(edges,)} or {(*lead, edges)} "
                f"(one per pair of neighbours), got {tuple(transition.shape)}"
            )
        scaled = transition.to(rows.scores) / temperature
        return scaled.expand(lead + torch.Size([edges])).reshape(rows.scores.shape[0], edges)
    if isinstance(transition, bool) or not isinstance(transition, (int, float)):
        raise TypeError(f"transition must be a number or a tensor, got {type(transition).__name__}")
    return rows.scores.new_full((rows.scores.shape[0], edges), float(transition) / temperature)


def first_index(bad: Tensor) -> list[int]:
    """Return the index of the first True entry."""
    return [int(i) for i in bad.nonzero()[0]]


def require_finite(values: Tensor, mask: Tensor | None, name: str, remedy: str) -> None:
    bad = ~torch.isfinite(values)
    if mask is not None:
        bad &= mask
    if bad.any():
        index = first_index(bad)
        raise ValueError(f"{name}{index} is {values[tuple(index)].item()}; {remedy}")


def require_finite_scores(scores: Tensor, mask: Tensor) -> None:
    require_finite(scores, mask, "scores", "scores must be finite (exclude words with mask, not with -inf)")


def require_budget(budget: Tensor, name: str = "budget") -> None:
    if (budget < 0).any():
        row = first_index(budget < 0)[0]
        raise ValueError(f"{name} must be at least 0, got {int(budget[row])} in row {row} of the batch")


def require_fixed(fixed: Tensor, mask: Tensor | None = None) -> None:
    bad = (fixed > 1) | (fixed < -1)
    if mask is not None:
        bad &= mask
    if bad.any():
        index = first_index(bad)
        raise ValueError(f"fixed{index} is {int(fixed[tuple(index)])}; use 1 (must), -1 (never) or 0 (free)")


def require_bounds(budget: Tensor, at_least: Tensor | None) -> None:
    """Raise unless 0 <= at_least <= budget in every row."""
    require_budget(budget)
    if at_least is None:
        return
    require_budget(at_least, "at_least")
    if (at_least > budget).any():
        row = first_index(at_least > budget)[0]
        raise InfeasibleError(
            f"at_least must not exceed the budget, got {int(at_least[row])} and {int(budget[row])} in row {row} of the "
            "batch; raise the budget or lower at_least",
            row,
        )


def lower_bounds(budget: Tensor, at_least: Tensor | None) -> Tensor:
    """Return the lower bound of every row for the CPU kernels, 0 if there is none."""
    return torch.zeros_like(budget) if at_least is None else at_least


def require_solvable(
    scores: Tensor,
    mask: Tensor,
    budget: Tensor,
    transition: Tensor | None = None,
    at_least: Tensor | None = None,
) -> None:
    """Raise unless scores and transitions are finite and 0 <= at_least <= budget."""
    require_finite_scores(scores, mask)
    if transition is not None:
        remedy = "transition must be finite; 10 times the spread of the scores already selects all words or none"
        require_finite(transition, None, "transition", remedy)
    require_bounds(budget, at_least)


def can_inspect(values: Tensor) -> bool:
    """Return whether Python may branch on the data: this breaks the graph of `torch.compile`, and synchronizes CUDA."""
    return not torch.compiler.is_compiling() and not values.is_cuda


def nan_if_unsolvable(z: Tensor, scores: Tensor, mask: Tensor, budget: Tensor | None = None) -> Tensor:
    """Fill `z` with NaN in rows with an unmasked score that is not finite, or a negative budget: what CUDA returns."""
    bad = (~torch.isfinite(scores) & mask).any(-1, keepdim=True)
    if budget is not None:
        bad = bad | (budget < 0)[:, None]
    return z.masked_fill(bad & mask, torch.nan)
