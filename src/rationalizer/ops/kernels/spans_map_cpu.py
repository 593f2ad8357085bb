"""The best selection under constraints: Viterbi over (state, number of words), see `constraint_graph_cpu`."""

import numpy as np

from rationalizer.ops.kernels.budget_cpu import gather_real, scatter_real
from rationalizer.ops.kernels.constraint_graph_cpu import CONTINUE, SKIP, START, build_graph
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.pair_budget_cpu import gather_edges


@jit
def viterbi_scratch(constraint_graph):
    """Scratch for `constrained_viterbi`: the gain of each block on each kind of arc, and the value of each state and
    number of words (unreachable ones are never written)."""
    budget, low = constraint_graph[0], constraint_graph[4]
    return np.zeros((low.shape[0], 3)), np.full((*low.shape, budget + 1), -np.inf)


@jit
def add_gains(s, r, heads, gain):
    """Compute the gain of each block on each kind of arc."""
    for b in range(heads.shape[0] - 1):
        head = heads[b]
        gain[b, START] = s[head]
        for i in range(head + 1, heads[b + 1]):
            gain[b, START] += s[i] + r[i - 1]
        gain[b, CONTINUE] = gain[b, START] + (r[head - 1] if b > 0 else 0.0)


@jit
def constrained_viterbi(s, r, constraint_graph, offset, y, gain, value):
    """Maximize s·y + Σ r_i y_i y_{i+1} + offset·(Σy − budget) s.t. the constraints; write `y`, return the maximum.

    −inf if no selection is feasible. `offset` is as in `budgeted_viterbi`. The values of a state are contiguous in
    memory, so the forward pass consists of sums and maxima of vectors; the backward pass searches for the arc that
    gave the value. Ties go to fewer words.
    """
    budget, heads, first_arc, arcs, low, high, final, least = constraint_graph
    blocks, states = low.shape[0] - 1, low.shape[1]
    add_gains(s, r, heads, gain)
    value[0, 0, 0] = 0.0
    for b in range(blocks):
        arc, stop = first_arc[b], first_arc[b + 1]
        while arc < stop:
            state, goal, kind = arcs[arc, 0], arcs[arc, 1], arcs[arc, 2]
            # Unsigned, as the compiler does not vectorize loops over indices that might be negative.
            size = np.uint64(0 if kind == SKIP else heads[b + 1] - heads[b])
            fewest, beyond = np.uint64(low[b + 1, goal]), np.uint64(high[b + 1, goal] + 1)
            more = gain[b, kind]
            arc += 1
            if arc < stop and arcs[arc, 1] == goal:  # two arcs at once, as most states have two incoming arcs
                other, also = arcs[arc, 0], gain[b, arcs[arc, 2]]
                arc += 1
                for k in range(fewest, beyond):
                    value[b + 1, goal, k] = max(value[b, state, k - size] + more, value[b, other, k - size] + also)
            else:
                for k in range(fewest, beyond):
                    value[b + 1, goal, k] = value[b, state, k - size] + more
            while arc < stop and arcs[arc, 1] == goal:
                state, more = arcs[arc, 0], gain[b, arcs[arc, 2]]
                arc += 1
                for k in range(fewest, beyond):
                    value[b + 1, goal, k] = max(value[b + 1, goal, k], value[b, state, k - size] + more)
    best, at, words = -np.inf, -1, 0
    for state in range(states):
        if final[state]:
            for k in range(max(low[blocks, state], least), high[blocks, state] + 1):
                total = value[blocks, state, k] + offset * (k - budget)
                if total > best or (total == best and k < words):
                    best, at, words = total, state, k
    y[:] = 0
    for b in range(blocks - 1, -1, -1):
        if at < 0:
            break
        total = value[b + 1, at, words]
        for a in range(first_arc[b], first_arc[b + 1]):
            state, kind = arcs[a, 0], arcs[a, 2]
            k = words if kind == SKIP else words - (heads[b + 1] - heads[b])
            if (
                arcs[a, 1] == at
                and low[b, state] <= k <= high[b, state]
                and value[b, state, k] + gain[b, kind] == total
            ):
                if kind != SKIP:
                    y[heads[b] : heads[b + 1]] = 1
                at, words = state, k
                break
    return best


@jit
def gather_row(row, scores, transition, mask, least, budget, spans, unit, fixed, group, shortest, longest, per_group):
    """Return the scores and transitions of the unmasked words of a row, and the graph of the constraints on them."""
    n = scores.shape[1]
    s, r = np.empty(n), np.empty(n)
    units, required, groups = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    count = gather_real(scores[row], mask[row], s)
    gather_edges(transition[row], mask[row], r)
    gather_real(unit[row], mask[row], units)
    gather_real(fixed[row], mask[row], required)
    gather_real(group[row], mask[row], groups)
    constraint_graph = build_graph(
        min(least[row], count), min(budget[row], count), min(spans[row], count), shortest, longest, per_group,
        units[:count], required[:count], groups[:count],
    )  # fmt: skip
    return s[:count], r[: max(count - 1, 0)], constraint_graph


@jit
def spans_map_rows(
    first, last, scores, transition, mask, least, budget, spans, unit, fixed, group, shortest, longest, per_group, z,
    feasible,
):  # fmt: skip
    for row in range(first, last):
        s, r, constraint_graph = gather_row(
            row, scores, transition, mask, least, budget, spans, unit, fixed, group, shortest, longest, per_group
        )
        y = np.zeros(s.shape[0], np.uint8)
        gain, value = viterbi_scratch(constraint_graph)
        feasible[row] = constrained_viterbi(s, r, constraint_graph, 0.0, y, gain, value) > -np.inf
        scatter_real(y, mask[row], z[row])
