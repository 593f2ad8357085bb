"""The optimal-transport baselines of Swanson et al. (2020): entropic transport with dummy nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops import _matrix_inputs as _matrices
from rationalizer.ops._convergence import Info, report, reports_info
from rationalizer.ops._declare import declare, has_triton


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

    The plan has one more row and one more column, the dummies, with scores 0. Its real part, without the dummies, is
    returned. m and n are the numbers of unmasked rows and columns:

    - "relaxed": every row and every column has mass 1, the dummy row has mass n and the dummy column mass m. Each
      word may stay unaligned; mass that the dummies do not need flows between them.
    - "exact_k": the dummy row has mass n − k, the dummy column m − k, and nothing flows between the dummies: the
      real part sums to k.

    Sinkhorn iterations in the log domain, in float64, and Newton steps where they reduce the error more, until the
    marginals are satisfied. The gradient is that of the solution, by implicit differentiation.

    Args:
        scores: (batch, m, n) scores of the pairs; any number of leading dimensions.
        kind: "relaxed" or "exact_k".
        k: for "exact_k", the total mass that is aligned; an int, or an int tensor (batch,), at most min(m, n).
        epsilon: weight of the entropy; lower is sparser and needs more iterations.
        row_mask: (batch, m) bool, True on words. Masked rows are absent and get exactly 0.
        column_mask: (batch, n) bool, the same for columns.
        max_iterations: limit on the iterations.
        tolerance: the largest allowed error of a marginal.
        return_info: also return an `Info`; its `gap` is the largest error of a marginal.

    Returns:
        (batch, m, n), the real part of P in the dtype of `scores`, or (P, Info). Differentiable in `scores`.
    """
    matrices = _matrices.as_matrices(scores, row_mask, column_mask, 1.0)
    if not isinstance(epsilon, (int, float)) or not 0 < epsilon <= _inputs.LARGEST_FLOAT:
        raise ValueError(f"epsilon must be a positive number, got {epsilon!r}; for the limit 0 use matching_map")
    if not isinstance(tolerance, (int, float)) or not 0 < tolerance <= _inputs.LARGEST_FLOAT:
        raise ValueError(f"tolerance must be a positive number, got {tolerance!r}")
    epsilon, tolerance = float(epsilon), float(tolerance)
    _inputs.check_iterations(max_iterations)
    if kind not in ("relaxed", "exact_k"):
        raise ValueError(f"kind must be 'relaxed' or 'exact_k', got {kind!r}")
    if (k is None) == (kind == "exact_k"):
        raise ValueError("kind='exact_k' needs k" if k is None else f"k={k!r} is for kind='exact_k' only")
    size = None if k is None else _inputs.as_budget(k, matrices.shape[:-2], scores.device, "k")
    plan, iterations, gap = _sinkhorn(
        matrices.scores / epsilon, matrices.row_mask, matrices.column_mask, size, max_iterations, tolerance
    )
    info = Info(*map(matrices.restore_batch, (gap <= tolerance, iterations, gap)))
    remedy = f"raise epsilon (now {epsilon}) or max_iterations (now {max_iterations})"
    return report(matrices.restore(plan[:, :-1, :-1]), info, return_info, "sinkhorn", remedy)


