"""Layers that align the words of two texts."""

from __future__ import annotations

from typing import Any

import torch
from tests.ops.oracles_matching import KINDS, best_value, shape_for, violation
from torch import Tensor

from rationalizer import ops
from soak import layer_checks as checks
from soak.cases import Case, Unclear, require
from soak.layer_checks import EXACT, close, noise, numpy


def _sides(case: Case, pairs: int, m: int, n: int, *, exact: bool) -> dict[str, Tensor]:
    """Draw masks of both sides; none if `exact`, so that "exactly one" stays feasible."""
    if exact:
        return {}
    masks = {"row_mask": checks.draw_mask(case, pairs, m), "column_mask": checks.draw_mask(case, pairs, n)}
    return {name: mask for name, mask in masks.items() if mask is not None}


def _real(scores: Tensor, sides: dict[str, Tensor]) -> Tensor:
    real = torch.ones_like(scores, dtype=torch.bool)
    if "row_mask" in sides:
        real = real & sides["row_mask"][:, :, None]
    if "column_mask" in sides:
        real = real & sides["column_mask"][:, None, :]
    return real


def _unmasked(scores: Tensor, sides: dict[str, Tensor], b: int) -> tuple[Any, ...]:
    """Return the index of the unmasked rows and columns of one pair."""
    rows = sides["row_mask"][b].nonzero()[:, 0] if "row_mask" in sides else torch.arange(scores.shape[1])
    columns = sides["column_mask"][b].nonzero()[:, 0] if "column_mask" in sides else torch.arange(scores.shape[2])
    return b, rows[:, None], columns


def _draw(case: Case, largest: float) -> tuple[Tensor, torch.dtype, dict[str, Any], dict[str, Tensor]]:
    kind = case.pick(list(KINDS))
    small, large = sorted(checks.draw_size(case, 24) for _ in range(2))
    m, n = shape_for(kind, small, large)
    pairs = int(case.random.integers(1, 4))
    scores = checks.draw_scores(case, pairs, m, n, largest=largest)
    options = dict(KINDS[kind])
    if "budget" in options:
        options["budget"] = int(case.random.integers(0, small + 2))
    sides = _sides(case, pairs, m, n, exact="rows" in options or "columns" in options)
    dtype = checks.draw_dtype(case, scores)
    case.note(f"{pairs} x {m} x {n}, {options}, masks {list(sides)}, {dtype}")
    return scores.to(dtype).double(), dtype, options, sides


def _full(options: dict[str, Any]) -> dict[str, Any]:
    return {"rows": "at_most_one", "columns": "at_most_one", "budget": None, **options}


def matching(case: Case) -> None:
    scores, dtype, options, sides = _draw(case, 1e9)
    temperature = case.pick([1.0, 1.0, 0.1, 5.0])
    case.note(f"temperature {temperature}")
    z = ops.matching(scores, temperature=temperature, **options, **sides)
    checks.check_masked(z, _real(scores, sides))
    if dtype != torch.float64:
        checks.check_rounding(ops.matching(scores.to(dtype), temperature=temperature, **options, **sides), z, dtype)
    for b in range(len(scores)):
        index = _unmasked(scores, sides, b)
        s, found = scores[index] / temperature, z[index]
        if not s.numel():
            continue
        outside = violation(found[None], **options)
        require(outside <= EXACT, f"violates the polytope by {outside:.2e}")
        if sides:
            alone = ops.matching(scores[index][None], temperature=temperature, **options)[0]
            close(alone, found, noise(s), "masked differs from truncated")
        slope = s - found
        if float(slope.abs().max()) < 1e6:  # the oracle itself gives forbidden pairs a cost of 1e9
            gap = best_value(numpy(slope), **_full(options)) - float((slope * found).sum())
            require(gap <= noise(s) * (1 + 1e-3 * float(s.abs().sum())), f"not optimal: gap {gap:.2e}")
    if case.chance(0.4):
        checks.check_nonexpansive(case, lambda s: ops.matching(s, **options, **sides), scores / temperature)
    if case.chance(0.3):
        checks.check_derivative(case, lambda s: ops.matching(s, temperature=temperature, **options, **sides), scores)


