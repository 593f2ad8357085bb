"""A certificate that a point z of the PAIR + BUDGET relaxation is a mixture of sequences within the bounds.

Let z be the optimum of the relaxation. Neighbouring words of equal height form a block. A sequence is nested if it
respects the order of neighbours: if z_i > z_{i+1}, it contains word i + 1 only together with word i. The pair marginals
of a mixture of nested sequences are min(z'_i, z'_{i+1}), as in the relaxation. On such mixtures the objective of the
relaxation is a quadratic function with gradient 0 at z, so that its value at z' is lower by ½‖z − z'‖². By strong
concavity, the distance of z from the optimum over all mixtures is then at most ‖z − z'‖.

Among the mixtures of nested sequences within the bounds, the one of maximum entropy relative to a Markov chain has
probabilities proportional to those of the chain times exp(θ·y). Its marginals z' are one forward and one backward pass
over blocks and numbers of ones. They equal z at the minimum of log E[exp(θ·y)] − θ·z, a smooth convex function of θ,
which L-BFGS finds in few passes: the chain has marginals z itself, only the bounds change them, and its Hessian is
known. The inverse of the Hessian is tridiagonal. The minimum exists if z is in the relative interior of the mixtures.
"""

import numpy as np

from rationalizer.ops.kernels.numba_runtime import jit, reordering

TINY = 1e-12  # smaller differences of heights are rounding errors
ROUNDING = 1e-10  # the distance up to which z and z' are equal
MAX_CELLS = 2**25  # of blocks × budget, 8 bytes per cell; the search does not start in larger rows
MEMORY = 8  # steps that L-BFGS remembers
PATIENCE = 8  # passes after which the distance must have halved
LONGEST_STEP = 3.0  # the largest change of a component of θ
OFF, FALL, RISE, ON = 0, 1, 2, 3  # transitions of the chain: 0 → 0, 1 → 0, 0 → 1, 1 → 1


@jit
def _fractional_blocks(z, r, blocks, heights, linked):
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
def _markov_chain(blocks, heights, linked, m, chain, diagonal, above):
    """Write the transition probabilities of the nested chain with marginals `heights` to `chain`.

    Write the inverse of the covariance of its states, a tridiagonal matrix, to `diagonal` and `above`.
    """
    for b in range(m):
        now = heights[b]
        diagonal[b], above[b] = 1.0 / now + 1.0 / (1.0 - now), 0.0
        chain[b, OFF], chain[b, FALL], chain[b, RISE], chain[b, ON] = 1.0 - now, 1.0 - now, now, now
        if not linked[b]:
            continue
        before = heights[b - 1]
        change = 1.0 / abs(now - before)
        above[b] = -change
        if now > before:
            chain[b, OFF], chain[b, FALL] = (1.0 - now) / (1.0 - before), 0.0
            chain[b, RISE], chain[b, ON] = (now - before) / (1.0 - before), 1.0
            diagonal[b - 1] += change - 1.0 / (1.0 - before)
            diagonal[b] += change - 1.0 / now
        else:
            chain[b, OFF], chain[b, FALL] = 1.0, (before - now) / before
            chain[b, RISE], chain[b, ON] = 0.0, now / before
            diagonal[b - 1] += change - 1.0 / before
            diagonal[b] += change - 1.0 / (1.0 - now)


@reordering
def _marginals(m, sizes, chain, tilt, least, capacity, off, on, prefixes, marginals):
    """Write the marginals of the chain with weights `tilt` on ones, given that `least` to `capacity` words are one.

    `prefixes` (m + 1, capacity + 1) receives the weights of the first blocks that end with a one, by number of ones.
    """
    width = capacity + 1
    for k in range(width):
        off[0, k] = prefixes[0, k] = 0.0
    off[0, 0] = 1.0
    for b in range(m):
        now, after, size = off[b & 1], off[1 - (b & 1)], min(sizes[b], width)
        before, here = prefixes[b], prefixes[b + 1]
        stay, fall, rise, go_on = chain[b, OFF], chain[b, FALL], chain[b, RISE] * tilt[b], chain[b, ON] * tilt[b]
        for k in range(width):
            after[k] = stay * now[k] + fall * before[k]
        for k in range(size):
            here[k] = 0.0
        for k in range(width - size):
            here[k + size] = rise * now[k] + go_on * before[k]
    last, total = off[m & 1], 0.0
    for k in range(least, width):
        total += last[k] + prefixes[m, k]
    for k in range(width):
        off[m & 1, k] = on[m & 1, k] = 1.0 / total if k >= least else 0.0
    for b in range(m - 1, -1, -1):
        after_0, after_1, before_0, before_1 = off[1 - (b & 1)], on[1 - (b & 1)], off[b & 1], on[b & 1]
        size, here = min(sizes[b], width), prefixes[b + 1]
        stay, fall, rise, go_on = chain[b, OFF], chain[b, FALL], chain[b, RISE] * tilt[b], chain[b, ON] * tilt[b]
        share = 0.0
        for k in range(width):
            share += here[k] * after_1[k]
        marginals[b] = share
        for k in range(width - size):
            before_0[k] = stay * after_0[k] + rise * after_1[k + size]
            before_1[k] = fall * after_0[k] + go_on * after_1[k + size]
        for k in range(width - size, width):
            before_0[k] = stay * after_0[k]
            before_1[k] = fall * after_0[k]


