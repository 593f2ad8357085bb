"""The constraints on a row as a graph, built once and then searched for the best path many times.

Words that are selected together form one block, and a path makes one step per block. A state is (number of spans,
length of the current span, words selected in the current group); each component is counted only as far as it matters,
and a constraint that cannot bind has no counter. An arc leads from a state before a block to a state after it: it
skips the block, starts a span with it, or continues a span. The bounds on the number of words are not part of the
graph: paths also count their words, see `spans_map_cpu`.
"""

import numpy as np

from rationalizer.ops.kernels.numba_runtime import jit

MUST, NEVER, FREE = 1, -1, 0
SKIP, START, CONTINUE = 0, 1, 2
MAX_VALUES = 2**28  # of float64


@jit
def _blocks(unit, fixed, group, per_group):
    """Per block: its first word; MUST, NEVER or FREE; whether it starts a group; whether it continues into another one;
    and its numbers of words in the group in which it starts and in the one in which it ends."""
    count = unit.shape[0]
    table = np.zeros((count + 1, 6), np.int64)
    blocks, possible = 0, True
    for i in range(count):
        new_group = i > 0 and group[i] != group[i - 1]
        if i == 0 or unit[i] != unit[i - 1]:
            table[blocks, 0], table[blocks, 2] = i, new_group
            blocks += 1
        elif new_group:
            table[blocks - 1, 3], table[blocks - 1, 5] = True, 0
        b = blocks - 1
        table[b, 5] += 1
        if not table[b, 3]:
            table[b, 4] += 1
        required = NEVER if table[b, 5] > per_group else FREE
        for requirement in (fixed[i], required):
            if requirement != FREE:
                possible &= table[b, 1] != -requirement
                table[b, 1] = requirement
    table[blocks, 0] = count
    return table[: blocks + 1], possible


@jit
def _word_bound(table, group, per_group):
    """Return a bound on the number of selected words, from blocks and groups, and the size of the largest group."""
    free, room, in_group, largest = 0, 0, 0, 0
    for b in range(table.shape[0] - 1):
        if table[b, 1] != NEVER:
            free += table[b + 1, 0] - table[b, 0]
    for i in range(group.shape[0]):
        in_group = in_group + 1 if i > 0 and group[i] == group[i - 1] else 1
        room += in_group <= per_group
        largest = max(largest, in_group)
    return min(free, room), largest


@jit
def _sort_by_goal(arcs, first_in, unsorted):
    """Sort arcs by goal, in place; scratch: `first_in` (states,) and `unsorted` (arcs, 4), a linked list per goal."""
    count = arcs.shape[0]
    first_in[:] = -1
    for a in range(count - 1, -1, -1):
        for part in range(3):
            unsorted[a, part] = arcs[a, part]
        unsorted[a, 3], first_in[arcs[a, 1]] = first_in[arcs[a, 1]], a
    position = 0
    for goal in range(first_in.shape[0]):
        a = first_in[goal]
        while a >= 0:
            for part in range(3):
                arcs[position, part] = unsorted[a, part]
            position += 1
            a = unsorted[a, 3]


@jit
def build_graph(least, budget, spans, shortest, longest, per_group, unit, fixed, group):
    """The graph of the constraints on unmasked words, as a plain tuple (code cached on disk cannot refer to classes):

    budget: an upper bound on the number of selected words
    heads: (blocks + 1,) the first word of each block, then the number of words
    first_arc: (blocks + 1,) the index of the first arc of each block
    arcs: (arcs, 3) from state, to state, SKIP or START or CONTINUE; the arcs of a block are sorted by their goals, and
        all arcs with the same goal select the same number of words
    low: (blocks + 1, states) the minimum number of selected words on a path to the state
    high: (blocks + 1, states) the maximum; less than the minimum if there is no path, as in all states if two
        constraints contradict each other on a block
    final: (states,) whether a path may end in the state
    least: the minimum number of selected words; infeasible if it exceeds `budget`
    """
    table, possible = _blocks(unit, fixed, group, per_group)
    blocks = table.shape[0] - 1
    words, largest_group = _word_bound(table, group, per_group)
    budget = min(budget, words)
    longest = min(longest, budget)
    budget = min(budget, spans * longest)
    shortest = min(shortest, budget + 1)  # a run of budget + 1 words is infeasible, as is any longer one
    # The length of a span is counted up to the longest allowed one or, if the budget allows no longer one, the
    # shortest.
    any_length = longest >= budget
    cap = shortest if any_length else longest
    count_spans = spans < budget // shortest
    count_group = per_group < min(budget, largest_group)
    lengths, uses = cap + 1, per_group + 1 if count_group else 1
    states = (spans + 1 if count_spans else 1) * lengths * uses
    if states * (blocks + 1) * (budget + 1) > MAX_VALUES:
        raise ValueError(
            "these constraints together need more than 2 GiB for one text; reduce the number or length of spans, the "
            "words per group, or the budget"
        )
    first_arc = np.zeros(blocks + 1, np.int64)
    arcs = np.empty((2 * blocks * states, 3), np.int32)
    low, high = np.full((blocks + 1, states), budget + 1), np.full((blocks + 1, states), -1)
    low[0, 0] = 0
    high[0, 0] = 0 if possible else -1
    first_in, unsorted = np.empty(states, np.int32), np.empty((2 * states, 4), np.int32)
    arc = 0
    for b in range(blocks):
        size = table[b + 1, 0] - table[b, 0]
        required, starts_group, crosses_group = table[b, 1], table[b, 2], table[b, 3]
        before, after = table[b, 4], table[b, 5]
        for state in range(states):
            if low[b, state] > high[b, state]:
                continue
            length = state // uses % lengths
            started = state // uses // lengths
            used = 0 if starts_group else state % uses
            if required != MUST and (length == 0 or length >= shortest):
                goal = started * lengths * uses + (0 if crosses_group else used)
                arcs[arc, 0], arcs[arc, 1], arcs[arc, 2] = state, goal, SKIP
                arc += 1
                low[b + 1, goal] = min(low[b + 1, goal], low[b, state])
                high[b + 1, goal] = max(high[b + 1, goal], high[b, state])
            span = started + 1 if count_spans and length == 0 else started
            run = min(length + size, cap) if any_length else length + size
            used = used + before if count_group else 0
            fits = run <= cap and span <= spans and used <= per_group and low[b, state] + size <= budget
            if required != NEVER and fits:
                used = after if count_group and crosses_group else used
                goal = (span * lengths + run) * uses + used
                arcs[arc, 0], arcs[arc, 1], arcs[arc, 2] = state, goal, START if length == 0 else CONTINUE
                arc += 1
                low[b + 1, goal] = min(low[b + 1, goal], low[b, state] + size)
                high[b + 1, goal] = max(high[b + 1, goal], min(high[b, state] + size, budget))
        _sort_by_goal(arcs[first_arc[b] : arc], first_in, unsorted)
        first_arc[b + 1] = arc
    final = np.zeros(states, np.bool_)
    for state in range(states):
        length = state // uses % lengths
        final[state] = length == 0 or length >= shortest
    return budget, table[:, 0].copy(), first_arc, arcs[:arc].copy(), low, high, final, least