def matching_map(case: Case) -> None:
    scores, dtype, options, sides = _draw(case, 1e5)
    y = ops.matching_map(scores, **options, **sides)
    checks.check_masked(y, _real(scores, sides))
    require(bool(((y == 0) | (y == 1)).all()), "not 0/1")
    if dtype != torch.float64:
        checks.check_rounding(ops.matching_map(scores.to(dtype), **options, **sides), y, dtype)
    for b in range(len(scores)):
        index = _unmasked(scores, sides, b)
        s, found = scores[index], y[index]
        if not s.numel():
            continue
        require(violation(found[None], **options) <= 0, "not a matching, or above the budget")
        value, best = float((s * found).sum()), best_value(numpy(s), **_full(options))
        require(abs(value - best) <= 1e-11 * float(s.abs().sum()), "value", value, "of", best)


def sinkhorn(case: Case) -> None:
    m, n, pairs = checks.draw_size(case, 24), checks.draw_size(case, 24), int(case.random.integers(1, 4))
    scores = torch.from_numpy(case.random.standard_normal((pairs, m, n))) * case.pick([1e-6, 0.1, 1.0, 5.0])
    epsilon = case.pick([0.1, 0.5, 1.0, 10.0])
    exact = case.chance(0.5)
    sides = {} if exact else _sides(case, pairs, m, n, exact=False)
    options = {"kind": "exact_k", "k": int(case.random.integers(0, min(m, n) + 1))} if exact else {}
    case.note(f"{pairs} x {m} x {n}, epsilon {epsilon}, {options}, masks {list(sides)}")
    settings: dict[str, Any] = {**options, **sides, "epsilon": epsilon}
    plan, info = ops.sinkhorn(scores, return_info=True, **settings)
    checks.check_masked(plan, _real(scores, sides))
    if not bool(info.converged.all()):
        raise Unclear(f"sinkhorn stopped at a gap of {float(info.gap.max()):.1e}")
    require(plan.min() >= 0, "negative mass")
    require(plan.sum(-1).max() <= 1 + 1e-5 and plan.sum(-2).max() <= 1 + 1e-5, "a sum above one")
    if exact:
        close(plan.sum((-1, -2)), torch.full((pairs,), float(options["k"])), 1e-5 * (m + n), "does not align k")
    for b in range(pairs):
        index = _unmasked(scores, sides, b)
        s, found = scores[index] / epsilon, plan[index]
        if min(s.shape) > 1 and bool((found > 1e-200).all()):
            # log P − s/ε = u_i + v_j, so the alternating sum of every 2 × 2 submatrix is 0.
            rest = found.log() - s
            close(
                rest - rest[:1] - rest[:, :1] + rest[:1, :1],
                torch.zeros_like(s),
                1e-8,
                "not of the form exp(s + u + v)",
            )
    if case.chance(0.2) and scores.abs().max() / epsilon < 20:
        tight = {**settings, "tolerance": 1e-12}
        try:
            checks.check_derivative(case, lambda s: ops.sinkhorn(s, **tight), scores, smooth=True)
        except ops.ConvergenceWarning:
            return  # only the finite differences need 1e-12


def gumbel_matching(case: Case) -> None:
    scores, dtype, _, _ = _draw(case, 1e9)
    pairs, m, n = scores.shape
    sides = _sides(case, pairs, m, n, exact=False)
    real, training, seed = _real(scores, sides), case.chance(0.6), int(case.random.integers(2**31))
    case.note(f"masks {list(sides)}, training {training}")

    def sample() -> ops.GumbelMatching:
        generator = torch.Generator().manual_seed(seed)
        temperature = 0.5
        return ops.gumbel_matching(
            scores.to(dtype), temperature=temperature, training=training, generator=generator, **sides
        )

    found, again = sample(), sample()
    near = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 0.1}[dtype]
    for name, dim, z, same in (("rows", -1, found.rows, again.rows), ("columns", -2, found.columns, again.columns)):
        checks.check_masked(z, real, name)
        require(torch.equal(z, same), "the same generator gave another sample")
        nonempty = real.any(dim)
        close(z.double().sum(dim)[nonempty], torch.ones(int(nonempty.sum())).double(), near, f"{name} do not sum to 1")
        if not training:
            best = scores.masked_fill(~real, -torch.inf).argmax(dim, keepdim=True)
            expected = torch.zeros_like(scores).scatter_(dim, best, 1.0) * real
            require(torch.equal(z.double(), expected), name, "are not the best, the first among equals")


LAYERS = {
    "matching": matching,
    "matching_map": matching_map,
    "sinkhorn": sinkhorn,
    "gumbel_matching": gumbel_matching,
}
