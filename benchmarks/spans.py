"""Selections under constraints against `sequence_budget` in the same run: forward, float64, B = 20%, one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.timing import print_table, verdict
from rationalizer import ops

BATCH = 2
LENGTHS = (64, 256, 1024)
SENTENCE = 20  # words
# spread of the scores, transition, temperature: trained models, contiguous ones, and where training starts
REGIMES = ((0.3, 0.001, 0.05), (0.3, 0.3, 0.05), (0.3, 0.1, 1.0), (0.05, 0.1, 1.0))
COMMON = 20  # largest ratio to `sequence_budget` at n = 256


def combinations(n: int) -> dict[str, dict[str, Any]]:
    """Common combinations of constraints. Those before "5 spans" have a target."""
    sentence = (torch.arange(n) // SENTENCE).expand(BATCH, n)
    stopwords = torch.rand(BATCH, n, generator=torch.Generator().manual_seed(n)) < 0.4
    never = -stopwords.to(torch.int8)
    return {
        "never": {"fixed": never},
        "whole sentences": {"unit": sentence},
        "2 spans": {"spans": 2},
        "3 spans, never": {"spans": 3, "fixed": never},
        "2 spans of 3 to 10": {"spans": 2, "shortest": 3, "longest": 10},
        "5 spans": {"spans": 5},
        "at least 3": {"shortest": 3},
        "at most 5": {"longest": 5},
        "5 a sentence": {"group": sentence, "per_group": 5},
    }


def shortest_ms(step: Callable[[], object], seconds: float = 0.3) -> float:
    """Return the minimum processor time of several runs, or of one long run, in milliseconds."""
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < until:
        start = time.process_time()
        step()
        times.append(time.process_time() - start)
        if times[-1] > seconds:
            break
    return 1e3 * min(times)


def main() -> None:
    torch.set_num_threads(1)
    for rules in ({}, {"spans": 2}):  # compiles
        ops.spans(torch.rand(4, 30), 6, transition=0.1, **rules)
    names = list(combinations(64))
    targets = names[: names.index("5 spans")]
    for n in LENGTHS:
        limit = max(1, round(0.2 * n))
        rows = []
        for spread, transition, temperature in REGIMES:
            scores = 0.5 + spread * torch.randn(
                BATCH, n, dtype=torch.float64, generator=torch.Generator().manual_seed(n)
            )

            def base(s: Tensor = scores, r: float = transition, t: float = temperature, most: int = limit) -> Tensor:
                return ops.sequence_budget(s, most, transition=r, temperature=t)

            def layer(
                rules: dict[str, Any],
                s: Tensor = scores,
                r: float = transition,
                t: float = temperature,
                most: int = limit,
            ) -> Callable[[], Tensor]:
                return lambda: ops.spans(s, most, transition=r, temperature=t, **rules)

            ours = shortest_ms(base)
            ratios = {name: shortest_ms(layer(rules)) / ours for name, rules in combinations(n).items()}
            met = all(ratios[name] <= COMMON for name in targets)
            cells = [f"{ratios[name]:.1f}x" for name in names]
            rows.append(
                [spread, transition, temperature, f"{ours / BATCH:.3f} ms", *cells, verdict(met) if n == 256 else ""]
            )
        print(f"\nn = {n}: processor time of sequence_budget per row, then the ratios of the others to it.\n")
        print_table(["spread", "transition", "T", "sequence_budget", *names, f"<= {COMMON}x" if n == 256 else ""], rows)


if __name__ == "__main__":
    main()