@jit
def _newton_like_step(m, error, diagonal, above, steps, changes, curvature, count, rest, step):
    """Write the L-BFGS step for the gradient `error` to `step`; the inverse Hessian of the chain starts it."""
    scale = np.empty(MEMORY)
    first = max(count - MEMORY, 0)
    for b in range(m):
        rest[b] = -error[b]
    for t in range(count - 1, first - 1, -1):
        i = t % MEMORY
        total = 0.0
        for b in range(m):
            total += steps[i, b] * rest[b]
        scale[i] = total / curvature[i]
        for b in range(m):
            rest[b] -= scale[i] * changes[i, b]
    for b in range(m):
        step[b] = diagonal[b] * rest[b]
        if b > 0:
            step[b] += above[b] * rest[b - 1]
        if b + 1 < m:
            step[b] += above[b + 1] * rest[b + 1]
    for t in range(first, count):
        i = t % MEMORY
        total = 0.0
        for b in range(m):
            total += changes[i, b] * step[b]
        total = scale[i] - total / curvature[i]
        for b in range(m):
            step[b] += total * steps[i, b]


@jit
def distance_to_mixture(z, r, least, budget, tolerance, stop):
    """Return ‖z − z'‖ for a mixture z' of nested sequences with `least` to `budget` ones each; inf if none was found.

    The search ends once the distance is at most `tolerance` (or a rounding error, if that is more), when it stops
    falling, or when `stop[0]` is set.
    """
    n = z.shape[0]
    blocks, heights, linked = np.empty((n, 2), np.int64), np.empty(n), np.empty(n, np.bool_)
    m = _fractional_blocks(z, r, blocks, heights, linked)
    for i in range(n):
        if z[i] == 1.0:
            least, budget = least - 1, budget - 1
    least = max(least, 0)
    if (m + 1) * (budget + 1) > MAX_CELLS:
        return np.inf
    sizes, chain, diagonal, above = np.empty(m, np.int64), np.empty((m, 4)), np.empty(m), np.empty(m)
    for b in range(m):
        sizes[b] = blocks[b, 1] - blocks[b, 0]
    _markov_chain(blocks, heights, linked, m, chain, diagonal, above)
    prefixes, off, on = np.empty((m + 1, budget + 1)), np.empty((2, budget + 1)), np.empty((2, budget + 1))
    theta, tilt, marginals, error = np.zeros(m), np.ones(m), np.empty(m), np.empty(m)
    steps, changes, curvature = np.empty((MEMORY, m)), np.empty((MEMORY, m)), np.empty(MEMORY)
    step, rest = np.empty(m), np.empty(m)
    _marginals(m, sizes, chain, tilt, least, budget, off, on, prefixes, marginals)
    count, patience, best = 0, PATIENCE, np.inf
    while True:
        square = 0.0
        for b in range(m):
            error[b] = marginals[b] - heights[b]
            square += sizes[b] * error[b] * error[b]
        distance = np.sqrt(square)
        if distance <= max(tolerance, ROUNDING):
            return distance
        if distance <= 0.5 * best:
            best, patience = distance, PATIENCE
        _newton_like_step(m, error, diagonal, above, steps, changes, curvature, count, rest, step)
        slope, largest = 0.0, 0.0
        for b in range(m):
            slope += error[b] * step[b]
            largest = max(largest, abs(step[b]))
        length = min(1.0, LONGEST_STEP / largest)
        while True:
            patience -= 1
            if patience < 0 or not slope < 0.0 or stop[0] != 0:
                return np.inf
            for b in range(m):
                tilt[b] = np.exp(theta[b] + length * step[b])
            _marginals(m, sizes, chain, tilt, least, budget, off, on, prefixes, marginals)
            new_slope = 0.0
            for b in range(m):
                new_slope += (marginals[b] - heights[b]) * step[b]
            if new_slope <= -0.9 * slope:
                break
            length *= max(slope / (slope - new_slope), 0.1) if np.isfinite(new_slope) else 0.1
        i = count % MEMORY
        curvature[i] = 0.0
        for b in range(m):
            theta[b] += length * step[b]
            steps[i, b] = length * step[b]
            changes[i, b] = marginals[b] - heights[b] - error[b]
            curvature[i] += steps[i, b] * changes[i, b]
        if curvature[i] > 0.0:
            count += 1
