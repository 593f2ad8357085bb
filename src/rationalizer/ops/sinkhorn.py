"""The optimal-transport baselines of Swanson et al. (2020): entropic transport with dummy nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops import _matrix_inputs as _pairs
from rationalizer.ops._convergence import Info, reports_info, warn_unless_converged


@reports_info
def sinkhorn(
    scores: Tensor,
    *,
    kind: str = "relaxed",
    k: int | Tensor | None = None,
    epsilon: float = 0.1,
    row_mask: Tensor | None = None,
    column_mask: Tensor | None = None,
    max_iterations: int = 500,
    tolerance: float = 1e-6,
    return_info: bool = False,
) -> Tensor | tuple[Tensor, Info]:
    """A soft alignment by optimal transport: argmax <scores, P> − epsilon Σ P (log P − 1) over plans P.

    The plan has one more row and column, the dummies, whose scores are 0; its real part is returned:

    - "relaxed": every real row and column has mass 1, the dummy row can take all columns and the dummy column
      all rows (masses n and m; what they do not take goes from one to the other), so each word may stay
      unaligned.
    - "exact_k": the dummy row takes n − k of the columns, the dummy column m − k of the rows, nothing goes
      between the dummies: the real part sums to k. (m and n count real rows and columns.)

    Sinkhorn's iterations in the log domain, in float64, with Newton steps where these are better, until the
    marginals are met. The gradient is that of the solution itself, by implicit differentiation.

    Args:
        scores: (batch, m, n) scores of the pairs; any number of leading dimensions.
        kind: "relaxed" or "exact_k".
        k: for "exact_k", how much is aligned; an int, or an int tensor (batch,), at most min(m, n).
        epsilon: weight of the entropy; lower is sparser and needs more iterations.
        row_mask: (batch, m) bool, True on real rows. The others count as absent and get exactly 0.
        column_mask: (batch, n) bool, True on real columns.
        max_iterations: steps before giving up.
        tolerance: the largest error of a marginal at which to stop.
        return_info: also return an `Info`; its `gap` is the largest error of a marginal.

    Returns:
        (batch, m, n), the real part of P in the dtype of `scores`, or (P, Info). Differentiable in `scores`.
    """
    pairs = _pairs.as_pairs(scores, row_mask, column_mask, 1.0)
    if not isinstance(epsilon, (int, float)) or not 0 < epsilon < float("inf"):
        raise ValueError(f"epsilon must be a positive number, got {epsilon!r}; for the limit 0 use matching_map")
    if not isinstance(tolerance, (int, float)) or not 0 < tolerance < float("inf"):
        raise ValueError(f"tolerance must be a positive number, got {tolerance!r}")
    _inputs.check_iterations(max_iterations)
    if kind not in ("relaxed", "exact_k"):
        raise ValueError(f"kind must be 'relaxed' or 'exact_k', got {kind!r}")
    if (k is None) == (kind == "exact_k"):
        raise ValueError("kind='exact_k' needs k" if k is None else f"k={k!r} is for kind='exact_k' only")
    size = None if k is None else _inputs.as_budget(k, pairs.shape[:-2], scores.device, "k")
    plan, iterations, gap = _sinkhorn(
        pairs.scores / epsilon, pairs.row_mask, pairs.column_mask, size, max_iterations, float(tolerance)
    )
    info = Info(*map(pairs.restore_pairs, (gap <= tolerance, iterations, gap)))
    real = pairs.restore(plan[:, :-1, :-1])
    if return_info:
        return real, info
    warn_unless_converged(info, "sinkhorn", f"raise epsilon (now {epsilon}) or max_iterations (now {max_iterations})")
    return real


@_inputs.opaque("sinkhorn")
def _sinkhorn(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    size: Tensor | None,
    max_iterations: int,
    tolerance: float,
) -> tuple[Tensor, Tensor, Tensor]:
    kernel, row_mass, column_mass = _with_dummies(scores, row_mask, column_mask, size)
    real = row_mask[:, :, None] & column_mask[:, None, :]
    if not scores.is_cuda:
        _inputs.require_finite(scores, real, "scores", _pairs.FINITE_REMEDY)
        if size is not None:
            _require_size(size, row_mask, column_mask)
        return _iterate(kernel, row_mass, column_mass, max_iterations, tolerance)
    # Looking would make the host wait: a pair without an answer counts as empty, and comes out as NaN.
    bad = (~torch.isfinite(scores) & real).flatten(1).any(-1)
    if size is not None:
        bad = bad | _wrong_size(size, row_mask, column_mask)
    empty = bad[:, None]
    iterate = fused.iterate if (fused := _fused(kernel)) else _iterate
    plan, iterations, gap = iterate(
        kernel.masked_fill(empty[..., None], -torch.inf),
        row_mass.masked_fill(empty, 0.0),
        column_mass.masked_fill(empty, 0.0),
        max_iterations,
        tolerance,
    )
    plan[:, :-1, :-1].masked_fill_(empty[..., None] & real, torch.nan)
    return plan, iterations, gap.masked_fill(bad, torch.nan)


def _fused(plan: Tensor) -> Any:
    """The kernels that do without the host, for CUDA tensors of a size that they take."""
    if not (plan.is_cuda and _inputs.has_triton()):
        return None
    from rationalizer.ops.kernels import sinkhorn_cuda
    from rationalizer.ops.kernels.matching_map_cuda import holds

    return sinkhorn_cuda if holds(sinkhorn_cuda.tile_shape(plan), plan.device) else None


def _iterate(
    kernel: Tensor, row_mass: Tensor, column_mass: Tensor, max_iterations: int, tolerance: float
) -> tuple[Tensor, Tensor, Tensor]:
    potential = torch.zeros_like(column_mass)
    plan = _plan(kernel, potential, row_mass)
    iterations = torch.zeros(len(kernel), dtype=torch.int64, device=kernel.device)
    gap = (plan.sum(-2) - column_mass).abs().amax(-1)
    for _ in range(max_iterations):
        left = (gap > tolerance).nonzero()[:, 0]  # the others keep what they have
        if not len(left):
            break
        part = kernel[left], row_mass[left], column_mass[left]
        potential[left], plan[left] = _improve(*part, potential[left], plan[left])
        gap[left] = (plan[left].sum(-2) - part[2]).abs().amax(-1)
        iterations[left] += 1
    return plan, iterations, gap


@_sinkhorn.register_fake
def _(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    size: Tensor | None,
    max_iterations: int,
    tolerance: float,
) -> tuple[Tensor, Tensor, Tensor]:
    pairs, m, n = scores.shape
    return (
        scores.new_empty((pairs, m + 1, n + 1)),
        scores.new_empty(pairs, dtype=torch.int64),
        scores.new_empty(pairs),
    )


def _wrong_size(k: Tensor, row_mask: Tensor, column_mask: Tensor) -> Tensor:
    return (k < 0) | (k > torch.minimum(row_mask.sum(-1), column_mask.sum(-1)))


def _require_size(k: Tensor, row_mask: Tensor, column_mask: Tensor) -> None:
    bad = _wrong_size(k, row_mask, column_mask)
    if bad.any():
        rows, columns = row_mask.sum(-1), column_mask.sum(-1)
        where = int(bad.nonzero()[0])
        raise ValueError(
            f"k must be from 0 to the number of rows and columns, got {int(k[where])}; "
            f"row {where} of the batch has {int(rows[where])} rows, {int(columns[where])} columns"
        )


def _with_dummies(
    scores: Tensor, row_mask: Tensor, column_mask: Tensor, size: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The log kernel (pairs, m + 1, n + 1), -inf where nothing may go, and the masses of rows and columns."""
    rows, columns = row_mask.sum(-1), column_mask.sum(-1)
    taken = torch.zeros_like(rows) if size is None else size
    row_mass = torch.cat([row_mask, (columns - taken)[:, None]], -1).to(torch.float64)
    column_mass = torch.cat([column_mask, (rows - taken)[:, None]], -1).to(torch.float64)
    kernel = torch.nn.functional.pad(scores, (0, 1, 0, 1))
    allowed = (row_mass > 0)[:, :, None] & (column_mass > 0)[:, None, :]
    if size is not None:
        allowed[:, -1, -1] = False
        allowed[:, :-1, :-1] &= (size > 0)[:, None, None]
    return kernel.masked_fill(~allowed, -torch.inf), row_mass, column_mass


