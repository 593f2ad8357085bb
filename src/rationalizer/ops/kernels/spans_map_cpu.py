"""The best binary sequence under a budget and rules: how many spans, how long, what goes together, what is fixed.

Words that are selected together are one block, so the programme walks over blocks. A state is (words used, place), and a
place is (spans begun, length of the run so far, words used of this group), each counted as far as it matters only: a
rule that cannot bind has no counter. All budgets of a place lie next to each other, so that the inner loop is one of
vector instructions.
"""

from collections import namedtuple

import numpy as np

from rationalizer.ops.kernels.budget_cpu import gather_real, scatter_real
from rationalizer.ops.kernels.pair_budget_cpu import gather_edges
from rationalizer.ops.kernels.runtime import jit

MUST, NEVER, FREE = 1, -1, 0

Rules = namedtuple(
    "Rules",
    [
        "heads",  # (blocks + 1,) the first word of each block, then how many words there are
        "wanted",  # (blocks,) MUST, NEVER or FREE
        "opens",  # (blocks,) whether the block begins a group
        "crosses",  # (blocks,) whether it goes on into another group
        "before",  # (blocks,) how many of its words are in the group that it begins in
        "after",  # (blocks,) and how many in the group that it ends in
        "sizes",  # what `_sizes` returns
        "possible",  # False where two rules contradict each other on a block
    ],
)


