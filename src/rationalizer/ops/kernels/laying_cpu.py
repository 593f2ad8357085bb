"""A point of the PAIR + BUDGET relaxation as an explicit mixture of sequences within the budget.

As in `packing_cpu` token i stands for a set of measure z_i on a circle of length 1, the sets of neighbours nested; here
the circle is kept as atoms, each a sequence with its measure.

1. Tokens are laid one after the other, from both ends. A set that shrinks lets go of the atoms with most ones, a set
   that grows takes those with fewest, so the counts stay level. In the middle the atoms of the two halves are joined,
   many ones to few.
2. What is uneven then is levelled by exchanging tails: two sequences cut at the same place and joined crosswise have
   the same tokens and, where their bits agree on one side of the cut, the same pairs, but other counts.
3. Where no such cut helps a pair is broken, at the price of its transition.

The relaxation bounds all mixtures from above and is met but for the pairs broken: nothing broken proves z optimal, and
what was lost bounds ‖z − z*‖² (add the variational inequalities of both problems).
"""

import numpy as np

from rationalizer.ops.kernels.bits_cpu import is_set, ones
from rationalizer.ops.kernels.runtime import jit

TINY = 1e-12  # measures below it are rounding
NONE = -1
TRIALS = 400  # how many partners a sequence is tried with
SIDES = 4
UNEVEN = 5.0
TESTS = 16  # how many trials there are in all, a token


@jit
def _push(first, after, level, atom):
    after[atom] = first[level]
    first[level] = atom


@jit
def _fill(words, start, stop):
    """Set the bits start ... stop − 1."""
    for i in range(start, stop):
        words[i >> 6] |= np.uint64(1) << np.uint64(i & 63)


@jit
def lay(z, linked, m, atoms, mass, count):
    """Lay m tokens of measure `z`, nested where `linked[i]` joins i and i + 1; returns how many atoms (<= m + 1).

    `atoms` (m + 1, words) receives their bits, `mass` their measures, `count` their ones.
    """
    atoms[: m + 1] = 0
    # Atoms by count, as stacks. Those inside the current set rise together, so their levels are relative.
    outside, inside, after = np.full(m + 1, NONE), np.full(2 * m + 2, NONE), np.full(m + 1, NONE)
    since = np.zeros(m + 1, np.int64)
    mass[0], count[0] = 1.0, 0
    _push(outside, after, 0, 0)
    k = 1
    low, high = 0, -1  # the lowest level outside, the highest inside (both bounds)
    covered = 0.0
    risen = 0
    for t in range(m):
        if t > 0 and not linked[t - 1]:
            # Nothing ties this token to the last: all atoms are outside again.
            for level in range(high, -1, -1):
                while inside[level] != NONE:
                    a = inside[level]
                    inside[level] = after[a]
                    count[a] = level + risen - m
                    _fill(atoms[a], since[a], t)
                    _push(outside, after, count[a], a)
                    low = min(low, count[a])
            high = -1
            covered = 0.0
        change = z[t] - covered
        while change < -TINY:
            while inside[high] == NONE:
                high -= 1
            a = inside[high]
            inside[high] = after[a]
            total = high + risen - m
            if mass[a] > -change + TINY:
                # Only a part of it leaves: the part is a new atom.
                b = k
                k += 1
                atoms[b] = atoms[a]
                mass[b], since[b] = -change, since[a]
                mass[a] += change
                _push(inside, after, high, a)
                a = b
            change += mass[a]
            count[a] = total
            _fill(atoms[a], since[a], t)
            _push(outside, after, total, a)
            low = min(low, total)
        while change > TINY:
            while low <= m and outside[low] == NONE:
                low += 1
            if low > m:
                break
            a = outside[low]
            outside[low] = after[a]
            if mass[a] > change + TINY:
                b = k
                k += 1
                atoms[b] = atoms[a]
                mass[b] = mass[a] - change
                count[b] = low
                mass[a] = change
                _push(outside, after, low, b)
            change -= mass[a]
            since[a] = t
            level = low - risen + m
            _push(inside, after, level, a)
            high = max(high, level)
        covered = z[t]
        risen += 1
    for level in range(high, -1, -1):
        while inside[level] != NONE:
            a = inside[level]
            inside[level] = after[a]
            count[a] = level + risen - m
            _fill(atoms[a], since[a], m)
    return k


