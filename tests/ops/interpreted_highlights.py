"""The highlight layers' Triton kernels, interpreted, against the Numba path.

Run by `test_triton_interpreter`, in a process of its own.
"""

# isort: off
import tests.ops.interpreted  # noqa: F401  first: it switches the interpreter on

# isort: on
import sys
from importlib import import_module

import torch
import triton
import triton.language as tl
from torch import Tensor

import rationalizer.ops  # noqa: F401  registers the custom ops
from rationalizer.ops.kernels.support_cuda import approach, enter, leave
from tests.ops.layers import random_mask

KERNELS = "rationalizer.ops.kernels."
LIMITS = torch.tensor([3, 2, 1, 0, 4, 99])


def op(module: str, name: str):
    """The custom op, whose CPU path is Numba."""
    return getattr(sys.modules[f"rationalizer.ops.{module}"], name)


def launcher(module: str, name: str):
    return getattr(import_module(KERNELS + module), name)


def problem(n: int, scale: float, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scores, g = (torch.randn(6, n, dtype=torch.float64, generator=generator) for _ in range(2))
    edges = torch.rand(6, n - 1, dtype=torch.float64, generator=generator)
    return scale * scores, scale * edges, random_mask(6, n, generator), g


def same(ours, theirs, atol=1e-9) -> None:
    for got, want in zip(ours, theirs, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-12, atol=atol, equal_nan=True)


def closed_forms() -> None:
    for n, scale in ((1, 0.3), (9, 5.0), (9, 1e4)):
        scores, edges, mask, g = problem(n, scale)
        if scale == 5.0:
            scores = scores.round()  # ties
        same(launcher("budget_cuda", "budget")(scores, mask, LIMITS), op("budget", "_budget")(scores, mask, LIMITS))
        tv, tv_cuda = op("fusedmax", "_total_variation"), launcher("total_variation_cuda", "total_variation")
        x = tv(scores, mask, 0.4 * scale)
        same([tv_cuda(scores, mask, 0.4 * scale)], [x])
        args = (g, x, mask, 0.4 * scale)
        back = launcher("total_variation_cuda", "total_variation_backward")
        same([back(*args)], [op("fusedmax", "_total_variation_backward")(*args)])
        pair = op("pair_budget", "_pair_budget")
        z, tau = pair(scores, 0.5 * edges, mask, LIMITS)
        same(launcher("pair_budget_cuda", "pair_budget")(scores, 0.5 * edges, mask, LIMITS), (z, tau))
        args = (g, z, 0.5 * edges, mask, tau)
        back = launcher("pair_budget_cuda", "pair_budget_backward")
        same(back(*args), op("pair_budget", "_pair_budget_backward")(*args))


def sequences(ratio: float) -> None:
    solve = launcher("sequence_budget_cuda", "sequence_budget")
    back = launcher("sequence_budget_backward_cuda", "sequence_budget_backward")
    hard = 0
    for n, scale, seed in ((7, 0.3, 3), (8, 1.0, 16)):  # the second has rows whose held tokens must be released
        scores, edges, mask, g = problem(n, scale, seed)
        args = (scores, ratio * edges, mask, LIMITS)
        expected = op("sequence_budget", "_sequence_budget")(*args, 1000, 0.0)
        ours = solve(*args, 1000, 0.0)
        z, tight, kept, support, converged, iterations, _ = ours
        same((z, tight, converged, iterations > 0), (*expected[:2], expected[4], expected[5] > 0))
        hard += int((kept > 0).sum())
        rest = (ratio * edges, mask)
        gradient = back(g, z, *rest, tight, kept, support)
        same(gradient, op("sequence_budget", "_sequence_budget_backward")(g, expected[0], *rest, *expected[1:4]), 1e-7)
        y = launcher("sequence_budget_map_cuda", "sequence_budget_map")(*args)
        same([y], [op("sequence_budget_map", "_sequence_budget_map")(*args)], 0)
    assert hard >= 3, "the active set was not exercised"


def contiguous() -> None:
    sequences(1.0)


def anti_contiguous() -> None:
    sequences(-0.5)


def unanswered() -> None:
    scores, edges, mask, _ = problem(5, 1.0)
    mask[:] = True
    scores[1, 2], edges[2, 3] = float("nan"), float("inf")
    limits = torch.tensor([2, 2, 2, -1, 2, 2])
    for module, name in (
        ("budget_cuda", "budget"),
        ("pair_budget_cuda", "pair_budget"),
        ("sequence_budget_cuda", "sequence_budget"),
        ("sequence_budget_map_cuda", "sequence_budget_map"),
    ):
        needs_edges = () if name == "budget" else (edges,)
        steps = (100, 0.0) if name == "sequence_budget" else ()
        result = launcher(module, name)(scores, *needs_edges, mask, limits, *steps)
        z = result if isinstance(result, Tensor) else result[0]
        lost = torch.tensor([False, True, name != "budget", True, False, False])
        assert torch.equal(z.isnan().all(-1), lost), name
        assert torch.equal(z.isnan().any(-1), lost), name


def stopping() -> None:
    """Wherever a row stops, out of iterations or out of room for sequences, z is feasible and the gap a bound."""
    module = import_module(KERNELS + "sequence_budget_cuda")
    scores, edges = (given[::2] for given in problem(9, 1.0, seed=16)[:2])  # of 0, 5 and 6 iterations
    mask, limits = torch.ones(3, 9, dtype=torch.bool), torch.full((3,), 3)
    optimum, *_, iterations, _ = op("sequence_budget", "_sequence_budget")(scores, edges, mask, limits, 1000, 0.0)
    assert iterations.max() > 3
    capacity = module.support_capacity
    for most, room in ((1, 11), (2, 11), (1000, 2)):
        module.support_capacity = lambda n, room=room: room
        z, _, kept, _, converged, used, gap = module.sequence_budget(scores, edges, mask, limits, most, 0.0)
        assert kept.max() <= room
        assert used.max() <= most
        assert not converged.all()
        assert z.min() >= 0
        assert z.max() <= 1
        assert z.sum(-1).max() <= 3 + 1e-9
        assert (0.5 * (z - optimum).square().sum(-1) <= gap + 1e-12).all()
        torch.testing.assert_close(z[converged], optimum[converged], rtol=0, atol=1e-9)
    module.support_capacity = capacity


def tolerance() -> None:
    """z is as near as was asked for, within the budget, and the gap says so."""
    module = import_module(KERNELS + "sequence_budget_cuda")
    scores, edges = (given[:3:2] for given in problem(9, 1.0, seed=16)[:2])  # of 0 and 5 iterations
    mask, limits = torch.ones(2, 9, dtype=torch.bool), torch.full((2,), 3)
    optimum = op("sequence_budget", "_sequence_budget")(scores, edges, mask, limits, 1000, 0.0)[0]
    exact = module.sequence_budget(scores, edges, mask, limits, 1000, 0.0)[5]
    saved = 0
    for tolerance in (1e-3, 0.5):
        z, *_, converged, used, gap = module.sequence_budget(scores, edges, mask, limits, 1000, tolerance)
        assert converged.all()
        assert (z - optimum).abs().max() <= tolerance
        assert gap.max() <= tolerance**2
        assert z.sum(-1).max() <= 3 + 1e-9
        saved += int((exact - used).sum())
    assert saved > 0


@triton.jit
def _enter_all_then_leave(columns, width, tokens, inverse, k, leaver, u, overlaps, w, lost, TILE: tl.constexpr):
    for j in range(k):
        distance = approach(columns, width, tokens, width, inverse, k, j, u, overlaps, w, TILE, TILE)
        enter(inverse, k, j, u, distance, TILE, TILE)
    leave(columns, width, inverse, k, k, leaver, lost, lost, lost, u, TILE, TILE)


def support() -> None:
    """The inverse of the Gram matrix after sequences have entered and one has left."""
    generator = torch.Generator().manual_seed(0)
    for leaver in (1, 4):
        columns = (torch.rand(5, 9, generator=generator) < 0.5).to(torch.uint8)
        inverse, vectors = torch.full((5, 5), torch.nan).double(), torch.zeros(4, 9).double()
        tokens = torch.arange(9, dtype=torch.int32)
        _enter_all_then_leave[(1,)](columns, 9, tokens, inverse, 5, leaver, *vectors, 16)
        y = columns[:4].double()
        torch.testing.assert_close(inverse[:4, :4], (y @ y.T + 1).inverse(), rtol=0, atol=1e-12)


if __name__ == "__main__":
    for case in (closed_forms, contiguous, anti_contiguous, unanswered, stopping, tolerance, support):
        print(case.__name__, flush=True)
        case()
