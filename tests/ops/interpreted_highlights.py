"""The highlight layers' Triton kernels, interpreted, against the Numba path.

Run by `test_triton_interpreter`, in a process of its own.
"""

# isort: off
import tests.ops.interpreted  # noqa: F401  first: it switches the interpreter on

# isort: on
import sys
from importlib import import_module

import torch
from torch import Tensor

import rationalizer.ops  # noqa: F401  registers the custom ops
from tests.ops.layers import random_mask

KERNELS = "rationalizer.ops.kernels."
LIMITS = torch.tensor([3, 2, 1, 0, 4, 99])
LEAST = torch.tensor([2, 2, 1, 0, 1, 3])


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
        for least, shift in ((None, 0.0), (LEAST, 0.0), (LEAST, -3.0 * scale)):
            args = (scores + shift, mask, LIMITS, least)
            same(launcher("budget_cuda", "budget")(*args), op("budget", "_budget")(*args))
        tv, tv_cuda = op("fusedmax", "_total_variation"), launcher("total_variation_cuda", "total_variation")
        x = tv(scores, mask, 0.4 * scale)
        same([tv_cuda(scores, mask, 0.4 * scale)], [x])
        args = (g, x, mask, 0.4 * scale)
        back = launcher("total_variation_cuda", "total_variation_backward")
        same([back(*args)], [op("fusedmax", "_total_variation_backward")(*args)])
        pair = op("pair_budget", "_pair_budget")
        for least, shift in ((None, 0.0), (LEAST, -2.0 * scale)):
            args = (scores + shift, 0.5 * edges, mask, LIMITS, least)
            z, tau = pair(*args)
            same(launcher("pair_budget_cuda", "pair_budget")(*args), (z, tau))
            args = (g, z, 0.5 * edges, mask, tau)
            back = launcher("pair_budget_cuda", "pair_budget_backward")
            same(back(*args), op("pair_budget", "_pair_budget_backward")(*args))


def sequences(ratio: float, *tolerances: float, shift: float = 0.0, least: Tensor | None = None) -> None:
    """What the certificate settles is Triton's, the rest the host's: together they are what the CPU gives."""
    solve, back = (launcher("sequence_budget_cuda", name) for name in ("sequence_budget", "sequence_budget_backward"))
    hard = closed = 0
    for n, scale, seed in ((7, 0.3, 3), (8, 1.0, 16)):
        scores, edges, mask, g = problem(n, scale, seed)
        args = (scores + shift * scale, ratio * edges, mask, LIMITS)
        for tolerance in tolerances:
            expected = op("sequence_budget", "_sequence_budget")(*args, 1000, tolerance, least)
            ours = solve(*args, 1000, tolerance, least)
            for i in (0, 1, 2, 4, 5, 6):  # all but the room for sequences, of which some is never written to
                same([ours[i]], [expected[i]])
            hard, closed = hard + int((ours[2] > 0).sum()), closed + int((ours[2] == 0).sum())
            rest = (ratio * edges, mask)
            expected = op("sequence_budget", "sequence_budget_backward")(g, expected[0], *rest, *expected[1:4])
            same(back(g, ours[0], *rest, *ours[1:4]), expected)
            easy = ours[2] == 0  # without an open row it is Triton's all the way
            again = solve(*(t[easy] for t in args), 1000, tolerance, None if least is None else least[easy])
            got = back(g[easy], again[0], *(t[easy] for t in rest), *again[1:4])
            same(got, [t[easy] for t in expected])
        y = launcher("sequence_budget_map_cuda", "sequence_budget_map")(*args, least)
        same([y], [op("sequence_budget_map", "_sequence_budget_map")(*args, least)], 0)
    assert hard >= 3, "no row was left to the host"
    assert closed >= 2, "all rows were left to the host"


def spans() -> None:
    """The rows are solved on the CPU, whose op checks what is valid; here such rows are NaN, and infeasible ones 0."""
    solve = launcher("spans_cuda", "spans")
    scores, edges, mask, g = problem(12, 1.0)
    numbers = torch.arange(12).expand(6, 12)
    zeros = torch.zeros_like(numbers)
    fixed = zeros.clone()
    fixed[2, mask[2].nonzero()[0]] = 1
    group = numbers // 4
    limits = torch.tensor([3, 2, 4, 0, 4, 99])
    for spans, least in ((2, None), (1, torch.tensor([1, 0, 2, 0, 3, 0]))):
        bounds = torch.full((6,), spans)
        args = (scores, edges, mask, limits, bounds, numbers, fixed, group, 1, 3, 2, 1000, 0.0, least)
        expected, ours = op("spans", "_spans")(*args), solve(*args)
        for i in (0, 1, 3, 4, 5):
            same([ours[i]], [expected[i]])
        rest = (g, ours[0], edges, mask, ours[3])
        got = launcher("sequence_budget_cuda", "sequence_budget_backward")(*rest, *ours[1:3])
        same(got, op("sequence_budget", "sequence_budget_backward")(*rest, *expected[1:3]))
    mask[:] = True
    fixed[2, :5] = 1  # more than the budget
    scores[1, 3], edges[5, 2] = float("nan"), float("inf")
    group = group.clone()
    group[4, 7] = 0
    z, size, _, converged, _, gap = solve(
        scores, edges, mask, limits, bounds, numbers, fixed, group, 1, 3, 2, 1000, 0.0
    )
    lost = torch.tensor([False, True, False, False, True, True])
    assert torch.equal(z.isnan().all(-1), lost)
    assert torch.equal(z.isnan().any(-1), lost)
    assert (z[2] == 0).all()
    assert gap[2] == float("inf")
    assert converged.tolist() == [True, False, False, True, False, False]
    assert (size[converged] > 0).all()


def contiguous() -> None:
    sequences(1.0, 0.0, 0.3)


def anti_contiguous() -> None:
    sequences(-0.5, 0.0)


def lower_bounds() -> None:
    sequences(1.0, 0.0, shift=-1.0, least=LEAST)


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
        above = torch.tensor([2, 1, 1, 0, 3, 0])  # the budget in row 4
        bounded = launcher(module, name)(scores, *needs_edges, mask, limits, *steps, above)
        bounded = bounded if isinstance(bounded, Tensor) else bounded[0]
        lost = torch.tensor([False, True, name != "budget", True, True, False])
        assert torch.equal(bounded.isnan().all(-1), lost), name
        result = launcher(module, name)(scores, *needs_edges, mask, limits, *steps)
        z = result if isinstance(result, Tensor) else result[0]
        lost = torch.tensor([False, True, name != "budget", True, False, False])
        assert torch.equal(z.isnan().all(-1), lost), name
        assert torch.equal(z.isnan().any(-1), lost), name
        if name == "sequence_budget":
            assert result[2].any(), "without a hard row the host has no part in it"
            gradients = launcher(module, "sequence_budget_backward")(torch.ones_like(z), z, edges, mask, *result[1:4])
            for gradient in gradients:
                assert torch.equal(gradient.isnan().any(-1), lost)


if __name__ == "__main__":
    for case in (closed_forms, contiguous, anti_contiguous, lower_bounds, spans, unanswered):
        print(case.__name__, flush=True)
        case()