@jit
def _join(left, right, middle, m, out):
    """`left` (the first `middle` tokens) and `right` (the other tokens, last one first) as one sequence."""
    out[:] = left
    for i in range(m - middle):
        if is_set(right, i):
            j = m - 1 - i
            out[j >> 6] |= np.uint64(1) << np.uint64(j & 63)


@jit
def _let_go(measure, atoms, mass, count, inside, k):
    """Mark as outside the atoms with most ones, as much as `measure`; returns the new number of atoms."""
    while measure > TINY:
        most = -1
        for a in range(k):
            if inside[a] and (most < 0 or count[a] > count[most]):
                most = a
        if mass[most] > measure + TINY:
            atoms[k] = atoms[most]
            mass[k], count[k], inside[k] = measure, count[most], False
            mass[most] -= measure
            return k + 1
        inside[most] = False
        measure -= mass[most]
    return k


@jit
def lay_from_both_ends(z, linked, m, atoms, mass, count):
    """`lay`, from both ends to the middle; returns how many atoms there are (<= m + 3)."""
    middle = m // 2
    rest = m - middle
    words = atoms.shape[1]
    left, right = np.empty((middle + 2, words), np.uint64), np.empty((rest + 2, words), np.uint64)
    left_mass, right_mass = np.empty(middle + 2), np.empty(rest + 2)
    left_count, right_count = np.empty(middle + 2, np.int64), np.empty(rest + 2, np.int64)
    lefts = lay(z, linked, middle, left, left_mass, left_count)
    rights = lay(z[::-1].copy(), linked[: m - 1][::-1].copy(), rest, right, right_mass, right_count)
    left_inside, right_inside = np.zeros(middle + 2, np.bool_), np.zeros(rest + 2, np.bool_)
    if linked[middle - 1]:
        for a in range(lefts):
            left_inside[a] = is_set(left[a], middle - 1)
        for a in range(rights):
            right_inside[a] = is_set(right[a], rest - 1)
        change = z[middle - 1] - z[middle]
        lefts = _let_go(change, left, left_mass, left_count, left_inside, lefts)
        rights = _let_go(-change, right, right_mass, right_count, right_inside, rights)
    first, second = np.argsort(-left_count[:lefts]), np.argsort(right_count[:rights])
    k = 0
    for inside in (False, True):
        i, j = 0, 0
        while True:
            while i < lefts and (left_inside[first[i]] != inside or left_mass[first[i]] <= TINY):
                i += 1
            while j < rights and (right_inside[second[j]] != inside or right_mass[second[j]] <= TINY):
                j += 1
            if i == lefts or j == rights:
                break
            a, b = first[i], second[j]
            share = min(left_mass[a], right_mass[b])
            _join(left[a], right[b], middle, m, atoms[k])
            mass[k], count[k] = share, left_count[a] + right_count[b]
            left_mass[a] -= share
            right_mass[b] -= share
            k += 1
    return k


@jit
def _cut(x, y, linked, r, m, most, target, free):
    """Where to exchange the tails of x and y: (the cut t, after token t, and d(t)), d(t) how many more ones x has than
    y up to there. (−1, 0) if there is no place.

    If `free`, for nothing and with 0 < d < most, as near to `target` as there is; otherwise with d = target exactly,
    where the broken pair costs least.
    """
    place, found = -1, 0
    d = 0
    last = -1  # where the bits differed last
    for w in range(x.shape[0]):
        differ = x[w] ^ y[w]
        while differ != 0:
            lowest = differ & (~differ + np.uint64(1))
            differ ^= lowest
            t = w * 64 + int(ones(lowest - np.uint64(1)))
            if last >= 0 and 0 < d < most:
                costs_nothing = t > last + 1 or not linked[last]
                if free:
                    if costs_nothing and (place < 0 or abs(d - target) < abs(found - target)):
                        place, found = last, d
                        if d == target:
                            return place, found
                elif d == target:
                    if costs_nothing:
                        return last, d
                    if place < 0 or r[last] < r[place]:
                        place, found = last, d
            d += 1 if (x[w] & lowest) != 0 else -1
            last = t
    return place, found