@jit
def _sizes(budget, spans, shortest, longest, per_group, largest_group):
    """(budget, shortest, spans, cap, saturates, per_group) and how many values each counter of a place has.

    A run's length is counted up to `cap`: the longest run allowed or, where none is too long (`saturates`), the
    shortest. A rule that the budget implies is dropped: its counter has one value.
    """
    longest = min(longest, budget)
    budget = min(budget, spans * longest)
    shortest = min(shortest, budget + 1)  # longer than that is never
    spans = min(spans, budget // shortest)
    saturates = longest >= budget
    cap = shortest if saturates else longest
    counted = spans < budget // shortest
    grouped = per_group < min(budget, largest_group)
    places = (spans + 1 if counted else 1, cap + 1, per_group + 1 if grouped else 1)
    return (budget, shortest, spans, cap, saturates, per_group), places


@jit
def gather_rules(count, budget, spans, shortest, longest, per_group, unit, fixed, group):
    """The rules on the first `count` words, which are those that are there."""
    heads = np.empty(count + 1, np.int64)
    wanted = np.zeros(count, np.int64)
    opens, crosses = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    before, after = np.zeros(count, np.int64), np.zeros(count, np.int64)
    possible = True
    blocks, free, largest, in_group, room = 0, 0, 0, 0, 0
    for i in range(count):
        new_group = i > 0 and group[i] != group[i - 1]
        if new_group:
            room += min(in_group, per_group)
            in_group = 0
        in_group += 1
        largest = max(largest, in_group)
        if i == 0 or unit[i] != unit[i - 1]:
            heads[blocks] = i
            opens[blocks] = new_group
            blocks += 1
        elif new_group:
            crosses[blocks - 1] = True
            after[blocks - 1] = 0
        b = blocks - 1
        after[b] += 1
        if not crosses[b]:
            before[b] += 1
        if fixed[i] != FREE:
            possible &= wanted[b] != -fixed[i]
            wanted[b] = fixed[i]
        if after[b] > per_group:
            possible &= wanted[b] != MUST
            wanted[b] = NEVER
    heads[blocks] = count
    for b in range(blocks):
        if wanted[b] != NEVER:
            free += heads[b + 1] - heads[b]
    room = min(free, room + min(in_group, per_group))
    sizes = _sizes(min(budget, room), spans, shortest, longest, per_group, largest)
    return Rules(
        heads[: blocks + 1], wanted[:blocks], opens[:blocks], crosses[:blocks], before[:blocks], after[:blocks],
        sizes, possible,
    )  # fmt: skip


@jit
def scratch(rules):
    """Room for `constrained_viterbi`: where each state came from, and the values of two steps."""
    spans, lengths, used = rules.sizes[1]
    places, width = spans * lengths * used, rules.sizes[0][0] + 1
    back = np.empty((max(rules.wanted.shape[0], 1), places, width), np.uint16)
    return back, np.empty((2, places, width))


@jit
def _offer(value, new, source, goal, shift, gain, back, b, known):
    """Reach place `goal` from `source` with `shift` more words, where that is better than what is `known`."""
    old = 1 - new
    origin = np.uint16(source)
    if known:
        for k in range(shift, value.shape[2]):
            offered = value[old, source, k - shift] + gain
            kept = value[new, goal, k]
            better = offered > kept
            value[new, goal, k] = offered if better else kept
            back[b, goal, k] = origin if better else back[b, goal, k]
    else:
        for k in range(min(shift, value.shape[2])):
            value[new, goal, k] = -np.inf
        for k in range(shift, value.shape[2]):
            value[new, goal, k] = value[old, source, k - shift] + gain
            back[b, goal, k] = origin


@jit
def constrained_viterbi(s, r, rules, lift, y, back, value):
    """max s·y + Σ r_i y_i y_{i+1} + lift·(Σy − budget) under the rules; returns it and writes its argument to `y`.

    −inf where nothing is allowed, not even the empty sequence. `lift` is as in `budgeted_viterbi`. Ties go to fewer
    words, then to fewer spans, then to later words left out.
    """
    (budget, shortest, spans, cap, saturates, per_group), (begun_sizes, lengths, used_sizes) = rules.sizes
    blocks = rules.wanted.shape[0]
    counts_spans, counts_group = begun_sizes > 1, used_sizes > 1
    places = begun_sizes * lengths * used_sizes
    known = np.zeros((2, places), np.bool_)
    value[0, 0, :] = -np.inf
    value[0, 0, 0] = 0.0
    known[0, 0] = rules.possible
    for b in range(blocks):
        old, new = b & 1, 1 - (b & 1)
        known[new, :] = False
        head, stop = rules.heads[b], rules.heads[b + 1]
        size = stop - head
        score = s[head]
        for i in range(head + 1, stop):
            score += s[i] + r[i - 1]
        edge = r[head - 1] if b > 0 else 0.0
        for begun in range(begun_sizes):
            for length in range(lengths):
                for used in range(used_sizes):
                    source = (begun * lengths + length) * used_sizes + used
                    if not known[old, source]:
                        continue
                    spent = 0 if rules.opens[b] else used
                    if rules.wanted[b] != MUST and (length == 0 or length >= shortest):
                        goal = begun * lengths * used_sizes + (0 if rules.crosses[b] else spent)
                        _offer(value, new, source, goal, 0, 0.0, back, b, known[new, goal])
                        known[new, goal] = True
                    if rules.wanted[b] == NEVER or size > budget:
                        continue
                    span = begun + (1 if length == 0 and counts_spans else 0)
                    run = length + size
                    if span > spans or (run > cap and not saturates):
                        continue
                    spent += rules.before[b]
                    if counts_group:
                        if spent > per_group:
                            continue
                        spent = rules.after[b] if rules.crosses[b] else spent
                    else:
                        spent = 0
                    goal = (span * lengths + min(run, cap)) * used_sizes + spent
                    _offer(value, new, source, goal, size, score + (edge if length > 0 else 0.0), back, b, known[new, goal])
                    known[new, goal] = True
    last = blocks & 1
    best, at, k = -np.inf, -1, 0
    for words in range(budget + 1):
        for place in range(places):
            length = (place // used_sizes) % lengths
            if known[last, place] and (length == 0 or length >= shortest):
                worth = value[last, place, words] + lift * (words - budget)
                if worth > best:
                    best, at, k = worth, place, words
    if at < 0:
        y[:] = 0
        return best
    for b in range(blocks - 1, -1, -1):
        head, stop = rules.heads[b], rules.heads[b + 1]
        bit = (at // used_sizes) % lengths > 0
        for i in range(head, stop):
            y[i] = bit
        at = back[b, at, k]
        if bit:
            k -= stop - head
    return best


@jit
def gather_row(row, scores, transition, mask, budget, spans, unit, fixed, group, shortest, longest, per_group):
    """Scores and transitions of the words that are there, and the rules on them."""
    n = scores.shape[1]
    s, r = np.empty(n), np.empty(n)
    units, wanted, groups = np.empty(n, np.int64), np.empty(n, np.int8), np.empty(n, np.int64)
    count = gather_real(scores[row], mask[row], s)
    gather_edges(transition[row], mask[row], r)
    gather_real(unit[row], mask[row], units)
    gather_real(fixed[row], mask[row], wanted)
    gather_real(group[row], mask[row], groups)
    rules = gather_rules(
        count, min(budget[row], count), min(spans[row], count), shortest, longest, per_group, units, wanted, groups
    )
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
        back, value = scratch(rules)
        feasible[row] = constrained_viterbi(s, r, rules, 0.0, y, back, value) > -np.inf
        scatter_real(y, mask[row], z[row])
