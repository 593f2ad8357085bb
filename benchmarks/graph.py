"""The graph solver against the ops, on problems that an op solves as well (M:Budget as a graph of AtMostOne rows and
columns and a Budget, …), and at most one word per group against the budget alone."""

from __future__ import annotations

import time

import torch

from benchmarks.timing import interleaved_ms, print_table, verdict
from rationalizer import ops
from rationalizer.graph import AtMostOne, Budget, FactorGraph, Pair, SequenceBudget
from rationalizer.models.devices import set_threads

BATCH, ROWS, COLUMNS, BUDGET = 16, 12, 16, 4
LONG, GROUP, BONUS = 256, 8, 0.1
AT_MOST, PAIRS_AT_MOST, ORACLE_AT_MOST = 20, 15, 60  # largest ratios to the op


def engine(scores: torch.Tensor) -> torch.Tensor:
    g = FactorGraph()
    z = g.variable(scores)
    g.add(AtMostOne(z, dim=-1))
    g.add(AtMostOne(z, dim=-2))
    g.add(Budget(z, BUDGET))
    return g.lp_sparsemap(solver="general")[z]


def sequence(scores: torch.Tensor) -> torch.Tensor:
    g = FactorGraph()
    z = g.variable(scores)
    g.add(SequenceBudget(z, scores.shape[1] // 5, 0.5))
    return g.lp_sparsemap(solver="general")[z]


def neighbours(scores: torch.Tensor) -> torch.Tensor:
    g = FactorGraph()
    z = g.variable(scores)
    g.add(Pair(z[:, :-1], z[:, 1:], BONUS))
    g.add(Budget(z, LONG // 5))
    return g.lp_sparsemap(solver="general")[z]


def groups(scores: torch.Tensor) -> torch.Tensor:
    g = FactorGraph()
    z = g.variable(scores)
    g.add(AtMostOne(z, dim=-1))
    g.add(Budget(z, LONG // 16))
    return g.lp_sparsemap(solver="general")[z]


def matching(scores: torch.Tensor) -> torch.Tensor:
    g = FactorGraph()
    z = g.variable(scores)
    g.add(AtMostOne(z, dim=-1))
    g.add(AtMostOne(z, dim=-2))
    return g.lp_sparsemap(solver="general")[z]


def main() -> None:
    """Measure the CPU time of forward + backward of both on one thread, in one run."""
    rows = []
    generator = torch.Generator().manual_seed(0)
    cases = [
        (f"M:Budget {ROWS}x{COLUMNS}, scale {scale}", scale, (BATCH, ROWS, COLUMNS), engine, _matching)
        for scale in (3, 60)
    ]
    cases += [
        (f"M:AtMostOne2 16x16 (n={LONG}), scale 3", 3, (BATCH, 16, 16), matching, ops.matching),
        (
            f"AtMostOne of {GROUP} + Budget n={LONG}, against the budget",
            1,
            (BATCH, LONG // GROUP, GROUP),
            groups,
            _budget,
        ),
        (f"Pair + Budget n={LONG}, scale 1", 1, (BATCH, LONG), neighbours, _pair_budget),
        ("H:SeqBudget n=64, scale 1", 1, (BATCH, 64), sequence, _sequence_budget),
    ]
    for name, scale, shape, graph, op in cases:
        scores = (scale * torch.randn(shape, generator=generator, dtype=torch.float64)).requires_grad_()
        weights = torch.randn(shape, generator=generator, dtype=torch.float64)
        outputs, steps = [], []
        for layer in (graph, op):

            def step(layer=layer, scores=scores, weights=weights):  # type: ignore[no-untyped-def]
                scores.grad = None
                z = layer(scores)
                (z * weights).sum().backward()
                return z.detach(), scores.grad

            outputs.append(step())
            steps.append(step)
        with set_threads(1):
            times = interleaved_ms(steps, clock=time.process_time)
        off = max(float((a - b).abs().max()) for a, b in zip(*outputs, strict=True))
        same = "another problem" if op is _budget else f"{off:.0e}"
        ratio = times[0] / times[1]
        target = {neighbours: PAIRS_AT_MOST, sequence: ORACLE_AT_MOST}.get(graph, AT_MOST)
        rows.append([name, *times, ratio, same, f"<= {target}x", verdict(ratio <= target)])
    print_table(["graph", "engine CPU ms", "op CPU ms", "ratio", "largest difference", "target", ""], rows)


def _matching(scores: torch.Tensor) -> torch.Tensor:
    return ops.matching(scores, budget=BUDGET)


def _budget(scores: torch.Tensor) -> torch.Tensor:
    return ops.budget(scores.reshape(len(scores), -1), LONG // 16).reshape(scores.shape)


def _pair_budget(scores: torch.Tensor) -> torch.Tensor:
    return ops.pair_budget(scores, LONG // 5, transition=BONUS)


def _sequence_budget(scores: torch.Tensor) -> torch.Tensor:
    return ops.sequence_budget(scores, scores.shape[1] // 5, transition=0.5)


if __name__ == "__main__":
    main()