@jit
def _exchange(x, y, t):
    """Exchange the bits after t."""
    word = (t + 1) >> 6
    part = ~((np.uint64(1) << np.uint64((t + 1) & 63)) - np.uint64(1))
    for w in range(word, x.shape[0]):
        keep = part if w == word else ~np.uint64(0)
        swap = (x[w] ^ y[w]) & keep
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
def _side_cut(x, y, linked, m, most, wanted):
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
            if last >= 0 and 0 <= d <= most and (t > last + 1 or not linked[last]):
                if place < 0 or abs(last - wanted) < abs(place - wanted):
                    place, found = last, d
            d += 1 if (x[w] & lowest) != 0 else -1
            last = t
    return place, found


@jit
def level_out(linked, r, m, capacity, atoms, mass, count, k):
    """Exchange tails until no atom has more than `capacity` ones. Returns (how many atoms there are, what that cost);
    the cost is infinite where there was no room for more atoms."""
    room = atoms.shape[0]
    lost = 0.0
    tests, sides = 0, 0
    state = 12345
    for free in (True, False):
        x = 0
        while x < k:
            if count[x] <= capacity:
                x += 1
                continue
            if k + 1 >= room:
                return k, np.inf
            best, best_place, best_d = -1, -1, 0
            above = count[x] - capacity
            tried = 0
            for y in range(k):
                below = capacity - count[y]
                if below <= 0:
                    continue
                if free and (tried >= TRIALS or tests >= TESTS * m):
                    break
                tried += 1
                tests += 1
                target = min(above, below)
                place, d = _cut(atoms[x], atoms[y], linked, r, m, above + below, target, free)
                if place < 0:
                    continue
                best, best_place, best_d = y, place, d
                if not free or d == target:
                    break
            if best < 0 and free and tests < TESTS * m and sides < SIDES * m:
                # sideways
                for _ in range(20):
                    state = (state * 1103515245 + 12345) & 0x7FFFFFFF
                    y = (state >> 8) % k
                    state = (state * 1103515245 + 12345) & 0x7FFFFFFF
                    wanted = (state >> 8) % m
                    if count[y] != capacity:
                        continue
                    place, d = _side_cut(atoms[x], atoms[y], linked, m, above, wanted)
                    tests += 1
                    sides += 1
                    if place >= 0:
                        best, best_place, best_d = y, place, d
                        break
            if best < 0:
                x += 1
                continue
            k = _split(atoms, mass, count, x, best, k)
            if not free:
                lost += r[best_place] * mass[x]
            _exchange(atoms[x], atoms[best], best_place)
            count[x], count[best] = count[best] + best_d, count[x] - best_d
            x = min(x, best)
    return k, lost


@jit
def mixture_of_sequences(z, r, budget, atoms, mass, tokens):
    """Write `z` as a mixture of sequences with at most `budget` ones; returns (how many, what the broken pairs cost).

    `atoms` (>= 6n + 8, words) and `mass` receive them; `tokens` (n,) is scratch. The cost is infinite, and the number 0,
    where it is not worth the effort or no room was left.
    """
    n = z.shape[0]
    m, full = 0, 0
    linked, edges, heights = np.zeros(n, np.bool_), np.zeros(n), np.empty(n)
    for i in range(n):
        if z[i] == 1.0:
            full += 1
        elif z[i] > 0.0:
            if m > 0 and tokens[m - 1] == i - 1:
                linked[m - 1] = r[i - 1] > 0.0
                edges[m - 1] = r[i - 1]
            tokens[m], heights[m] = i, z[i]
            m += 1
    room = 6 * m + 8
    count = np.empty(room, np.int64)
    small = np.empty((room, (m + 63) // 64), np.uint64)
    k = lay_from_both_ends(heights[:m], linked, m, small, mass, count)
    uneven = 0.0
    for a in range(k):
        uneven += mass[a] * abs(count[a] - (budget - full))
    if uneven > UNEVEN:
        return 0, np.inf
    k, lost = level_out(linked, edges, m, budget - full, small, mass, count, k)
    if lost == np.inf:
        return 0, lost
    atoms[:k] = 0
    for i in range(n):
        if z[i] == 1.0:
            for a in range(k):
                atoms[a, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
    for j in range(m):
        i = tokens[j]
        bit = np.uint64(1) << np.uint64(i & 63)
        for a in range(k):
            if is_set(small[a], j):
                atoms[a, i >> 6] |= bit
    return k, lost
