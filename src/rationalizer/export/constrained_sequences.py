"""The best sequence of words under constraints, in NumPy: `ops.spans_map` for one text without PyTorch.

Words that are selected together form a block, and a path makes one step per block. A state is (number of spans, length
of the current span, words selected in the current sentence); see `ops/kernels/constraint_graph_cpu.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.constraints.selection_table import count_states
from rationalizer.export.best_sequences import FREE, MUST, NEVER, Scores, Selected, best_with_fixed_words
from rationalizer.work_limits import check_time

SKIP, START, CONTINUE = 0, 1, 2
Arc = tuple[int, int, int]  # from state, to state, SKIP or START or CONTINUE


@dataclass(frozen=True)
class WordConstraints:
    """Constraints on the selectable words of one text; the defaults exclude nothing."""

    spans: int | None = None
    shortest: int = 1
    longest: int | None = None
    unit: NDArray[Any] | None = None  # words with equal numbers are selected together
    fixed: NDArray[Any] | None = None  # MUST, NEVER or FREE
    group: NDArray[Any] | None = None  # sentence numbers
    per_group: int | None = None

    @property
    def only_fixed(self) -> bool:
        others = (self.spans, self.longest, self.unit, self.group)
        return self.shortest == 1 and all(each is None for each in others)


@dataclass(frozen=True)
class _Block:
    first: int  # word
    size: int
    required: int  # MUST, NEVER or FREE
    starts_group: bool
    crosses_group: bool  # whether it continues into another group
    before: int  # number of its words in the group in which it starts
    after: int  # and in the one in which it ends


def best_constrained_sequence(
    scores: Scores, transition: float, budget: int, constraints: WordConstraints
) -> Selected | None:
    """argmax s·y + t Σ y_i y_{i+1} s.t. Σy ≤ budget and the constraints; None if no selection is feasible."""
    n = len(scores)
    fixed = np.zeros(n, np.int64) if constraints.fixed is None else constraints.fixed
    if constraints.only_fixed:
        return best_with_fixed_words(scores, transition, budget, fixed)
    spans = n if constraints.spans is None else min(constraints.spans, n)
    longest = max(n, constraints.shortest) if constraints.longest is None else constraints.longest
    per_group = n if constraints.per_group is None else constraints.per_group
    unit = np.arange(n) if constraints.unit is None else constraints.unit
    group = np.zeros(n, np.int64) if constraints.group is None else constraints.group
    blocks, possible = _blocks(unit.tolist(), fixed.tolist(), group.tolist(), per_group)
    graph = _Graph(blocks, possible, budget, spans, constraints.shortest, longest, per_group, group.tolist())
    return graph.best_path(scores, transition)


def _blocks(unit: list[int], fixed: list[int], group: list[int], per_group: int) -> tuple[list[_Block], bool]:
    """The blocks, and whether no two requirements contradict each other on one."""
    blocks, possible = [], True
    for _, members in groupby(range(len(unit)), key=unit.__getitem__):
        words = list(members)
        first, groups = words[0], [group[i] for i in words]
        required, count = FREE, 0
        for k, i in enumerate(words):
            count = count + 1 if k and groups[k] == groups[k - 1] else 1
            for requirement in (fixed[i], NEVER if count > per_group else FREE):
                if requirement != FREE:
                    possible = possible and required != -requirement
                    required = requirement
        crosses = groups[0] != groups[-1]
        starts = first > 0 and group[first] != group[first - 1]
        before = groups.count(groups[0])
        blocks.append(_Block(first, len(words), required, starts, crosses, before, count))
    return blocks, possible


class _Graph:
    """The paths that satisfy the constraints, for a number of words up to the budget."""

    def __init__(
        self,
        blocks: list[_Block],
        possible: bool,
        budget: int,
        spans: int,
        shortest: int,
        longest: int,
        per_group: int,
        group: list[int],
    ) -> None:
        sizes = [len(list(members)) for _, members in groupby(group)]
        free = sum(block.size for block in blocks if block.required != NEVER)
        counters = count_states(free, sizes, budget, spans, shortest, longest, per_group)
        budget, shortest, cap, any_length, count_spans, count_group, uses, states = counters
        lengths = cap + 1
        self.blocks, self.budget, self.states = blocks, budget, states
        self.final = [(state // uses % lengths) in (0, *range(shortest, cap + 1)) for state in range(states)]
        # The numbers of selected words with which a path can reach a state: from `low` to `high`.
        self.low = np.full((len(blocks) + 1, states), budget + 1)
        self.high = np.full((len(blocks) + 1, states), -1)
        self.low[0, 0], self.high[0, 0] = 0, 0 if possible else -1
        self.arcs: list[list[Arc]] = []
        for b, block in enumerate(blocks):
            check_time()
            arcs: list[Arc] = []
            for state in np.flatnonzero(self.low[b] <= self.high[b]).tolist():
                length, started = state // uses % lengths, state // uses // lengths
                used = 0 if block.starts_group else state % uses
                if block.required != MUST and (length == 0 or length >= shortest):
                    goal = started * lengths * uses + (0 if block.crosses_group else used)
                    self._add(arcs, b, (state, goal, SKIP), 0)
                span = started + 1 if count_spans and length == 0 else started
                run = min(length + block.size, cap) if any_length else length + block.size
                used = used + block.before if count_group else 0
                fits = run <= cap and span <= spans and used <= per_group
                if block.required != NEVER and fits and self.low[b, state] + block.size <= budget:
                    used = block.after if count_group and block.crosses_group else used
                    goal = (span * lengths + run) * uses + used
                    self._add(arcs, b, (state, goal, START if length == 0 else CONTINUE), block.size)
            self.arcs.append(sorted(arcs, key=lambda arc: arc[1]))

    def _add(self, arcs: list[Arc], b: int, arc: Arc, size: int) -> None:
        state, goal, _ = arc
        arcs.append(arc)
        self.low[b + 1, goal] = min(self.low[b + 1, goal], self.low[b, state] + size)
        self.high[b + 1, goal] = max(self.high[b + 1, goal], min(self.high[b, state] + size, self.budget))

    def best_path(self, scores: Scores, transition: float) -> Selected | None:
        blocks, low, high = self.blocks, self.low, self.high
        value = np.full((len(blocks) + 1, self.states, self.budget + 1), -np.inf)
        value[0, 0, 0] = 0.0
        gains = []
        for b, block in enumerate(blocks):
            check_time()
            gain = scores[block.first]
            for i in range(block.first + 1, block.first + block.size):
                gain += scores[i] + transition
            gains.append((0.0, gain, gain + (transition if b else 0.0)))
            for goal, arcs in groupby(self.arcs[b], key=lambda arc: arc[1]):
                fewest, beyond = int(low[b + 1, goal]), int(high[b + 1, goal]) + 1
                best = value[b + 1, goal, fewest:beyond]
                for state, _, kind in arcs:
                    size = 0 if kind == SKIP else block.size
                    source = value[b, state, fewest - size : beyond - size]
                    np.maximum(best, source + gains[b][kind], out=best)
        best_total, at, words = -np.inf, -1, 0
        for state in np.flatnonzero(self.final).tolist():
            for k in range(int(low[-1, state]), int(high[-1, state]) + 1):
                total = value[-1, state, k]
                if total > best_total or (total == best_total and k < words):
                    best_total, at, words = total, state, k
        if at < 0:
            return None
        y = np.zeros(len(scores), np.bool_)
        for b in range(len(blocks) - 1, -1, -1):
            block = blocks[b]
            for state, goal, kind in self.arcs[b]:
                k = words if kind == SKIP else words - block.size
                reachable = goal == at and low[b, state] <= k <= high[b, state]
                if reachable and value[b, state, k] + gains[b][kind] == value[b + 1, at, words]:
                    y[block.first : block.first + block.size] = kind != SKIP
                    at, words = state, k
                    break
        return y
