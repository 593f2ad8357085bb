"""The layers on the tokens of a text."""

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

SMALL = 7  # tokens, for oracles that enumerate


@dataclass(frozen=True)
class Drawn:
    """A batch of texts and what was asked of it; `transition` has an entry a row and edge."""

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
        """Each row without what is masked: scores and transitions over the temperature, budget, where it was."""
        for b in range(len(self.scores)):
            kept = self.real[b].nonzero()[:, 0]
            edges = self.transition[b, kept[:-1]] if len(kept) > 1 else self.transition[b, :0]
            s, r = self.scores[b, kept] / self.temperature, edges / self.temperature
            yield s, r, int(self.budget[b]), (b, kept)


Layer = Callable[[Tensor, Drawn, Tensor, Tensor | None], Tensor]  # scores, the rest, transition, mask


def draw(case: Case, sign: str = "±") -> Drawn:
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
    return Drawn(scores, checks.draw_mask(case, rows, n), budget, transition, temperature, dtype)


def check_common(case: Case, drawn: Drawn, layer: Layer, *, soft: bool) -> Tensor:
    """What every layer promises: finite, 0 where masked, other dtypes rounded, masked as if absent, in [0, 1]."""
    z = layer(drawn.scores, drawn, drawn.transition, drawn.mask)
    checks.check_masked(z, drawn.real)
    require(z.min() >= 0 and z.max() <= 1 + EXACT, "outside of [0, 1]:", z)
    if drawn.dtype != torch.float64:
        low = layer(drawn.scores.to(drawn.dtype), drawn, drawn.transition.to(drawn.dtype), drawn.mask)
        checks.check_rounding(low, z, drawn.dtype)
    if case.chance(0.1):
        strided = drawn.scores.mT.contiguous().mT  # the same numbers, laid out by columns
        require(torch.equal(layer(strided, drawn, drawn.transition, drawn.mask), z), "depends on the memory layout")
    if drawn.mask is not None:
        for b, kept in ((b, kept) for *_, (b, kept) in drawn.rows() if len(kept)):
            one = Drawn(
                drawn.scores[b : b + 1, kept],
                None,
                drawn.budget[b : b + 1],
                drawn.transition[b : b + 1, kept[:-1]],
                drawn.temperature,
                drawn.dtype,
            )
            alone = layer(one.scores, one, one.transition, None)
            close(alone[0], z[b, kept], noise(drawn.scores / drawn.temperature), "masked is not truncated")
    if soft:
        scaled = 1 / drawn.temperature
        if case.chance(0.5):
            whole = Drawn(drawn.scores, drawn.mask, drawn.budget, drawn.transition * scaled, 1.0, drawn.dtype)
            checks.check_moves(case, lambda s: layer(s, whole, whole.transition, whole.mask), drawn.scores * scaled)
        if case.chance(0.3) and drawn.temperature >= 0.1:
            checks.check_derivative(case, lambda s, r: layer(s, drawn, r, drawn.mask), drawn.scores, drawn.transition)
    return z


def check_budget(drawn: Drawn, z: Tensor) -> None:
    above = (z.sum(-1) - drawn.budget).max().item()
    require(above <= EXACT, f"above the budget by {above:.2e}")


def check_gap(s: Tensor, z: Tensor, best: float) -> None:
    """z projects s if no point y of the polytope has (s − z)·y above (s − z)·z."""
    gap = best - float((s - z) @ z)
    allowed = noise(s) * (1 + float(s.abs().sum()) * 1e-3)
    require(gap <= allowed, f"not optimal: gap {gap:.2e}")


def check_reference(z: Tensor, s: Tensor, oracle: Callable[..., oracles.Solution], *arguments: Any) -> None:
    if float(s.abs().max()) > 1e5:
        return  # the oracle's own digits are used up
    try:
        solution = oracle(numpy(s), *arguments)
    except RuntimeError as error:
        raise Unclear(str(error)) from None
    tolerance = 1e-7 if solution.proven else 1e-3
    close(z, torch.from_numpy(solution.z), tolerance, f"not the reference's answer (proven: {solution.proven})")


def sparsemax(case: Case) -> None:
    drawn = draw(case)
    z = check_common(
        case, drawn, lambda s, d, r, mask: ops.sparsemax(s, mask=mask, temperature=d.temperature), soft=True
    )
    for s, _, _, place in drawn.rows():
        if len(s):
            require(abs(float(z[place].sum()) - 1) <= EXACT, "does not sum to 1")
            check_gap(s, z[place], float((s - z[place]).max()))


def fusedmax(case: Case) -> None:
    drawn = draw(case)
    tv = case.pick([0.0, 0.01, 0.7, 5.0])
    case.note(f"tv {tv}")
    z = check_common(
        case, drawn, lambda s, d, r, mask: ops.fusedmax(s, tv=tv, mask=mask, temperature=d.temperature), soft=True
    )
    for s, _, _, place in drawn.rows():
        if len(s):
            require(abs(float(z[place].sum()) - 1) <= EXACT, "does not sum to 1")
            if 1 < len(s) <= SMALL:
                check_reference(z[place], s, oracles.fusedmax, tv)


def budget(case: Case) -> None:
    drawn = draw(case)
    z = check_common(
        case, drawn, lambda s, d, r, mask: ops.budget(s, d.budget, mask=mask, temperature=d.temperature), soft=True
    )
    check_budget(drawn, z)
    for s, _, limit, place in drawn.rows():
        best = (s - z[place]).clamp(min=0).sort(descending=True).values[:limit].sum()
        check_gap(s, z[place], float(best))