def _fake(scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    count, m, n = scores.shape
    plan = scores.new_empty((count, m + 1, n + 1))
    return plan, scores.new_empty(count, dtype=torch.int64), scores.new_empty(count)


@declare("sinkhorn_backward", fake=lambda plan: torch.empty_like(plan), every_device=True)
def _sinkhorn_backward(plan: Tensor, g: Tensor) -> Tensor:
    """P ⊙ (g − u − v), with u and v such that all row and column sums are 0: the derivative at fixed marginals."""
    if fused := _triton_kernels(plan):
        return fused.backward(plan, g)
    rows = plan.sum(-1)
    share = plan / torch.where(rows > 0, rows, 1.0)[:, :, None]
    flow = plan * g
    rhs = flow.sum(-2) - (share * flow.sum(-1)[:, :, None]).sum(-2)
    v = (torch.linalg.pinv(_laplacian(plan), hermitian=True, rtol=1e-13) @ rhs[:, :, None])[..., 0]
    u = (share * (g - v[:, None, :])).sum(-1)
    return plan * (g - u[:, :, None] - v[:, None, :])


def _scores_backward(g: Tensor, plan: Tensor) -> Tensor:
    return _sinkhorn_backward(plan, g)[:, :-1, :-1]


@declare(
    "sinkhorn",
    fake=_fake,
    outputs=("plan", "iterations", "gap"),
    backward=_scores_backward,
    every_device=True,
)
def _sinkhorn(
    scores: Tensor, row_mask: Tensor, column_mask: Tensor, size: Tensor | None, max_iterations: int, tolerance: float
) -> tuple[Tensor, Tensor, Tensor]:
    kernel, row_mass, column_mass = _with_dummies(scores, row_mask, column_mask, size)
    real = row_mask[:, :, None] & column_mask[:, None, :]
    if not scores.is_cuda:
        _inputs.require_finite(scores, real, "scores", _matrices.FINITE_REMEDY)
        if size is not None:
            _require_size(size, row_mask, column_mask)
        return _iterate(kernel, row_mass, column_mass, max_iterations, tolerance)
    # Raising would make the host wait: a matrix without a solution is solved as an empty one, and returned as NaN.
    bad = (~torch.isfinite(scores) & real).flatten(1).any(-1)
    if size is not None:
        bad = bad | _is_wrong_size(size, row_mask, column_mask)
    empty = bad[:, None]
    iterate = fused.iterate if (fused := _triton_kernels(kernel)) else _iterate
    plan, iterations, gap = iterate(
        kernel.masked_fill(empty[..., None], -torch.inf),
        row_mass.masked_fill(empty, 0.0),
        column_mass.masked_fill(empty, 0.0),
        max_iterations,
        tolerance,
    )
    plan[:, :-1, :-1].masked_fill_(empty[..., None] & real, torch.nan)
    return plan, iterations, gap.masked_fill(bad, torch.nan)


def _triton_kernels(plan: Tensor) -> Any:
    """Return the Triton kernels, if `plan` is a CUDA tensor that fits into one program per matrix; None otherwise."""
    if not (plan.is_cuda and has_triton()):
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
        active = (gap > tolerance).nonzero()[:, 0]
        if not len(active):
            break
        part = kernel[active], row_mass[active], column_mass[active]
        potential[active], plan[active] = _improve(*part, potential[active], plan[active])
        gap[active] = (plan[active].sum(-2) - part[2]).abs().amax(-1)
        iterations[active] += 1
    return plan, iterations, gap


def _is_wrong_size(k: Tensor, row_mask: Tensor, column_mask: Tensor) -> Tensor:
    return (k < 0) | (k > torch.minimum(row_mask.sum(-1), column_mask.sum(-1)))


def _require_size(k: Tensor, row_mask: Tensor, column_mask: Tensor) -> None:
    bad = _is_wrong_size(k, row_mask, column_mask)
    if bad.any():
        rows, columns = row_mask.sum(-1), column_mask.sum(-1)
        i = _inputs.first_index(bad)[0]
        raise ValueError(
            f"k must be between 0 and the number of rows and columns, got {int(k[i])}; "
            f"row {i} of the batch has {int(rows[i])} rows, {int(columns[i])} columns"
        )


def _with_dummies(
    scores: Tensor, row_mask: Tensor, column_mask: Tensor, size: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The log kernel (matrices, m + 1, n + 1), -inf where no mass may flow, and the masses of rows and columns."""
    rows, columns = row_mask.sum(-1), column_mask.sum(-1)
    aligned = torch.zeros_like(rows) if size is None else size
    row_mass = torch.cat([row_mask, (columns - aligned)[:, None]], -1).to(torch.float64)
    column_mass = torch.cat([column_mask, (rows - aligned)[:, None]], -1).to(torch.float64)
    kernel = torch.nn.functional.pad(scores, (0, 1, 0, 1))
    allowed = (row_mass > 0)[:, :, None] & (column_mass > 0)[:, None, :]
    if size is not None:
        allowed[:, -1, -1] = False
        allowed[:, :-1, :-1] &= (size > 0)[:, None, None]
    return kernel.masked_fill(~allowed, -torch.inf), row_mass, column_mass


def _potential(kernel: Tensor, mass: Tensor, dim: int) -> Tensor:
    """Return log(mass / Σ exp(kernel)), or 0 if the mass is 0, as there is no entry to scale."""
    return torch.where(mass > 0, mass.log() - kernel.logsumexp(dim), 0.0)


def _plan(kernel: Tensor, potential: Tensor, row_mass: Tensor) -> Tensor:
    """Return the plan for the potential of the columns, scaled to the masses of the rows."""
    shifted = kernel + potential[:, None, :]
    return (shifted + _potential(shifted, row_mass, -1)[:, :, None]).exp()


def _improve(
    kernel: Tensor, row_mass: Tensor, column_mass: Tensor, potential: Tensor, plan: Tensor
) -> tuple[Tensor, Tensor]:
    """One iteration: the best of Sinkhorn's update and Newton steps of three lengths.

    Sinkhorn's update never raises the error; Newton steps are fast near the solution, where Sinkhorn's update is slow.
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
    """The derivative of the column sums in the potential, at fixed row sums; singular once per connected component."""
    rows = plan.sum(-1)
    share = plan / torch.where(rows > 0, rows, 1.0)[:, :, None]
    laplacian = torch.diag_embed(plan.sum(-2)) - plan.mT @ share
    return (laplacian + laplacian.mT) / 2
