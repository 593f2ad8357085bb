"""The constraints on a row as a graph of arcs, once for all the times that its best path is asked for.

Words that are selected together are one block, so a path takes a step a block. A place is (spans begun, length of the
run so far, words used of this group), each counted as far as it matters only: a rule that cannot bind has no counter.
An arc leads from a place before a block to one after it, by leaving the block out, by beginning a run with it, or by
going on with one. The budget is no part of it: paths also count their words, see `spans_map_cpu`.
"""

import numpy as np

from rationalizer.ops.kernels.numba_runtime import jit

MUST, NEVER, FREE = 1, -1, 0
LEAVE, BEGIN, GO_ON = 0, 1, 2
MOST_STATES = 2**28  # a float64 each


@jit
def _blocks(unit, fixed, group, per_group):
    """Per block: its first word, what is wanted of it, whether it opens a group, whether it goes on into another, and
    how many words it has in the group that it begins in and in the one that it ends in."""
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
        wanted = NEVER if table[b, 5] > per_group else FREE
        for wish in (fixed[i], wanted):
            if wish != FREE:
                possible &= table[b, 1] != -wish
                table[b, 1] = wish
    table[blocks, 0] = count
    return table[: blocks + 1], possible


@jit
def _most_words(table, group, per_group):
    """How many words can be selected at most, as far as single blocks and groups tell; and the largest group's size."""
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
    """In place; scratch: `first_in` (places,) and `unsorted` (arcs, 4), a chain of arcs for each goal."""
    count = arcs.shape[0]
    first_in[:] = -1
    for a in range(count - 1, -1, -1):
        for part in range(3):
            unsorted[a, part] = arcs[a, part]
        unsorted[a, 3], first_in[arcs[a, 1]] = first_in[arcs[a, 1]], a
    place = 0
    for goal in range(first_in.shape[0]):
        a = first_in[goal]
        while a >= 0:
            for part in range(3):
                arcs[place, part] = unsorted[a, part]
            place += 1
            a = unsorted[a, 3]


@jit
def make_rules(budget, spans, shortest, longest, per_group, unit, fixed, group):
    """The rules on words of which all are there, as a plain tuple (compiled code that is kept on disk knows no class by
    its name):

    budget: no more words than that can be selected
    heads: (blocks + 1,) the first word of each block, then how many words there are
    first_arc: (blocks + 1,) where the arcs of each block begin
    arcs: (arcs, 3) from place, to place, LEAVE or BEGIN or GO_ON; those of a block to the same place next to each
        other, and then they have as many words
    low: (blocks + 1, places) the fewest words that can be selected on a way to the place
    high: (blocks + 1, places) and the most; less than the fewest where no way leads there, as everywhere if two rules
        contradict each other on a block
    final: (places,) whether a path may end there
    """
    table, possible = _blocks(unit, fixed, group, per_group)
    blocks = table.shape[0] - 1
    words, largest_group = _most_words(table, group, per_group)
    budget = min(budget, words)
    longest = min(longest, budget)
    budget = min(budget, spans * longest)
    shortest = min(shortest, budget + 1)  # a run that long is beyond the budget, and one that is longer no more so
    # A run's length is counted up to the longest allowed or, where the budget allows no longer one, the shortest.
    any_length = longest >= budget
    cap = shortest if any_length else longest
    count_spans = spans < budget // shortest
    count_group = per_group < min(budget, largest_group)
    lengths, uses = cap + 1, per_group + 1 if count_group else 1
    places = (spans + 1 if count_spans else 1) * lengths * uses
    if places * (blocks + 1) * (budget + 1) > MOST_STATES:
        raise ValueError(
            "these constraints together need more than 2 GiB for one text; ask for fewer or shorter spans, fewer words "
            "of each group, or a smaller budget"
        )
    first_arc = np.zeros(blocks + 1, np.int64)
    arcs = np.empty((2 * blocks * places, 3), np.int32)
    low, high = np.full((blocks + 1, places), budget + 1), np.full((blocks + 1, places), -1)
    low[0, 0] = 0
    high[0, 0] = 0 if possible else -1
    first_in, unsorted = np.empty(places, np.int32), np.empty((2 * places, 4), np.int32)
    arc = 0
    for b in range(blocks):
        size = table[b + 1, 0] - table[b, 0]
        wanted, opens, crosses, before, after = table[b, 1], table[b, 2], table[b, 3], table[b, 4], table[b, 5]
        for place in range(places):
            if low[b, place] > high[b, place]:
                continue
            length = place // uses % lengths
            begun = place // uses // lengths
            used = 0 if opens else place % uses
            if wanted != MUST and (length == 0 or length >= shortest):
                goal = begun * lengths * uses + (0 if crosses else used)
                arcs[arc, 0], arcs[arc, 1], arcs[arc, 2] = place, goal, LEAVE
                arc += 1
                low[b + 1, goal] = min(low[b + 1, goal], low[b, place])
                high[b + 1, goal] = max(high[b + 1, goal], high[b, place])
            span = begun + 1 if count_spans and length == 0 else begun
            run = min(length + size, cap) if any_length else length + size
            used = used + before if count_group else 0
            fits = run <= cap and span <= spans and used <= per_group and low[b, place] + size <= budget
            if wanted != NEVER and fits:
                used = after if count_group and crosses else used
                goal = (span * lengths + run) * uses + used
                arcs[arc, 0], arcs[arc, 1], arcs[arc, 2] = place, goal, BEGIN if length == 0 else GO_ON
                arc += 1
                low[b + 1, goal] = min(low[b + 1, goal], low[b, place] + size)
                high[b + 1, goal] = max(high[b + 1, goal], min(high[b, place] + size, budget))
        _sort_by_goal(arcs[first_arc[b] : arc], first_in, unsorted)
        first_arc[b + 1] = arc
    final = np.zeros(places, np.bool_)
    for place in range(places):
        length = place // uses % lengths
        final[place] = length == 0 or length >= shortest
    return budget, table[:, 0].copy(), first_arc, arcs[:arc].copy(), low, high, final
