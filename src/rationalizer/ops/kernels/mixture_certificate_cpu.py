"""A certificate that a point z of the PAIR + BUDGET relaxation is a mixture of sequences within the budget.

Assign to each word i a set A_i of measure z_i on a circle of length 1. Each point of the circle then stands for a
sequence: it contains the words whose sets cover the point. The weight of a sequence is the total length of its points.
The mixture is valid if at most B sets cover any point and the sets of neighbouring words are nested, so that their pair
marginal is min(z_i, z_{i+1}).

Only the number of sets over a point matters, so the circle is stored as histograms: the measure that is covered h times
(level h), inside and outside the set of the current word. The sets of a run of neighbours are placed in order, always
at the lowest levels. The set of a word without a fractional neighbour may be split, so the Gale–Ryser condition decides
whether such sets fit, without placing them. The result True is a proof; False means only that no placement was found.

A lower bound L is proven with B − L slack words, which fill every sequence up to exactly B words: a sequence contains
at most B − L of them, and so at least L words of the text. Slack words have no neighbours, and the heights that are
easiest to place are equal.
"""

import numpy as np

from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.sorting_cpu import ascending

TINY = 1e-12  # measures below this are rounding error


@jit
def _move(amount, source, target, low, limit):
    """Move `amount` from the lowest levels of `source` to `target`, one level up; return False if it does not fit."""
    for level in range(low, limit + 1):
        if amount <= 0.0:
            return True
        part = min(amount, source[level])
        if part > 0.0:
            if level + 1 > limit:
                return amount <= TINY
            source[level] -= part
            target[level + 1] += part
            amount -= part
    return amount <= TINY


@jit
def is_mixture_within_budget(z, r, capacity, slack_words, slack, work, singles):
    """Return whether `z` is proven to be a mixture of sequences with at most `capacity` fractional words each.

    Words with z = 1 are in every sequence; the caller subtracts their number from the budget to get `capacity`.
    There are `slack_words` further words without neighbours, of height `slack` each.

    `work` (3, >= capacity + 3) and `singles` (n + slack_words,) are scratch.
    """
    n = z.shape[0]
    inside, outside, other = work[0], work[1], work[2]
    words, fractional = np.empty(n + 1, np.int64), 0
    for i in range(n):  # without branches, whose outcome would be random
        words[fractional] = i
        fractional += (z[i] > 0.0) & (z[i] < 1.0)
    if fractional + slack_words <= capacity:
        return True
    for level in range(capacity + 2):
        inside[level] = outside[level] = other[level] = 0.0
    outside[0] = 1.0
    low = 0  # the lowest level that is not empty
    count = 0
    first = 0
    while first < fractional:
        i = stop = words[first]
        first += 1
        while first < fractional and words[first] == stop + 1 and r[stop] > 0.0:
            stop += 1
            first += 1
        if stop == i:
            singles[count] = z[i]
            count += 1
            continue
        if not _move(z[i], outside, inside, low, capacity):
            return False
        for t in range(i + 1, stop + 1):
            change = z[t] - z[t - 1]
            if change < 0.0:
                # Nested sets: the new set is the lowest part of the previous one. The rest is outside it.
                if not _move(z[t], inside, other, low, capacity):
                    return False
                for level in range(low, capacity + 1):
                    outside[level] += inside[level]
                    inside[level] = 0.0
                inside, other = other, inside
            else:
                if inside[capacity] > TINY:
                    return False
                for level in range(capacity, low, -1):
                    inside[level] = inside[level - 1]
                inside[low] = 0.0
                if not _move(change, outside, inside, low, capacity):
                    return False
        for level in range(low, capacity + 1):
            outside[level] += inside[level]
            inside[level] = 0.0
        while low < capacity and outside[low] <= TINY:
            outside[low + 1] += outside[low]
            outside[low] = 0.0
            low += 1
    for _ in range(slack_words):
        singles[count] = slack
        count += 1
    if count == 0:
        return True
    order = ascending(singles[:count])
    # Gale–Ryser: the k widest single sets must fit into ∫ min(room, k) for every k.
    width = 0.0
    room = 0.0  # ∫ min(capacity − level, k)
    above = 0.0  # the measure with room for at least k sets
    for level in range(low, capacity + 1):
        if capacity - level >= 1:
            above += outside[level]
    for k in range(1, count + 1):
        width += singles[order[count - k]]
        room += above
        if width > room + TINY * (capacity + 1):
            return False
        if 0 <= capacity - k <= capacity:
            above -= outside[capacity - k]
    return True