def pair_budget(case: Case) -> None:
    drawn = draw(case, sign="+")

    def layer(s, d, r, mask):
        return ops.pair_budget(s, d.budget, transition=r.clamp(min=0), mask=mask, temperature=d.temperature)

    z = check_common(case, drawn, layer, soft=True)
    check_budget(drawn, z)
    for s, r, limit, place in drawn.rows():
        if 0 < len(s) <= SMALL:
            check_reference(z[place], s, oracles.pair_budget, numpy(r), limit)


def sequence_budget(case: Case) -> None:
    drawn = draw(case)

    def layer(s, d, r, mask):
        return ops.sequence_budget(s, d.budget, transition=r, mask=mask, temperature=d.temperature)

    z = check_common(case, drawn, layer, soft=True)
    check_budget(drawn, z)
    for s, r, limit, place in drawn.rows():
        if 0 < len(s) <= SMALL:
            check_reference(z[place], s, oracles.sequence_budget, numpy(r), limit)
        elif 1 < len(s) <= 40 and float(s.abs().max()) < 1e5:
            close(z[place], _by_the_engine(s, r, limit), 1e-7 + noise(s), "not the general engine's answer")


def _by_the_engine(s: Tensor, r: Tensor, limit: int) -> Tensor:
    graph = FactorGraph()
    variable = graph.variable(s[None])
    graph.add(SequenceBudget(variable, limit, r[None]))
    try:
        return graph.lp_sparsemap(solver="general")[variable][0]
    except ops.ConvergenceWarning as warning:
        raise Unclear(f"the engine to compare with: {warning}") from None


def best_sequence(s: np.ndarray, r: np.ndarray, limit: int) -> float:
    """The value of the best sequence of at most `limit` tokens, by a table over (how many, whether the last is one)."""
    off, on = np.full(limit + 1, -np.inf), np.full(limit + 1, -np.inf)
    off[0] = 0.0
    for i, score in enumerate(s):
        taken = np.maximum(off, on + (r[i - 1] if i else 0.0))[:-1] + score
        off, on = np.maximum(off, on), np.concatenate([[-np.inf], taken])
    return float(max(off.max(), on.max()))


def sequence_budget_map(case: Case) -> None:
    drawn = draw(case)
    layer = lambda s, d, r, mask: ops.sequence_budget_map(s, d.budget, transition=r, mask=mask)  # noqa: E731
    z = check_common(case, drawn, layer, soft=False)
    check_budget(drawn, z)
    for s, r, limit, place in drawn.rows():
        if not len(s):
            continue
        y = z[place]
        require(bool(((y == 0) | (y == 1)).all()), "not 0/1")
        value = float(y @ s + (y[1:] * y[:-1]) @ r)
        best = best_sequence(numpy(s), numpy(r), min(limit, len(s)))
        require(abs(value - best) <= 1e-12 * float(s.abs().sum() + r.abs().sum()), "value", value, "of", best)


def draw_rules(case: Case) -> dict[str, int]:
    """Constraints that are the same for all rows; each text has a selection that keeps to them."""
    drawn = {"spans": case.pick([0, 1, 2, 5]), "shortest": case.pick([1, 2, 4]), "longest": case.pick([4, 5, 9])}
    rules = {name: value for name, value in drawn.items() if case.chance(0.6)}
    case.note(f"{rules}")
    return rules


def spans(case: Case) -> None:
    drawn, rules = draw(case), draw_rules(case)

    def layer(s, d, r, mask):
        return ops.spans(s, d.budget, transition=r, mask=mask, temperature=d.temperature, **rules)

    z = check_common(case, drawn, layer, soft=True)
    check_budget(drawn, z)
    for s, r, limit, place in drawn.rows():
        if 0 < len(s) <= SMALL:
            oracle = partial(oracles.spans, **rules)
            check_reference(z[place], s, oracle, numpy(r), limit)


def spans_map(case: Case) -> None:
    drawn, rules = draw(case), draw_rules(case)
    layer = lambda s, d, r, mask: ops.spans_map(s, d.budget, transition=r, mask=mask, **rules)  # noqa: E731
    z = check_common(case, drawn, layer, soft=False)
    for s, r, limit, place in drawn.rows():
        if 0 < len(s) <= SMALL:
            y, allowed = numpy(z[place]), oracles.allowed(len(s), limit, **rules)
            require(bool((allowed == y).all(1).any()), "breaks a constraint:", y)
            values = oracles.sequence_scores(numpy(s), numpy(r), np.vstack([y[None], allowed]))
            size = float(s.abs().sum() + r.abs().sum())
            require(values.max() - values[0] <= 1e-12 * size, "value", values[0], "of", values.max())


def top_k(case: Case) -> None:
    drawn = draw(case)
    z = check_common(case, drawn, lambda s, d, r, mask: ops.top_k(s, d.budget, mask=mask), soft=False)
    for s, _, limit, place in drawn.rows():
        expected = torch.zeros_like(s)
        expected[torch.from_numpy(np.argsort(-numpy(s), kind="stable")[:limit].copy())] = 1
        require(torch.equal(z[place], expected), "not the best", limit, "the first among equals")


def contiguous(case: Case) -> None:
    drawn = draw(case)
    z = check_common(case, drawn, lambda s, d, r, mask: ops.contiguous(s, d.budget, mask=mask), soft=False)
    for s, _, limit, place in drawn.rows():
        k, chosen = min(limit, len(s)), z[place].nonzero()[:, 0]
        require(len(chosen) == k, len(chosen), "tokens, not", k)
        if k:
            require(int(chosen[-1] - chosen[0]) == k - 1, "not neighbours")
            sums = s.unfold(0, k, 1).sum(-1)
            apart = float(sums.max() - sums[chosen[0]])
            require(apart <= 1e-13 * float(s.abs().sum()), f"not the best window by {apart:.2e}")


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
