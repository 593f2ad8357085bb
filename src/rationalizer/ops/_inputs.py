"""What every op does with its arguments: check them, and bring them into the kernels' form.

Checks of type and shape run in Python. Checks that need to look at the data (`require_finite`, `require_budget`) run
inside the opaque custom ops, so that they hold under `torch.compile` too, and raise. On CUDA looking would make the
host wait for the device, so nothing is raised there: **a row without an answer (a score or transition that is not
finite, a negative budget) comes out as NaN on all its real positions**, and the loss shows it.

One op, three paths (`opaque`): Numba for CPU tensors, Triton for CUDA tensors, and for any other device (or CUDA
without Triton) the op's own function: plain torch where the layer has a compact batched form, through the host
(`on_host`) elsewhere.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad


class Rows(NamedTuple):
    """A batch of score rows as the kernels take it."""

    scores: Tensor  # (rows, n), float64, divided by the temperature
    mask: Tensor  # (rows, n), bool, True on real tokens
    shape: torch.Size
    dtype: torch.dtype

    def restore(self, z: Tensor) -> Tensor:
        return _shaped(z, self.shape).to(self.dtype)

    def restore_rows(self, values: Tensor) -> Tensor:
        return _shaped(values, self.shape[:-1])


def as_rows(scores: Tensor, mask: Tensor | None, temperature: float) -> Rows:
    check_scores(scores, dims=1, shape_hint="(batch, n)")
    check_temperature(temperature)
    flat = torch.Size([math.prod(scores.shape[:-1]), scores.shape[-1]])
    # float64 before the division: at test temperatures scores/T reach 1e5, where float32 is coarser than the answer.
    scaled = _shaped(scores.to(_precision(scores.device)), flat) / temperature
    return Rows(scaled, _shaped(check_mask(mask, scores.shape, scores.device), flat), scores.shape, scores.dtype)


def _shaped(values: Tensor, shape: torch.Size) -> Tensor:
    """`reshape`, but no node in the autograd graph where nothing changes: on a GPU such nodes are what a step costs."""
    return values if values.shape == shape else values.reshape(shape)


def _precision(device: torch.device) -> torch.dtype:
    """What the layers compute in: float64, except where the device knows none."""
    return torch.float32 if device.type == "mps" else torch.float64


def check_scores(scores: Any, dims: int, shape_hint: str) -> None:
    if not isinstance(scores, Tensor):
        raise TypeError(f"scores must be a torch.Tensor, got {type(scores).__name__}; use torch.as_tensor(scores)")
    if not scores.is_floating_point():
        raise TypeError(f"scores must be floating point, got {scores.dtype}; use scores.float()")
    if scores.dim() < dims:
        raise ValueError(f"scores must have shape {shape_hint}, got {tuple(scores.shape)}")
    refuse_forward_mode(scores)


def refuse_forward_mode(values: Tensor) -> None:
    """Custom ops have no forward-mode rule, and PyTorch takes what has none for a constant: a silent 0."""
    if torch.compiler.is_compiling() or forward_ad._current_level < 0:
        return
    if forward_ad.unpack_dual(values).tangent is not None:  # type: ignore[no-untyped-call]
        raise NotImplementedError(
            "the layers have no forward-mode derivatives (torch.func.jvp); use reverse mode, torch.autograd.grad: "
            "their Jacobians are symmetric in the scores, so it gives the same product"
        )


def check_temperature(temperature: float) -> None:
    if not isinstance(temperature, (int, float)) or not math.isfinite(temperature) or temperature <= 0:
        raise ValueError(
            f"temperature must be a positive number, got {temperature!r}; for the limit 0 use the op's MAP version"
        )


def check_iterations(max_iterations: int) -> None:
    if isinstance(max_iterations, bool) or not isinstance(max_iterations, int) or max_iterations < 1:
        raise ValueError(f"max_iterations must be an int of at least 1, got {max_iterations!r}")


def check_tolerance(tolerance: float) -> None:
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not 0 <= tolerance < math.inf:
        raise ValueError(f"tolerance must be a number of at least 0, got {tolerance!r}")


def check_mask(mask: Tensor | None, shape: torch.Size, device: torch.device, name: str = "mask") -> Tensor:
    if mask is None:
        return torch.ones(shape, dtype=torch.bool, device=device)
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"{name} must be a bool tensor, True on real tokens, got {kind}; use {name}.bool()")
    if mask.shape != shape:
        raise ValueError(f"{name} must have shape {tuple(shape)}, got {tuple(mask.shape)}")
    return mask


def as_budget(budget: int | Tensor, lead: torch.Size, device: torch.device, name: str = "budget") -> Tensor:
    """The budget as an int64 tensor, one entry per row."""
    if isinstance(budget, Tensor):
        if budget.is_floating_point() or budget.is_complex() or budget.dtype == torch.bool:
            raise TypeError(
                f"{name} counts tokens and must be an integer tensor, got {budget.dtype}; use {name}.long()"
            )
        if budget.dim() and budget.shape != lead:
            raise ValueError(f"{name} must be a number or have shape {tuple(lead)}, got {tuple(budget.shape)}")
        return budget.to(device=device, dtype=torch.int64, non_blocking=True).expand(lead).reshape(-1)
    if isinstance(budget, bool) or not isinstance(budget, (int, np.integer)):
        raise TypeError(
            f"{name} counts tokens and must be an int or an int tensor, got {budget!r}; "
            "for a fraction of the text use max(1, round(fraction * length))"
        )
    if budget < 0:
        raise ValueError(f"{name} must be at least 0, got {budget}")
    return torch.full((math.prod(lead),), int(budget), dtype=torch.int64, device=device)


def as_transition(transition: float | Tensor, rows: Rows, temperature: float) -> Tensor:
    """The transitions as a (rows, n − 1) float64 tensor, divided by the temperature."""
    edges = max(rows.shape[-1] - 1, 0)
    lead = rows.shape[:-1]
    if isinstance(transition, Tensor):
        if not transition.is_floating_point():
            raise TypeError(f"transition must be floating point, got {transition.dtype}; use transition.float()")
        refuse_forward_mode(transition)
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


def host(tensor: Tensor) -> Any:
    """The tensor as a C-contiguous NumPy array: no copy for contiguous CPU tensors."""
    return tensor.detach().cpu().contiguous().numpy()


def _first(bad: Tensor) -> list[int]:
    return [int(i) for i in bad.nonzero()[0]]


def require_finite(values: Tensor, real: Tensor | None, name: str, remedy: str) -> None:
    bad = ~torch.isfinite(values)
    if real is not None:
        bad &= real
    if bad.any():
        where = _first(bad)
        raise ValueError(f"{name}{where} is {values[tuple(where)].item()}; {remedy}")


def require_finite_scores(scores: Tensor, mask: Tensor) -> None:
    require_finite(scores, mask, "scores", "only finite scores have an answer (leave tokens out with mask, not -inf)")


def require_finite_transition(transition: Tensor) -> None:
    require_finite(
        transition, None, "transition", "use a finite bonus; 10x the scores' spread already fuses all tokens"
    )


def may_look_at(values: Tensor) -> bool:
    """Whether Python may branch on the data: that breaks the graph under `torch.compile`, and synchronises CUDA."""
    return not torch.compiler.is_compiling() and not values.is_cuda


def nan_without_answer(z: Tensor, scores: Tensor, mask: Tensor, budget: Tensor | None = None) -> Tensor:
    """`z` with rows as NaN whose real scores are not all finite, or whose budget is negative: for CUDA, see above."""
    bad = (~torch.isfinite(scores) & mask).any(-1, keepdim=True)
    if budget is not None:
        bad = bad | (budget < 0)[:, None]
    return z.masked_fill(bad & mask, torch.nan)


def require_budget(budget: Tensor, name: str = "budget") -> None:
    if (budget < 0).any():
        where = _first(budget < 0)[0]
        raise ValueError(f"{name} must be at least 0, got {int(budget[where])} in row {where} of the batch")


def opaque(name: str, cuda: str | None = None) -> Callable[[Callable[..., Any]], Any]:
    """A custom op that `torch.compile` does not look into. Kernels never change their inputs.

    The decorated function serves every device that has no path of its own; `register_kernel("cpu")` gives the CPU one.
    `cuda`, "module.function" under `kernels`, names the launcher for CUDA tensors: imported when the first one arrives.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        op: Any = torch.library.custom_op(f"rationalizer::{name}", mutates_args=())(function)
        if cuda is not None:
            module, _, launcher = cuda.partition(".")

            def launch(*inputs: Any) -> Any:
                with torch.cuda.device(inputs[0].device):  # Triton launches on the current device
                    return _launcher(module, launcher, function)(*inputs)

            op.register_kernel("cuda")(launch)
        return _light(op)

    return decorate


