"""Compiles the CPU kernels ahead of their first use, several at a time.

    python -m rationalizer.compile [PROCESSES]

A kernel is compiled when it is first called, which takes seconds to a minute, and kept on disk for later processes.
Run this where a first user shall not wait: before a server starts, before tests, after an upgrade.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch

from rationalizer import ops
from rationalizer.graph import AtMostOne, Budget, FactorGraph, SequenceBudget

SCORES = torch.randn(2, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
PAIRS = SCORES[:, :8].reshape(2, 2, 4)


def _both_ways(z: torch.Tensor) -> None:
    torch.autograd.backward(z.square().sum())


def _highlights() -> None:
    scores = SCORES.clone().requires_grad_()
    # Rows that differ in difficulty: nearly the same scores take other ways than others.
    for spread in (1e-2, 1.0):
        _both_ways(ops.sequence_budget(spread * scores, 3, transition=0.1))
    ops.sequence_budget_map(scores, 3, transition=0.1)


def _closed_forms() -> None:
    scores = SCORES.clone().requires_grad_()
    for z in (
        ops.sparsemax(scores),
        ops.fusedmax(scores),
        ops.budget(scores, 3),
        ops.pair_budget(scores, 3, transition=0.1),
    ):
        _both_ways(z)


def _spans() -> None:
    scores = SCORES.clone().requires_grad_()
    _both_ways(ops.spans(scores, 3, transition=0.1, spans=2))
    ops.spans_map(scores, 3, transition=0.1, spans=2)


def _matchings() -> None:
    for layer, best in ((ops.matching, ops.matching_map), (ops.monotone_matching, ops.monotone_matching_map)):
        scores = PAIRS.clone().requires_grad_()
        _both_ways(layer(scores))
        best(scores)
    ops.sinkhorn(PAIRS)


def _graphs() -> None:
    graph = FactorGraph()
    z = graph.variable(SCORES.clone().requires_grad_())
    graph.add(SequenceBudget(z, 3, 0.1))
    graph.add(AtMostOne(z[:, :4], dim=-1))
    graph.add(Budget(z[:, 4:], 1))
    _both_ways(graph.lp_sparsemap(solver="general")[z])
    graph.map()


GROUPS: tuple[Callable[[], None], ...] = (_highlights, _spans, _graphs, _matchings, _closed_forms)  # the longest first


def _leave_garbage() -> None:
    """A process that ends when it has compiled needs no collector to look through all of Numba again and again."""
    gc.disable()


def compile_kernels(processes: int | None = None) -> None:
    """Compiles all kernels that are not compiled yet, in as many processes as there are cores."""
    with ProcessPoolExecutor(processes or os.cpu_count(), get_context("spawn"), _leave_garbage) as pool:
        for done in [pool.submit(group) for group in GROUPS]:
            done.result()


if __name__ == "__main__":
    compile_kernels(int(sys.argv[1]) if len(sys.argv) > 1 else None)
