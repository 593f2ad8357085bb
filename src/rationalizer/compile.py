"""Compile the CPU kernels before their first use, in parallel.

    python -m rationalizer.compile [PROCESSES]

A kernel is compiled at its first call, which takes up to 10 s, and cached on disk for later processes. Run this module
where the first user should not wait: before a server starts, before tests, after an upgrade.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch

from rationalizer import ops
from rationalizer.graph import AtMostOne, Budget, FactorGraph, SequenceBudget
from rationalizer.nn.bilstm import BiLSTM
from rationalizer.nn.lstm_without_words import leave_out

SCORES = torch.randn(2, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
PAIRS = SCORES[:, :8].reshape(2, 2, 4)


def _run_backward(z: torch.Tensor) -> None:
    torch.autograd.backward(z.square().sum())


def _highlights() -> None:
    scores = SCORES.clone().requires_grad_()
    # Nearly equal scores use other kernels than spread ones.
    for spread in (1e-2, 1.0):
        _run_backward(ops.sequence_budget(spread * scores, 3, transition=0.1))
    ops.sequence_budget_map(scores, 3, transition=0.1)
    ops.sequence_budget_maps(scores, 3, transition=0.1)


def _closed_forms() -> None:
    scores = SCORES.clone().requires_grad_()
    for z in (
        ops.sparsemax(scores),
        ops.fusedmax(scores),
        ops.budget(scores, 3),
        ops.pair_budget(scores, 3, transition=0.1),
    ):
        _run_backward(z)


def _spans() -> None:
    scores = SCORES.clone().requires_grad_()
    _run_backward(ops.spans(scores, 3, transition=0.1, spans=2))
    ops.spans_map(scores, 3, transition=0.1, spans=2)


def _matchings() -> None:
    for layer, best in ((ops.matching, ops.matching_map), (ops.monotone_matching, ops.monotone_matching_map)):
        scores = PAIRS.clone().requires_grad_()
        _run_backward(layer(scores))
        best(scores)
    ops.sinkhorn(PAIRS)


def _graphs() -> None:
    graph = FactorGraph()
    z = graph.variable(SCORES.clone().requires_grad_())
    graph.add(SequenceBudget(z, 3, 0.1))
    graph.add(AtMostOne(z[:, :4], dim=-1))
    graph.add(Budget(z[:, 4:], 1))
    _run_backward(graph.lp_sparsemap(solver="general")[z])
    graph.map()


def _word_weights() -> None:
    with torch.inference_mode():
        leave_out(BiLSTM(4, 4), torch.ones(1, 4), torch.ones(1, 1), torch.ones(1, dtype=torch.int64), [[0]])


# The slowest first.
GROUPS: tuple[Callable[[], None], ...] = (_highlights, _spans, _graphs, _matchings, _closed_forms, _word_weights)


def compile_kernels(processes: int | None = None) -> None:
    """Compile all kernels that are not in the cache yet; by default with one process per core."""
    with ProcessPoolExecutor(processes or os.cpu_count(), get_context("spawn")) as pool:
        for task in [pool.submit(group) for group in GROUPS]:
            task.result()


if __name__ == "__main__":
    compile_kernels(int(sys.argv[1]) if len(sys.argv) > 1 else None)
