"""A point of the PAIR + BUDGET relaxation as a mixture of sequences within the budget, and what that proves.

A mixture of weight 1 is peeled off z sequence by sequence. Each keeps to the order of neighbours: where z_i > z_{i+1}
it has token i + 1 only together with i, so that no pair is broken, and tokens of one height are one block. Its weight
is the most that leaves the same order behind, and a budget that can be kept; the sequence is the one with most weight,
found by a Viterbi over blocks whose values are not sums but minima. Every peel fuses two blocks, or empties or fills
one, so there are no more than twice as many peels as blocks, and usually far fewer. Where something is left over, a
second try takes only half of the most at first.

The relaxation bounds all mixtures from above, and this one meets the bound. So nothing left over proves z optimal. What
is left over is a mixture, too, if pairs may be broken, and they cost at most what they earn in the relaxation. That
bounds ‖z − z*‖²: with (z, ν) the point of the relaxation, (z, ν') the mixture, and (z*, ν*) the optimum, the optimality
of the first and of the last give (s − z)·(z* − z) + r·(ν* − ν) <= 0 and (s − z*)·(z − z*) + r·(ν' − ν*) <= 0, whose
sum is ‖z − z*‖² <= r·(ν − ν').
"""

import numpy as np

from rationalizer.ops.kernels.bits_cpu import word_count
from rationalizer.ops.kernels.numba_runtime import jit

TINY = 1e-12  # measures below it are rounding
NEVER = -1.0  # a weight that no sequence has
MOST_CELLS = 2**25  # blocks by budget, 8 bytes each: longer rows are not tried


@jit
def _blocks(z, r, blocks, heights, linked):
    """The runs of equal fractional neighbours: first token and the one after the last to `blocks`; returns how many."""
    m = 0
    for i in range(z.shape[0]):
        if not 0.0 < z[i] < 1.0:
            continue
        joined = m > 0 and blocks[m - 1, 1] == i and r[i - 1] > 0.0
        if joined and abs(z[i] - heights[m - 1]) <= TINY:
            blocks[m - 1, 1] = i + 1
        else:
            blocks[m, 0], blocks[m, 1], heights[m], linked[m] = i, i + 1, z[i], joined
            m += 1
    return m


@jit
def _limits(b, heights, linked, rest):
    """How much weight a sequence may have that has block b, that has not, that begins with it, and that ends before."""
    on = heights[b] if heights[b] > TINY else NEVER
    off = rest - heights[b] if rest - heights[b] > TINY else NEVER
    if not linked[b]:
        return on, off, 1.0, 1.0
    change = heights[b] - heights[b - 1]
    return on, off, change if change > 0.0 else NEVER, -change if change < 0.0 else NEVER


@jit
def _heaviest(m, blocks, heights, linked, rest, room, y, zero, one):
    """The sequence of blocks with the most weight to `y`; returns the weight, and how many ones it has.

    `room` is how far the rest of z is below the budget, which a sequence with fewer ones uses up. `zero` and `one`
    (m + 1, capacity + 1) receive the most weight of the blocks before, by how many ones they have and the last one's
    bit: in short numbers, which is enough to choose by.
    """
    capacity = zero.shape[1] - 1
    width = np.uint64(capacity + 1)
    zeros, ones = zero.reshape(-1), one.reshape(-1)
    for b in range(m):
        on, off, rise, fall = _limits(b, heights, linked, rest)
        on, off, rise, fall = np.float32(on), np.float32(off), np.float32(rise), np.float32(fall)
        # Unsigned places in flat arrays, and choices instead of branches: so the loops become vector instructions.
        size = np.uint64(min(blocks[b, 1] - blocks[b, 0], capacity + 1))
        here, ahead = np.uint64(b) * width, np.uint64(b + 1) * width
        for k in range(width):
            left = ones[here + k]
            left = left if left < fall else fall
            best = zeros[here + k]
            best = best if best > left else left
            zeros[ahead + k] = best if best < off else off
        for k in range(size):
            ones[ahead + k] = np.float32(NEVER)
        ahead += size
        for k in range(width - size):
            begun = zeros[here + k]
            begun = begun if begun < rise else rise
            best = ones[here + k]
            best = best if best > begun else begun
            ones[ahead + k] = best if best < on else on
    weight, used, bit = NEVER, 0, 0
    for k in range(capacity + 1):
        most = rest if k == capacity else room / (capacity - k)
        for last in range(2):
            found = min(float(one[m, k] if last else zero[m, k]), most)
            if found > weight:
                weight, used, bit = found, k, last
    if weight <= TINY:
        return 0.0, 0
    count = used
    weight = rest if used == capacity else min(rest, room / (capacity - used))
    for b in range(m - 1, -1, -1):
        y[b] = bit
        on, off, rise, fall = _limits(b, heights, linked, rest)
        weight = min(weight, on if bit else off)
        used -= bit * (blocks[b, 1] - blocks[b, 0])
        stay, change = (one[b, used], zero[b, used]) if bit else (zero[b, used], one[b, used])
        passage = rise if bit else fall
        if min(change, np.float32(passage)) >= stay:
            weight = min(weight, passage)
            bit = 1 - bit
    return weight, count