def _light(op: Any) -> Any:
    """The op, whose CPU kernel is called without importing the whole compiler first.

    PyTorch hides kernels from `torch.compile`, for which it imports it: a second and a half at the first call of any
    layer. Where nobody has imported it, nobody looks.
    """
    register = op.register_kernel

    def register_kernel(device: str) -> Callable[[Callable[..., Any]], Any]:
        def decorate(function: Callable[..., Any]) -> Any:
            registered = register(device)(function)
            hidden = getattr(op, "_backend_fns", {}).get(device)  # another PyTorch may keep it elsewhere: then it stays
            if hidden is not None:

                def call(*args: Any, **kwargs: Any) -> Any:
                    if "torch._dynamo" not in sys.modules:
                        return function(*args, **kwargs)
                    op._backend_fns[device] = hidden
                    return hidden(*args, **kwargs)

                op._backend_fns[device] = call
            return registered

        return decorate

    op.register_kernel = register_kernel
    return op


def on_host(op: Callable[..., Any], *inputs: Any) -> Any:
    """`op` for a device that has no path of its own, where the layer has no compact batched form in torch: computed on
    the host in float64, brought back."""
    like = inputs[0]
    results = op(*(x.cpu().double() if isinstance(x, Tensor) and x.is_floating_point() else _cpu(x) for x in inputs))
    if isinstance(results, Tensor):
        return results.to(like)
    return tuple(r.to(like) if r.is_floating_point() else r.to(like.device) for r in results)


def _cpu(value: Any) -> Any:
    return value.cpu() if isinstance(value, Tensor) else value


@cache
def _launcher(module: str, launcher: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    if not has_triton():
        return otherwise
    return getattr(import_module(f"rationalizer.ops.kernels.{module}"), launcher)


@cache
def has_triton() -> bool:
    """Whether kernels can be launched; on CUDA machines Triton also needs a C compiler."""
    try:
        import_module("triton.runtime").driver.active.get_current_target()
    except ImportError:
        return False
    except Exception as error:
        warnings.warn(f"Triton cannot run here ({error}): layers on CUDA tensors take slower paths", stacklevel=2)
        return False
    return True
