"""Random inputs, and checks shared by several layers: rounding, nonexpansiveness, derivatives, masks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from soak.cases import Case, Wrong, require

EXACT = 1e-9  # a generous bound on float64 rounding errors after a few thousand operations on numbers of size 1
LOW = (torch.float32, torch.float16, torch.bfloat16)


def draw_size(case: Case, longest: int = 300) -> int:
    return int(case.random.integers(1, case.pick([3, 9, 9, 40, longest]) + 1))


def draw_scores(case: Case, *shape: int, largest: float = 1e9) -> Tensor:
    """Draw float64 scores of a random scale, sometimes with ties."""
    scale = case.pick([1e-9, 1e-3, 0.1, 1.0, 1.0, 3.0, 30.0, 1e3, 1e4, largest])
    values = torch.from_numpy(case.random.standard_normal(shape))
    if case.chance(0.3):
        values = (values * 2).round() / 2  # ties
    if case.chance(0.05):
        values = torch.full(shape, case.pick([0.0, 1.0, -1.0]), dtype=torch.float64)
    case.note("scale", scale)
    return values * scale


def draw_mask(case: Case, rows: int, n: int) -> Tensor | None:
    kind = case.pick(["none", "padding", "gaps", "gaps", "sparse"])
    if kind == "none":
        return None
    if kind == "padding":
        return torch.arange(n) < torch.from_numpy(case.random.integers(0, n + 1, (rows, 1)))
    return torch.from_numpy(case.random.random((rows, n)) < (0.75 if kind == "gaps" else 0.2))


def draw_dtype(case: Case, scores: Tensor) -> torch.dtype:
    """Draw float64 most of the time; other dtypes must give float64's result, rounded."""
    if case.chance(0.6) or scores.abs().max() > 1e4:  # float16 ends at 65504
        return torch.float64
    return case.pick(LOW)


def check_rounding(found: Tensor, exact: Tensor, dtype: torch.dtype) -> None:
    """The layers compute in float64: any other dtype must give the float64 result, rounded."""
    require(found.dtype == dtype, "dtype", found.dtype, "of", dtype)
    require(torch.equal(found, exact.to(dtype)), f"{dtype} is not float64 rounded:", found, exact)


def close(found: Tensor, expected: Tensor, tolerance: float, what: str) -> None:
    difference = (found - expected).abs().max().item() if found.numel() else 0.0
    require(difference <= tolerance, f"{what}: difference {difference:.2e}")  # NaN fails as well


def noise(scores: Tensor) -> float:
    """Bound the change of a result by rounding of the scores alone."""
    return EXACT + 1e-14 * float(scores.abs().max()) * scores.shape[-1] if scores.numel() else EXACT


def check_nonexpansive(case: Case, layer: Callable[[Tensor], Tensor], scores: Tensor) -> None:
    """Projections (and proximal maps) are firmly nonexpansive: ‖z − z'‖² <= (z − z')·(s − s')."""
    step = 10.0 ** case.random.uniform(-6, 0)
    other = scores + step * torch.from_numpy(case.random.standard_normal(scores.shape))
    moved, by = layer(other) - layer(scores), other - scores
    excess = (moved.square() - moved * by).flatten(1).sum(1).max().item()
    allowed = noise(scores) * (1 + step) * scores[0].numel()
    require(excess <= allowed, f"not firmly nonexpansive by {excess:.2e}, step {step:.1e}")


def check_derivative(case: Case, layer: Callable[..., Tensor], *inputs: Tensor, smooth: bool = False) -> None:
    """Compare g·Jd from autograd with finite differences, unless there is a kink in between."""
    if max((float(x.abs().max()) if x.numel() else 0.0) for x in inputs) > 100:
        return  # finite differences lose all digits
    inputs = tuple(x.clone().requires_grad_() for x in inputs)
    z = layer(*inputs)
    weights = torch.from_numpy(case.random.standard_normal(z.shape))
    directions = [torch.from_numpy(case.random.standard_normal(x.shape)) for x in inputs]
    gradients = torch.autograd.grad((z * weights).sum(), inputs, allow_unused=True)
    require(all(g is None or g.isfinite().all() for g in gradients), "a gradient is not finite")
    expected = sum(float((g * d).sum()) for g, d in zip(gradients, directions, strict=True) if g is not None)
    step = 1e-6
    with torch.no_grad():
        ahead, behind = (
            layer(*(x + sign * step * d for x, d in zip(inputs, directions, strict=True))) for sign in (1, -1)
        )
        bend = float((ahead + behind - 2 * z).abs().max()) if z.numel() else 0.0
        found = float(((ahead - behind) * weights).sum()) / (2 * step)
    if not smooth and bend > 1e-11:
        return  # a kink
    size = 1.0 + float(weights.abs().sum()) * max(1.0, *(float(d.abs().max()) for d in directions if d.numel()))
    require(abs(found - expected) <= 1e-4 * size, f"derivative {expected:.8g}, finite differences {found:.8g}")


def check_masked(z: Tensor, real: Tensor, what: str = "z") -> None:
    require(z.isfinite().all(), what, "is not finite:", z)
    if bool((z[~real] != 0).any()):
        raise Wrong(f"{what} is not 0 where masked")


def numpy(values: Tensor) -> np.ndarray:
    return values.detach().numpy()
