"""Layers that select words of one text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from tests.ops import oracles
from torch import Tensor

from rationalizer import ops
from rationalizer.graph import FactorGraph, SequenceBudget
from soak import layer_checks as checks
from soak.cases import Case, Unclear, require
from soak.layer_checks import EXACT, close, noise, numpy

SMALL = 7  # words, for oracles that enumerate


@dataclass(frozen=True)
class Inputs:
    """The inputs of a layer for a batch of texts; `transition` has one entry per row and edge."""

    scores: Tensor
    mask: Tensor | None
    budget: Tensor
    transition: Tensor
    temperature: float
    dtype: torch.dtype

    @property
    def real(self) -> Tensor:
        return torch.ones_like(self.scores, dtype=torch.bool) if self.mask is None else self.mask

    def rows(self):
        """Yield for each row the unmasked scores and transitions over the temperature, the budget, and the index."""
        for b in range(len(self.scores)):
            kept = self.real[b].nonzero()[:, 0]
            edges = self.transition[b, kept[:-1]] if len(kept) > 1 else self.transition[b, :0]
            s, r = self.scores[b, kept] / self.temperature, edges / self.temperature
            yield s, r, int(self.budget[b]), (b, kept)


Layer = Callable[[Tensor, Inputs, Tensor, Tensor | None], Tensor]  # scores, the rest, transition, mask


def draw(case: Case, sign: str = "±") -> Inputs:
    rows, n = int(case.random.integers(1, 4)), checks.draw_size(case)
    scores = checks.draw_scores(case, rows, n)
    size = float(scores.abs().max()) * case.pick([0.0, 1e-3, 0.1, 1.0, 10.0])
    kind = case.pick(["one", "each", "each"])
    transition = torch.from_numpy(case.random.standard_normal((rows, 1 if kind == "one" else n - 1))) * size
    if sign == "+" or case.chance(0.6):
        transition = transition.abs()
    transition = transition.expand(rows, n - 1).contiguous()
    dtype = checks.draw_dtype(case, torch.cat([scores, transition], -1))
    budget = torch.from_numpy(case.random.integers(0, case.pick([2, n // 3 + 2, n + 2]), rows))
    temperature = case.pick([1.0, 1.0, 0.1, 5.0, 1e-3])
    case.note(f"{rows} x {n}, budgets {budget.tolist()}, temperature {temperature}, {dtype}")
    scores, transition = scores.to(dtype).double(), transition.to(dtype).double()
    return Inputs(scores, checks.draw_mask(case, rows, n), budget, transition, temperature, dtype)


def check_common(case: Case, inputs: Inputs, layer: Layer, *, soft: bool) -> Tensor:
    """Check what holds for every layer: finite, in [0, 1], 0 where masked, dtypes rounded, masked ≡ truncated."""
    z = layer(inputs.scores, inputs, inputs.transition, inputs.mask)
    checks.check_masked(z, inputs.real)
    require(z.min() >= 0 and z.max() <= 1 + EXACT, "outside of [0, 1]:", z)
    if inputs.dtype != torch.float64:
        low = layer(inputs.scores.to(inputs.dtype), inputs, inputs.transition.to(inputs.dtype), inputs.mask)
        checks.check_rounding(low, z, inputs.dtype)
    if case.chance(0.1):
        strided = inputs.scores.mT.contiguous().mT  # the same numbers in another memory layout
        require(torch.equal(layer(strided, inputs, inputs.transition, inputs.mask), z), "depends on the memory layout")
    if inputs.mask is not None:
        for b, kept in ((b, kept) for *_, (b, kept) in inputs.rows() if len(kept)):
            one = Inputs(
                inputs.scores[b : b + 1, kept],
                None,
                inputs.budget[b : b + 1],
                inputs.transition[b : b + 1, kept[:-1]],
                inputs.temperature,
                inputs.dtype,
            )
            alone = layer(one.scores, one, one.transition, None)
            close(alone[0], z[b, kept], noise(inputs.scores / inputs.temperature), "masked differs from truncated")
    if soft:
        scaled = 1 / inputs.temperature
        if case.chance(0.5):
            whole = Inputs(inputs.scores, inputs.mask, inputs.budget, inputs.transition * scaled, 1.0, inputs.dtype)
            checks.check_nonexpansive(
                case, lambda s: layer(s, whole, whole.transition, whole.mask), inputs.scores * scaled
            )
        if case.chance(0.3) and inputs.temperature >= 0.1:
            checks.check_derivative(
                case, lambda s, r: layer(s, inputs, r, inputs.mask), inputs.scores, inputs.transition
            )
    return z


def check_budget(inputs: Inputs, z: Tensor) -> None:
    above = (z.sum(-1) - inputs.budget).max().item()
    require(above <= EXACT, f"above the budget by {above:.2e}")


def check_gap(s: Tensor, z: Tensor, best: float) -> None:
    """z is the projection of s iff (s − z)·y ≤ (s − z)·z for all points y of the polytope."""
    gap = best - float((s - z) @ z)
    allowed = noise(s) * (1 + float(s.abs().sum()) * 1e-3)
    require(gap <= allowed, f"not optimal: gap {gap:.2e}")


def check_reference(z: Tensor, s: Tensor, oracle: Callable[..., oracles.Solution], *arguments: Any) -> None:
    if float(s.abs().max()) > 1e5:
        return  # beyond the oracle's precision
    try:
        solution = oracle(numpy(s), *arguments)
    except RuntimeError as error:
        raise Unclear(str(error)) from None
    tolerance = 1e-7 if solution.proven else 1e-3
    close(z, torch.from_numpy(solution.z), tolerance, f"not the reference's answer (proven: {solution.proven})")


def sparsemax(case: Case) -> None:
    inputs = draw(case)
    z = check_common(
        case, inputs, lambda s, d, r, mask: ops.sparsemax(s, mask=mask, temperature=d.temperature), soft=True
    )
    for s, _, _, index in inputs.rows():
        if len(s):
            require(abs(float(z[index].sum()) - 1) <= EXACT, "does not sum to 1")
            check_gap(s, z[index], float((s - z[index]).max()))


def fusedmax(case: Case) -> None:
    inputs = draw(case)
    tv = case.pick([0.0, 0.01, 0.7, 5.0])
    case.note(f"tv {tv}")
    z = check_common(
        case, inputs, lambda s, d, r, mask: ops.fusedmax(s, tv=tv, mask=mask, temperature=d.temperature), soft=True
    )
    for s, _, _, index in inputs.rows():
        if len(s):
            require(abs(float(z[index].sum()) - 1) <= EXACT, "does not sum to 1")
            if 1 < len(s) <= SMALL:
                check_reference(z[index], s, oracles.fusedmax, tv)


def budget(case: Case) -> None:
    inputs = draw(case)
    z = check_common(
        case, inputs, lambda s, d, r, mask: ops.budget(s, d.budget, mask=mask, temperature=d.temperature), soft=True
    )
    check_budget(inputs, z)
    for s, _, limit, index in inputs.rows():
        best = (s - z[index]).clamp(min=0).sort(descending=True).values[:limit].sum()
        check_gap(s, z[index], float(best))


def pair_budget(case: Case) -> None:
    inputs = draw(case, sign="+")

    def layer(s, d, r, mask):
        return ops.pair_budget(s, d.budget, transition=r.clamp(min=0), mask=mask, temperature=d.temperature)

    z = check_common(case, inputs, layer, soft=True)
    check_budget(inputs, z)
    for s, r, limit, index in inputs.rows():
        if 0 < len(s) <= SMALL:
            check_reference(z[index], s, oracles.pair_budget, numpy(r), limit)


def sequence_budget(case: Case) -> None:
    inputs = draw(case)

    def layer(s, d, r, mask):
        return ops.sequence_budget(s, d.budget, transition=r, mask=mask, temperature=d.temperature)

    z = check_common(case, inputs, layer, soft=True)
    check_budget(inputs, z)
    for s, r, limit, index in inputs.rows():
        if 0 < len(s) <= SMALL:
            check_reference(z[index], s, oracles.sequence_budget, numpy(r), limit)
        elif 1 < len(s) <= 40 and float(s.abs().max()) < 1e5:
            close(z[index], _by_general_solver(s, r, limit), 1e-7 + noise(s), "differs from the general solver")


def _by_general_solver(s: Tensor, r: Tensor, limit: int) -> Tensor:
    graph = FactorGraph()
    variable = graph.variable(s[None])
    graph.add(SequenceBudget(variable, limit, r[None]))
    try:
        return graph.lp_sparsemap(solver="general")[variable][0]
    except ops.ConvergenceWarning as warning:
        raise Unclear(f"the reference solver: {warning}") from None


def best_sequence(s: np.ndarray, r: np.ndarray, limit: int) -> float:
    """Return the value of the best selection of at most `limit` words, by dynamic programming."""
    off, on = np.full(limit + 1, -np.inf), np.full(limit + 1, -np.inf)
    off[0] = 0.0
    for i, score in enumerate(s):
        selected = np.maximum(off, on + (r[i - 1] if i else 0.0))[:-1] + score
        off, on = np.maximum(off, on), np.concatenate([[-np.inf], selected])
    return float(max(off.max(), on.max()))


def sequence_budget_map(case: Case) -> None:
    inputs = draw(case)
    layer = lambda s, d, r, mask: ops.sequence_budget_map(s, d.budget, transition=r, mask=mask)  # noqa: E731
    z = check_common(case, inputs, layer, soft=False)
    check_budget(inputs, z)
    for s, r, limit, index in inputs.rows():
        if not len(s):
            continue
        y = z[index]
        require(bool(((y == 0) | (y == 1)).all()), "not 0/1")
        value = float(y @ s + (y[1:] * y[:-1]) @ r)
        best = best_sequence(numpy(s), numpy(r), min(limit, len(s)))
        require(abs(value - best) <= 1e-12 * float(s.abs().sum() + r.abs().sum()), "value", value, "of", best)


def draw_rules(case: Case) -> dict[str, int]:
    """Draw constraints that are the same for all rows and feasible for every text."""
    drawn = {"spans": case.pick([0, 1, 2, 5]), "shortest": case.pick([1, 2, 4]), "longest": case.pick([4, 5, 9])}
    rules = {name: value for name, value in drawn.items() if case.chance(0.6)}
    case.note(f"{rules}")
    return rules


def spans(case: Case) -> None:
    inputs, rules = draw(case), draw_rules(case)

    def layer(s, d, r, mask):
        return ops.spans(s, d.budget, transition=r, mask=mask, temperature=d.temperature, **rules)

    z = check_common(case, inputs, layer, soft=True)
    check_budget(inputs, z)
    for s, r, limit, index in inputs.rows():
        if 0 < len(s) <= SMALL:
            oracle = partial(oracles.spans, **rules)
            check_reference(z[index], s, oracle, numpy(r), limit)


def spans_map(case: Case) -> None:
    inputs, rules = draw(case), draw_rules(case)
    layer = lambda s, d, r, mask: ops.spans_map(s, d.budget, transition=r, mask=mask, **rules)  # noqa: E731
    z = check_common(case, inputs, layer, soft=False)
    for s, r, limit, index in inputs.rows():
        if 0 < len(s) <= SMALL:
            y, allowed = numpy(z[index]), oracles.allowed(len(s), limit, **rules)
            require(bool((allowed == y).all(1).any()), "breaks a constraint:", y)
            values = oracles.sequence_scores(numpy(s), numpy(r), np.vstack([y[None], allowed]))
            size = float(s.abs().sum() + r.abs().sum())
            require(values.max() - values[0] <= 1e-12 * size, "value", values[0], "of", values.max())


def top_k(case: Case) -> None:
    inputs = draw(case)
    z = check_common(case, inputs, lambda s, d, r, mask: ops.top_k(s, d.budget, mask=mask), soft=False)
    for s, _, limit, index in inputs.rows():
        expected = torch.zeros_like(s)
        expected[torch.from_numpy(np.argsort(-numpy(s), kind="stable")[:limit].copy())] = 1
        require(torch.equal(z[index], expected), "not the best", limit, "the first among equals")


def contiguous(case: Case) -> None:
    inputs = draw(case)
    z = check_common(case, inputs, lambda s, d, r, mask: ops.contiguous(s, d.budget, mask=mask), soft=False)
    for s, _, limit, index in inputs.rows():
        k, chosen = min(limit, len(s)), z[index].nonzero()[:, 0]
        require(len(chosen) == k, len(chosen), "tokens, not", k)
        if k:
            require(int(chosen[-1] - chosen[0]) == k - 1, "not neighbours")
            sums = s.unfold(0, k, 1).sum(-1)
            shortfall = float(sums.max() - sums[chosen[0]])
            require(shortfall <= 1e-13 * float(s.abs().sum()), f"not the best window by {shortfall:.2e}")


LAYERS = {
    "sparsemax": sparsemax,
    "fusedmax": fusedmax,
    "budget": budget,
    "pair_budget": pair_budget,
    "sequence_budget": sequence_budget,
    "sequence_budget_map": sequence_budget_map,
    "spans": spans,
    "spans_map": spans_map,
    "top_k": top_k,
    "contiguous": contiguous,
}