def _potential(kernel: Tensor, mass: Tensor, dim: int) -> Tensor:
    """log(mass / Σ exp(kernel)); 0 where there is no mass, and so no entry it could scale."""
    return torch.where(mass > 0, mass.log() - kernel.logsumexp(dim), 0.0)


def _plan(kernel: Tensor, potential: Tensor, row_mass: Tensor) -> Tensor:
    """The plan of the columns' potential, scaled so that the rows have their masses."""
    shifted = kernel + potential[:, None, :]
    return (shifted + _potential(shifted, row_mass, -1)[:, :, None]).exp()


def _improve(
    kernel: Tensor, row_mass: Tensor, column_mass: Tensor, potential: Tensor, plan: Tensor
) -> tuple[Tensor, Tensor]:
    """One iteration: of Sinkhorn's update and Newton steps of three lengths, the one with the smallest error.

    Sinkhorn's never raises the error, from any start; Newton's are fast at the end, where it is slow.
    """
    missing = column_mass - plan.sum(-2)
    row_potential = _potential(kernel + potential[:, None, :], row_mass, -1)
    candidates = [_potential(kernel + row_potential[:, :, None], column_mass, -2)]
    ridge = 1e-3 * missing.abs().sum(-1) + 1e-14
    curvature = _laplacian(plan) + torch.diag_embed(ridge[:, None].expand_as(missing))
    newton, singular = torch.linalg.solve_ex(curvature, missing)
    newton = newton.where((singular == 0)[:, None] & newton.isfinite(), 0.0)
    candidates += [potential + length * newton for length in (1.0, 0.25, 0.0625)]
    plans = [_plan(kernel, candidate, row_mass) for candidate in candidates]
    errors = torch.stack([(p.sum(-2) - column_mass).abs().sum(-1) for p in plans])
    best = errors.nan_to_num(torch.inf).argmin(0)
    pick = torch.arange(len(best), device=best.device)
    return torch.stack(candidates)[best, pick], torch.stack(plans)[best, pick]


