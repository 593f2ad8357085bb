"""The face on which a mixture of sequences lies: find sequences that span it, and project gradients onto it."""

import numpy as np

from rationalizer.ops.kernels.active_set_cpu import (
    DEPENDENT,
    best_sequence,
    grow,
    grow_square,
    improving_sequence,
    sequence_score,
)
from rationalizer.ops.kernels.bits_cpu import is_set, mixture, pack, product
from rationalizer.ops.kernels.cholesky_cpu import add_column, best_weights, build, distance_to_hull, forward_solve
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.total_variation_cpu import fused

MAX_PLATEAUS = 32  # with more plateaus, the sequences that are constant on them always span the face
PERTURBATION = 1e-7  # added to scores to break ties


@jit
def _direction(g, columns, k, factor, sides, weights):
    """Project `g` onto the directions of the affine hull of the k sequences; write it as `weights` that sum to 0."""
    for j in range(k):
        sides[0, j] = product(columns[j], g)
    first = sides[0, 0]
    for j in range(k):
        sides[0, j] -= first  # a constant does not change the result, but a large one would cost precision
    forward_solve(factor, k, sides[0])
    best_weights(factor, sides, k, 0.0, weights)


@jit
def project_onto_support(g, columns, k, h, grad_r):
    """Write J g to `h` and the gradient of the transitions to `grad_r`.

    J is the orthogonal projector onto the directions of the affine hull of the k sequences in `columns`.
    """
    factor, sides, line, weights = np.empty((k, k)), np.empty((2, k)), np.zeros(k), np.empty(k)
    build(factor, sides, columns, line, 0.0, k, weights)
    _direction(g, columns, k, factor, sides, weights)
    h[:] = 0.0
    grad_r[:] = 0.0
    for j in range(k):
        before = False
        for i in range(g.shape[0]):
            now = is_set(columns[j], i)
            if now:
                h[i] += weights[j]
                if before:
                    grad_r[i - 1] += weights[j]
            before = now


@jit
def _add_if_tied(rest, r, budget, offset, tied, size, z, y, columns, factor, sides, k, line):
    """Append the sequence `y` to the k sequences if it is on their face and outside their affine hull; return k."""
    n = z.shape[0]
    pack(y, columns[k])
    total, largest = sequence_score(rest, r, columns[k], offset, budget)
    agrees = True
    for i in range(n):
        agrees &= not (z[i] <= 0.0 and y[i] == 1) and not (z[i] >= 1.0 and y[i] == 0)
    distance = distance_to_hull(factor, columns, k, line)
    if total >= tied - 1e-13 * max(size, largest) and agrees and distance > DEPENDENT and k <= n:
        add_column(factor, sides, k, line, distance, 0.0)
        k += 1
    return k


@jit
def complete_face(s, r, least, budget, columns, k, z, level, y, back, value, structure):
    """Append sequences to the k in `columns` until they span the face of z; return (columns, k).

    All sequences of the face have the same score `level` at s − z. A random direction g that is orthogonal to all
    differences of known sequences takes one value on their affine hull and, almost surely, another on any sequence
    outside it. If a sequence is missing, the best sequence at s − z perturbed by g or by −g is therefore a new one.
    """
    n = s.shape[0]
    g, h, perturbed = np.empty(n), np.empty(n), np.empty(n)
    rest = np.empty(n)
    for i in range(n):
        rest[i] = s[i] - z[i]
    offset = sequence_score(rest, r, columns[0], 0.0, 0)[0] / max(budget, 1)
    for i in range(n):
        rest[i] -= offset
    size = sequence_score(rest, r, columns[0], offset, budget)[1]
    tied = level - offset * budget - 1e-11
    room = k + 2
    columns = grow(columns[:k], room)
    factor, sides, line, weights = np.empty((room, room)), np.empty((2, room)), np.zeros(room), np.empty(room)
    build(factor, sides, columns, line.copy(), 0.0, k, line)
    state = 1
    while k <= n:
        if k + 2 > room:
            room = 2 * k + 2
            columns, factor, sides = grow(columns, room), grow_square(factor, room, room), grow_square(sides, 2, room)
            line, weights = np.empty(room), np.empty(room)
        for i in range(n):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            g[i] = state / 0x3FFFFFFF - 1.0
        _direction(g, columns, k, factor, sides, weights)
        mixture(columns, weights, k, h)
        known = k
        for sign in (1.0, -1.0):
            for i in range(n):
                # Where z is 0 or 1, every sequence of its face has the same value.
                fixed = 10.0 if z[i] >= 1.0 else (-10.0 if z[i] <= 0.0 else 0.0)
                perturbed[i] = rest[i] + PERTURBATION * (sign * (g[i] - h[i]) + fixed)
            before = k
            known_score = sequence_score(perturbed, r, columns[0], offset, budget)[0]
            if improving_sequence(perturbed, r, structure, offset, known_score, 0.01 * PERTURBATION, y, back):
                k = _add_if_tied(rest, r, budget, offset, tied, size, z, y, columns, factor, sides, k, line)
            if k == before:
                best_sequence(perturbed, r, least, budget, offset, y, back, value, structure)
                k = _add_if_tied(rest, r, budget, offset, tied, size, z, y, columns, factor, sides, k, line)
        if k == known:
            break
    return columns, k


@jit
def has_tied_plateaus(z, r):
    """Return whether the sequences that are constant on the plateaus of z may span less than the face of PAIR + BUDGET.

    This can happen if there are few plateaus, one of them is wider than one word, and two heights are equal or add up
    to 1, or a height is 0 or 1 up to rounding. Then only some combinations of plateaus use exactly the budget.
    """
    n = z.shape[0]
    heights = np.empty(MAX_PLATEAUS)
    plateaus, wide, tied = 0, False, False
    i = 0
    while i < n:
        here = z[i]
        if not 0.0 < here < 1.0:
            i += 1
            continue
        stop = i
        while stop + 1 < n and fused(here, z[stop + 1], r[stop]):
            stop += 1
        if plateaus == MAX_PLATEAUS:
            return False
        wide |= stop > i
        tied |= min(here, 1.0 - here) < 1e-12
        for j in range(plateaus):
            tied |= abs(heights[j] - here) < 1e-12 or abs(heights[j] + here - 1.0) < 1e-12
        heights[plateaus] = here
        plateaus += 1
        i = stop + 1
    return wide and tied
