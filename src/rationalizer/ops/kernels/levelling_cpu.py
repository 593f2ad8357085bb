"""A point of the PAIR + BUDGET relaxation as a mixture of sequences within the budget, and what that proves.

The atoms of `laying_cpu` have about the right number of ones. They are levelled by exchanging tails: two sequences cut
at the same place and joined crosswise have the same tokens and, where their bits agree on one side of the cut, the same
pairs, but other counts. Where no partner helps a sequence, it exchanges tails with one that has the right count, which
only changes its shape, and tries again. What resists is cut where a pair is broken, at the price of its transition.

The relaxation bounds all mixtures from above, and this one meets the bound but for the pairs broken. So nothing broken
proves z optimal, and elsewhere what was lost bounds ‖z − z*‖²: with (z, ν) the point of the relaxation, (z, ν') the
mixture, and (z*, ν*) the optimum, the optimality of the first and of the last give (s − z)·(z* − z) + r·(ν* − ν) <= 0
and (s − z*)·(z − z*) + r·(ν' − ν*) <= 0, whose sum is ‖z − z*‖² <= r·(ν − ν').
"""

import numpy as np

from rationalizer.ops.kernels.bits_cpu import is_set, ones
from rationalizer.ops.kernels.laying_cpu import TINY, lay_from_both_ends
from rationalizer.ops.kernels.runtime import jit
from rationalizer.ops.kernels.sorting_cpu import ascending

PARTNERS = 64  # how many a sequence is tried with
TRIALS = 20  # how many there are in all, a token
MOST_TRIALS = 40_000  # and in the longest rows
UNEVEN = 5.0  # how far from level, on average, sequences may be for a try: further off it hardly ever works


@jit
def _cut(x, y, linked, r, most, target, free):
    """Where to exchange the tails of x and y: (the cut t, after token t, and d(t)), d(t) how many more ones x has than
    y up to there; (−1, 0) if nowhere.

    If `free`, for nothing and with 0 < d < most, as near to `target` as there is; otherwise with d = target, where the
    broken pair costs least.
    """
    place, found = -1, 0
    d = 0
    last = -1  # where the bits differed last; only there, and where they differ next, a cut could break a pair
    for w in range(x.shape[0]):
        differ = x[w] ^ y[w]
        while differ != 0:
            lowest = differ & (~differ + np.uint64(1))
            differ ^= lowest
            t = w * 64 + int(ones(lowest - np.uint64(1)))
            if last >= 0 and 0 < d < most:
                nothing_broken = t > last + 1 or not linked[last]
                if free and nothing_broken and (place < 0 or abs(d - target) < abs(found - target)):
                    place, found = last, d
                if d == target and nothing_broken:
                    return last, d
                if not free and d == target and (place < 0 or r[last] < r[place]):
                    place, found = last, d
            d += 1 if (x[w] & lowest) != 0 else -1
            last = t
    return place, found


@jit
def _side_cut(x, y, linked, most, wanted):
    """The free cut nearest to token `wanted` with 0 <= d <= most, as `_cut` gives it."""
    place, found = -1, 0
    d = 0
    last = -1
    for w in range(x.shape[0]):
        differ = x[w] ^ y[w]
        while differ != 0:
            lowest = differ & (~differ + np.uint64(1))
            differ ^= lowest
            t = w * 64 + int(ones(lowest - np.uint64(1)))
            nothing_broken = last >= 0 and (t > last + 1 or not linked[last])
            if nothing_broken and 0 <= d <= most and (place < 0 or abs(last - wanted) < abs(place - wanted)):
                place, found = last, d
            d += 1 if (x[w] & lowest) != 0 else -1
            last = t
    return place, found


@jit
def _exchange(x, y, t):
    """Exchange the bits after t."""
    first = (t + 1) >> 6
    part = ~((np.uint64(1) << np.uint64((t + 1) & 63)) - np.uint64(1))
    for w in range(first, x.shape[0]):
        swap = (x[w] ^ y[w]) & (part if w == first else ~np.uint64(0))
        x[w] ^= swap
        y[w] ^= swap


@jit
def _split(atoms, mass, count, x, y, k):
    """Make the measures of x and y equal by leaving the rest of the larger one as a new atom; returns the new k."""
    share = min(mass[x], mass[y])
    rest = x if mass[x] > share else y
    if mass[rest] > share + TINY:
        atoms[k] = atoms[rest]
        mass[k], count[k] = mass[rest] - share, count[rest]
        k += 1
    mass[x] = mass[y] = share
    return k


