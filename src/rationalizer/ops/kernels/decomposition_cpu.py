"""Decompose a point z of the PAIR + BUDGET relaxation into a mixture of sequences within the budget.

The algorithm subtracts weighted sequences from z until their weights add up to 1. Neighbouring words of equal height
form a block. Each sequence respects the order of neighbours: if z_i > z_{i+1}, it contains word i + 1 only together
with word i, so the pair marginals stay min(z_i, z_{i+1}). Its weight is the largest one that preserves this order and
leaves a remainder that can satisfy the budget. A Viterbi algorithm over blocks, with minima instead of sums, finds the
sequence with the largest weight. Every step merges two blocks, or empties or fills one, so there are at most twice as
many steps as blocks, and usually far fewer. If a remainder is left, a second attempt subtracts only half of the largest
weight in its first steps.

A complete decomposition proves z optimal: the relaxation is an upper bound on all mixtures, and z attains it. If pairs
may be separated, a remainder is also a mixture, and separating pairs costs at most their bonus. This bounds
‖z − z*‖²: let (z, ν) be the point of the relaxation, (z, ν') the mixture and (z*, ν*) the optimum. Optimality of the
first and the last gives (s − z)·(z* − z) + r·(ν* − ν) ≤ 0 and (s − z*)·(z − z*) + r·(ν' − ν*) ≤ 0. The sum of the two
is ‖z − z*‖² ≤ r·(ν − ν').
"""

import numpy as np

from rationalizer.ops.kernels.bits_cpu import word_count
from rationalizer.ops.kernels.numba_runtime import jit

TINY = 1e-12  # smaller weights are rounding errors
IMPOSSIBLE = -1.0  # less than any weight
MAX_CELLS = 2**25  # of blocks × budget, 8 bytes per cell; larger rows are not decomposed


@jit
def fractional_blocks(z, r, blocks, heights, linked):
    """Write the runs of equal fractional neighbours, (first word, last word + 1), to `blocks`; return their number."""
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
def _limits(b, heights, linked, remainder):
    """Return the largest weights of four kinds of sequences: with block b, without b, with b but not b − 1, with b − 1
    but not b."""
    on = heights[b] if heights[b] > TINY else IMPOSSIBLE
    off = remainder - heights[b] if remainder - heights[b] > TINY else IMPOSSIBLE
    if not linked[b]:
        return on, off, 1.0, 1.0
    change = heights[b] - heights[b - 1]
    return on, off, change if change > 0.0 else IMPOSSIBLE, -change if change < 0.0 else IMPOSSIBLE


@jit
def _heaviest(m, blocks, heights, linked, remainder, room, y, zero, one):
    """Write the sequence of blocks with the largest weight to `y`; return the weight and the number of ones.

    `room` is the budget minus the sum of z over the remainder; a sequence with fewer ones than the budget reduces it.
    `zero` and `one` (m + 1, capacity + 1) receive the largest weight of the first blocks, by number of ones, if the
    last block is 0 and if it is 1. They are float32, which is precise enough to compare sequences.
    """
    capacity = zero.shape[1] - 1
    width = np.uint64(capacity + 1)
    zeros, ones = zero.reshape(-1), one.reshape(-1)
    for b in range(m):
        on, off, rise, fall = _limits(b, heights, linked, remainder)
        on, off, rise, fall = np.float32(on), np.float32(off), np.float32(rise), np.float32(fall)
        # Unsigned indices into flat arrays, and no branches, so that the compiler vectorizes the loops.
        size = np.uint64(min(blocks[b, 1] - blocks[b, 0], capacity + 1))
        here, ahead = np.uint64(b) * width, np.uint64(b + 1) * width
        for k in range(width):
            left = ones[here + k]
            left = left if left < fall else fall
            best = zeros[here + k]
            best = best if best > left else left
            zeros[ahead + k] = best if best < off else off
        for k in range(size):
            ones[ahead + k] = np.float32(IMPOSSIBLE)
        ahead += size
        for k in range(width - size):
            started = zeros[here + k]
            started = started if started < rise else rise
            best = ones[here + k]
            best = best if best > started else started
            ones[ahead + k] = best if best < on else on
    weight, used, bit = IMPOSSIBLE, 0, 0
    for k in range(capacity + 1):
        largest = remainder if k == capacity else room / (capacity - k)
        for last in range(2):
            candidate = min(float(one[m, k] if last else zero[m, k]), largest)
            if candidate > weight:
                weight, used, bit = candidate, k, last
    if weight <= TINY:
        return 0.0, 0
    count = used
    weight = remainder if used == capacity else min(remainder, room / (capacity - used))
    for b in range(m - 1, -1, -1):
        y[b] = bit
        on, off, rise, fall = _limits(b, heights, linked, remainder)
        weight = min(weight, on if bit else off)
        used -= bit * (blocks[b, 1] - blocks[b, 0])
        stay, change = (one[b, used], zero[b, used]) if bit else (zero[b, used], one[b, used])
        passage = rise if bit else fall
        if min(change, np.float32(passage)) >= stay:
            weight = min(weight, passage)
            bit = 1 - bit
    return weight, count


