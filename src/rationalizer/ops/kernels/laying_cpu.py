"""Tokens laid round a circle, one after the other, as an explicit mixture of sequences.

As in `packing_cpu` token i stands for a set of measure z_i on a circle of length 1, the sets of neighbours nested; here
the circle is kept as atoms, each a sequence with its measure. A set that shrinks lets go of the atoms with most ones, a
set that grows takes those with fewest, so the counts stay level. Tokens are laid from both ends; in the middle the
atoms of the two halves are joined, many ones to few. `levelling_cpu` evens out what is left.
"""

import numpy as np

from rationalizer.ops.kernels.bits_cpu import is_set
from rationalizer.ops.kernels.runtime import jit
from rationalizer.ops.kernels.sorting_cpu import ascending

TINY = 1e-12  # measures below it are rounding
NONE = -1


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
    outside, inside, after = np.full(m + 1, NONE), np.full(m + 1, NONE), np.full(m + 1, NONE)
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
            while high >= 0 and inside[high] == NONE:
                high -= 1
            if high < 0:
                break
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
        if most < 0:
            break
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
    first, second = ascending(-left_count[:lefts]), ascending(right_count[:rights])
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