def _laplacian(plan: Tensor) -> Tensor:
    """How the columns' sums follow their potential, rows held; singular once per component."""
    rows = plan.sum(-1)
    share = plan / torch.where(rows > 0, rows, 1.0)[:, :, None]
    laplacian = torch.diag_embed(plan.sum(-2)) - plan.mT @ share
    return (laplacian + laplacian.mT) / 2


@_inputs.opaque("sinkhorn_backward")
def _sinkhorn_backward(plan: Tensor, g: Tensor) -> Tensor:
    """P ⊙ (g − u − v) with rows and columns that sum to 0: the derivative at fixed marginals."""
    if fused := _fused(plan):
        return fused.backward(plan, g)
    rows = plan.sum(-1)
    share = plan / torch.where(rows > 0, rows, 1.0)[:, :, None]
    flow = plan * g
    rhs = flow.sum(-2) - (share * flow.sum(-1)[:, :, None]).sum(-2)
    v = (torch.linalg.pinv(_laplacian(plan), hermitian=True, rtol=1e-13) @ rhs[:, :, None])[..., 0]
    u = (share * (g - v[:, None, :])).sum(-1)
    return plan * (g - u[:, :, None] - v[:, None, :])


@_sinkhorn_backward.register_fake
def _(plan: Tensor, g: Tensor) -> Tensor:
    return torch.empty_like(plan)


def _save(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.save_for_backward(output[0])
    ctx.mark_non_differentiable(output[1], output[2])


def _backward(ctx, g, *_):  # type: ignore[no-untyped-def]
    (plan,) = ctx.saved_tensors
    h = _sinkhorn_backward(plan, g)
    return h[:, :-1, :-1], None, None, None, None, None


_sinkhorn.register_autograd(_backward, setup_context=_save)