@jit
def _subtract(m, blocks, heights, linked, weight, y):
    """Subtract the weighted sequence and merge neighbouring blocks of equal height; return the number of blocks."""
    count = 0
    for b in range(m):
        height = heights[b] - weight if y[b] else heights[b]
        if linked[b] and abs(height - heights[count - 1]) <= TINY:
            blocks[count - 1, 1] = blocks[b, 1]
        else:
            blocks[count, 0], blocks[count, 1] = blocks[b, 0], blocks[b, 1]
            heights[count], linked[count] = height, linked[b]
            count += 1
    return count


@jit
def _pair_bonus(m, blocks, heights, r):
    """Return the total bonus of the pairs in the blocks."""
    total = 0.0
    for b in range(m):
        for i in range(blocks[b, 0], blocks[b, 1] - 1):
            total += r[i] * heights[b]
        if b + 1 < m and blocks[b, 1] == blocks[b + 1, 0]:
            total += r[blocks[b, 1] - 1] * min(heights[b], heights[b + 1])
    return max(total, 0.0)


@jit
def _decompose(z, r, budget, by_halves, squared_tolerance, stop):
    """Decompose as in `decompose`; if `by_halves`, the first steps subtract only half of the largest weight."""
    n = z.shape[0]
    blocks, heights, linked = np.empty((n, 2), np.int64), np.empty(n), np.empty(n, np.bool_)
    m = fractional_blocks(z, r, blocks, heights, linked)
    full = np.zeros(word_count(n), np.uint64)
    capacity = budget
    room = float(budget)
    for i in range(n):
        room -= z[i]
        if z[i] == 1.0:
            full[i >> 6] |= np.uint64(1) << np.uint64(i & 63)
            capacity -= 1
    loss = _pair_bonus(m, blocks, heights, r)
    if (m + 1) * (capacity + 1) > MAX_CELLS:
        return np.empty((1, full.shape[0]), np.uint64), np.empty(1), 0, loss
    halves = m if by_halves else 0
    sequences, weights = np.empty((halves + 2 * m + 1, full.shape[0]), np.uint64), np.empty(halves + 2 * m + 1)
    y = np.empty(m, np.uint8)
    zero, one = np.empty((m + 1, capacity + 1), np.float32), np.empty((m + 1, capacity + 1), np.float32)
    zero[0], one[0] = IMPOSSIBLE, IMPOSSIBLE
    zero[0, 0] = 1.0
    count, remainder, block_count = 0, 1.0, m
    while loss > squared_tolerance and remainder > TINY and count < weights.shape[0] and stop[0] == 0:
        weight, used = _heaviest(m, blocks, heights, linked, remainder, room, y, zero, one)
        if weight <= TINY:
            break
        if count < halves and weight < remainder:
            weight *= 0.5
        sequences[count] = full
        for b in range(m):
            for i in range(blocks[b, 0], blocks[b, 1] if y[b] else blocks[b, 0]):
                sequences[count, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
        weights[count] = weight
        count += 1
        m = _subtract(m, blocks, heights, linked, weight, y)
        remainder -= weight
        room -= weight * (capacity - used)
        loss = _pair_bonus(m, blocks, heights, r)
    return sequences, weights, count, 0.0 if remainder <= TINY * block_count else loss


@jit
def decompose(z, r, budget, squared_tolerance, stop):
    """Decompose `z`, feasible for PAIR + BUDGET, into a mixture of sequences with at most `budget` ones each.

    Returns (sequences, weights, count, loss). The weights add up to 1 minus the weight of the remainder; the loss is
    the bonus of the pairs in the remainder. Stops when the loss is at most `squared_tolerance` or `stop[0]` is set.
    """
    sequences, weights, count, loss = _decompose(z, r, budget, False, squared_tolerance, stop)
    if loss > squared_tolerance and count > 0:
        # At ties one sequence may empty several blocks, and no sequence fits the remainder. Halving avoids this.
        second = _decompose(z, r, budget, True, squared_tolerance, stop)
        if second[3] < loss:
            return second
    return sequences, weights, count, loss
