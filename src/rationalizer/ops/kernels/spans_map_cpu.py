"""The best selection under rules: Viterbi over (place, words used), places and arcs as in `rules_cpu`."""

import numpy as np

from rationalizer.ops.kernels.budget_cpu import gather_real, scatter_real
from rationalizer.ops.kernels.constraint_graph_cpu import BEGIN, GO_ON, LEAVE, make_rules
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.pair_budget_cpu import gather_edges


@jit
def scratch(rules):
    """Room for `constrained_viterbi`: what a block earns on each kind of arc, and the value of each state (those that
    cannot be reached are never written to)."""
    budget, _, _, _, low, _, _ = rules
    return np.zeros((low.shape[0], 3)), np.full((*low.shape, budget + 1), -np.inf)


@jit
def add_gains(s, r, heads, gain):
    """What each block earns on each kind of arc."""
    for b in range(heads.shape[0] - 1):
        head = heads[b]
        gain[b, BEGIN] = s[head]
        for i in range(head + 1, heads[b + 1]):
            gain[b, BEGIN] += s[i] + r[i - 1]
        gain[b, GO_ON] = gain[b, BEGIN] + (r[head - 1] if b > 0 else 0.0)


@jit
def constrained_viterbi(s, r, rules, lift, y, gain, value):
    """max s·y + Σ r_i y_i y_{i+1} + lift·(Σy − budget) under the rules; returns it and writes its argument to `y`.

    −inf where nothing is allowed, not even the empty selection. `lift` is as in `budgeted_viterbi`. The states of a
    place lie next to each other, so the way ahead is sums and maxima of vectors; the way back asks which arc has led
    to the value. Ties go to fewer words.
    """
    budget, heads, first_arc, arcs, low, high, final = rules
    blocks, places = low.shape[0] - 1, low.shape[1]
    add_gains(s, r, heads, gain)
    value[0, 0, 0] = 0.0
    for b in range(blocks):
        arc, stop = first_arc[b], first_arc[b + 1]
        while arc < stop:
            place, goal, kind = arcs[arc, 0], arcs[arc, 1], arcs[arc, 2]
            # Unsigned, as an index that might be negative keeps the compiler from vector instructions.
            size = np.uint64(0 if kind == LEAVE else heads[b + 1] - heads[b])
            fewest, beyond = np.uint64(low[b + 1, goal]), np.uint64(high[b + 1, goal] + 1)
            more = gain[b, kind]
            arc += 1
            if arc < stop and arcs[arc, 1] == goal:  # two arcs at once, as most places have two ways to them
                other, also = arcs[arc, 0], gain[b, arcs[arc, 2]]
                arc += 1
                for k in range(fewest, beyond):
                    value[b + 1, goal, k] = max(value[b, place, k - size] + more, value[b, other, k - size] + also)
            else:
                for k in range(fewest, beyond):
                    value[b + 1, goal, k] = value[b, place, k - size] + more
            while arc < stop and arcs[arc, 1] == goal:
                place, more = arcs[arc, 0], gain[b, arcs[arc, 2]]
                arc += 1
                for k in range(fewest, beyond):
                    value[b + 1, goal, k] = max(value[b + 1, goal, k], value[b, place, k - size] + more)
    best, at, words = -np.inf, -1, 0
    for place in range(places):
        if final[place]:
            for k in range(low[blocks, place], high[blocks, place] + 1):
                worth = value[blocks, place, k] + lift * (k - budget)
                if worth > best or (worth == best and k < words):
                    best, at, words = worth, place, k
    y[:] = 0
    for b in range(blocks - 1, -1, -1):
        if at < 0:
            break
        worth = value[b + 1, at, words]
        for a in range(first_arc[b], first_arc[b + 1]):
            place, kind = arcs[a, 0], arcs[a, 2]
            k = words if kind == LEAVE else words - (heads[b + 1] - heads[b])
            if (
                arcs[a, 1] == at
                and low[b, place] <= k <= high[b, place]
                and value[b, place, k] + gain[b, kind] == worth
            ):
                if kind != LEAVE:
                    y[heads[b] : heads[b + 1]] = 1
                at, words = place, k
                break
    return best


@jit
def gather_row(row, scores, transition, mask, budget, spans, unit, fixed, group, shortest, longest, per_group):
    """Scores and transitions of the words that are there, and the rules on them."""
    n = scores.shape[1]
    s, r = np.empty(n), np.empty(n)
    units, wanted, groups = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    count = gather_real(scores[row], mask[row], s)
    gather_edges(transition[row], mask[row], r)
    gather_real(unit[row], mask[row], units)
    gather_real(fixed[row], mask[row], wanted)
    gather_real(group[row], mask[row], groups)
    rules = make_rules(
        min(budget[row], count), min(spans[row], count), shortest, longest, per_group, units[:count], wanted[:count],
        groups[:count],
    )  # fmt: skip
    return s[:count], r[: max(count - 1, 0)], rules


@jit
def spans_map_rows(
    first, last, scores, transition, mask, budget, spans, unit, fixed, group, shortest, longest, per_group, z, feasible
):  # fmt: skip
    for row in range(first, last):
        s, r, rules = gather_row(
            row, scores, transition, mask, budget, spans, unit, fixed, group, shortest, longest, per_group
        )
        y = np.zeros(s.shape[0], np.uint8)
        gain, value = scratch(rules)
        feasible[row] = constrained_viterbi(s, r, rules, 0.0, y, gain, value) > -np.inf
        scatter_real(y, mask[row], z[row])