@jit
def _find_partner(x, linked, r, capacity, atoms, count, k, free, trials):
    """An atom with too few ones and the cut at which x should exchange tails with it: (atom or −1, cut, d, trials)."""
    best, best_place, best_d = -1, -1, 0
    above = count[x] - capacity
    tried = 0
    for y in range(k):
        below = capacity - count[y]
        if below <= 0:
            continue
        if free and tried >= min(PARTNERS, trials):
            break
        tried += 1
        target = min(above, below)
        place, d = _cut(atoms[x], atoms[y], linked, r, above + below, target, free)
        if place >= 0:
            best, best_place, best_d = y, place, d
            if not free or d == target:
                break
    return best, best_place, best_d, tried


@jit
def _find_detour(x, linked, m, capacity, atoms, count, k, state):
    """An atom that is level, drawn at random, and where to exchange tails with it: (atom or −1, cut, d, state)."""
    for _ in range(20):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        y = (state >> 8) % k
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        if count[y] == capacity:
            place, d = _side_cut(atoms[x], atoms[y], linked, count[x] - capacity, (state >> 8) % m)
            if place >= 0:
                return y, place, d, state
    return -1, -1, 0, state


@jit
def level_out(linked, r, m, capacity, atoms, mass, count, k):
    """Exchange tails until no atom has more than `capacity` ones. Returns (how many atoms there are, what that cost);
    the cost is infinite where there was no room for more atoms. Atoms that still have too many are left without weight.
    """
    lost = 0.0
    trials = min(TRIALS * m, MOST_TRIALS)
    detours = trials // 4
    state = 1
    for free in (True, False):
        x = 0
        while x < k:
            if count[x] <= capacity:
                x += 1
                continue
            if k >= atoms.shape[0] - (4 * m if free else 0):  # some room is kept for the second round
                break
            y, place, d, tried = _find_partner(x, linked, r, capacity, atoms, count, k, free, trials)
            trials -= tried
            if y < 0 and free and trials > 0 and detours > 0:
                y, place, d, state = _find_detour(x, linked, m, capacity, atoms, count, k, state)
                detours -= 1
            if y < 0:
                x += 1
                continue
            k = _split(atoms, mass, count, x, y, k)
            if not free:
                lost += r[place] * mass[x]
            _exchange(atoms[x], atoms[y], place)
            count[x], count[y] = count[y] + d, count[x] - d
            x = min(x, y)
    for x in range(k):
        if count[x] > capacity:
            if mass[x] > TINY * m:  # less is rounding
                lost = np.inf
            mass[x] = 0.0
    return k, lost


@jit
def mixture_of_sequences(z, r, budget):
    """Write `z`, which PAIR + BUDGET allows, as a mixture of sequences with at most `budget` ones each.

    Returns (sequences, weights, how many, what the broken pairs cost), the heaviest first and not more than tokens + 1
    of them. At cost 0 z is proven and there are none; at an infinite cost the sequences do not add up to z.
    """
    n = z.shape[0]
    m, full = 0, 0
    linked, edges, heights, last = np.zeros(n, np.bool_), np.zeros(n), np.empty(n), -1
    for i in range(n):
        if z[i] == 1.0:
            full += 1
        elif z[i] > 0.0:
            if m > 0 and last == i - 1 and r[i - 1] > 0.0:
                linked[m - 1] = True
                edges[m - 1] = r[i - 1]
            heights[m] = z[i]
            last = i
            m += 1
    room = 10 * m + 8
    atoms, mass, count = np.empty((room, (m + 63) // 64), np.uint64), np.empty(room), np.empty(room, np.int64)
    nothing = np.empty((1, (n + 63) // 64), np.uint64)
    if m < 2:
        return nothing, mass, 0, np.inf
    k = lay_from_both_ends(heights[:m], linked, m, atoms, mass, count)
    uneven = 0.0
    for a in range(k):
        uneven += mass[a] * abs(count[a] - (budget - full))
    if uneven > UNEVEN:
        return nothing, mass, 0, np.inf
    k, lost = level_out(linked, edges, m, budget - full, atoms, mass, count, k)
    if lost == 0.0:
        return nothing, mass, 0, lost
    order = ascending(-mass[:k])
    k = min(np.count_nonzero(mass[:k]), m + 1)
    sequences = np.zeros((k, nothing.shape[1]), np.uint64)
    for a in range(k):
        j = 0
        for i in range(n):
            if z[i] == 1.0 or (z[i] > 0.0 and is_set(atoms[order[a]], j)):
                sequences[a, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
            j += 0.0 < z[i] < 1.0
    return sequences, mass[order[:k]], k, lost