@jit
def _peel(m, blocks, heights, linked, weight, y):
    """Take the sequence off; blocks that have come to one height are fused. Returns how many there are now."""
    kept = 0
    for b in range(m):
        height = heights[b] - weight if y[b] else heights[b]
        if linked[b] and abs(height - heights[kept - 1]) <= TINY:
            blocks[kept - 1, 1] = blocks[b, 1]
        else:
            blocks[kept, 0], blocks[kept, 1], heights[kept], linked[kept] = (
                blocks[b, 0],
                blocks[b, 1],
                height,
                linked[b],
            )
            kept += 1
    return kept


@jit
def _price(m, blocks, heights, r):
    """What the pairs of the blocks earn."""
    total = 0.0
    for b in range(m):
        for i in range(blocks[b, 0], blocks[b, 1] - 1):
            total += r[i] * heights[b]
        if b + 1 < m and blocks[b, 1] == blocks[b + 1, 0]:
            total += r[blocks[b, 1] - 1] * min(heights[b], heights[b + 1])
    return max(total, 0.0)


@jit
def _peel_all(z, r, budget, gently, enough, stop):
    n = z.shape[0]
    blocks, heights, linked = np.empty((n, 2), np.int64), np.empty(n), np.empty(n, np.bool_)
    m = _blocks(z, r, blocks, heights, linked)
    full = np.zeros(word_count(n), np.uint64)
    capacity = budget
    room = float(budget)
    for i in range(n):
        room -= z[i]
        if z[i] == 1.0:
            full[i >> 6] |= np.uint64(1) << np.uint64(i & 63)
            capacity -= 1
    lost = _price(m, blocks, heights, r)
    if (m + 1) * (capacity + 1) > MOST_CELLS:
        return np.empty((1, full.shape[0]), np.uint64), np.empty(1), 0, lost
    halves = m if gently else 0
    sequences, weights = np.empty((halves + 2 * m + 1, full.shape[0]), np.uint64), np.empty(halves + 2 * m + 1)
    y = np.empty(m, np.uint8)
    zero, one = np.empty((m + 1, capacity + 1), np.float32), np.empty((m + 1, capacity + 1), np.float32)
    zero[0], one[0] = NEVER, NEVER
    zero[0, 0] = 1.0
    count, rest, given = 0, 1.0, m
    while lost > enough and rest > TINY and count < weights.shape[0] and stop[0] == 0:
        weight, used = _heaviest(m, blocks, heights, linked, rest, room, y, zero, one)
        if weight <= TINY:
            break
        if count < halves and weight < rest:
            weight *= 0.5
        sequences[count] = full
        for b in range(m):
            for i in range(blocks[b, 0], blocks[b, 1] if y[b] else blocks[b, 0]):
                sequences[count, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
        weights[count] = weight
        count += 1
        m = _peel(m, blocks, heights, linked, weight, y)
        rest -= weight
        room -= weight * (capacity - used)
        lost = _price(m, blocks, heights, r)
    return sequences, weights, count, 0.0 if rest <= TINY * given else lost


@jit
def mixture_of_sequences(z, r, budget, enough, stop):
    """Write `z`, which PAIR + BUDGET allows, as a mixture of sequences with at most `budget` ones each.

    Returns (sequences, weights, how many, a bound on what is lost): weights that sum to 1 but for what was left over,
    and what the pairs of that earn. Ends early where that is at most `enough`, and when `stop[0]` is set.
    """
    sequences, weights, count, lost = _peel_all(z, r, budget, False, enough, stop)
    if lost > enough and count > 0:
        # Tied heights go to one sequence at once, and what is left fits none. Half the weight leaves them apart.
        others, shares, number, missing = _peel_all(z, r, budget, True, enough, stop)
        if missing < lost:
            return others, shares, number, missing
    return sequences, weights, count, lost
