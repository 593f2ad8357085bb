"""The face that a mixture of sequences lies on: the projection onto its directions, and the sequences it needs."""

import numpy as np

from rationalizer.ops.kernels.active_set_cpu import (
    DEPENDENT,
    best_sequence,
    good_sequence,
    grow,
    grow_square,
    sequence_score,
)
from rationalizer.ops.kernels.bits_cpu import is_set, mixture, pack, product
from rationalizer.ops.kernels.cholesky_cpu import approach, best_weights, build, enter, forward_solve
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.total_variation_cpu import fused

FEW_BLOCKS = 32  # with more of them sizes that only add up in some ways are no obstacle
NUDGE = 1e-7  # how far scores are moved to decide ties


@jit
def _direction(g, columns, k, factor, sides, weights):
    """The weights, of sum 0, with which the k sequences add up to the projection of `g` onto their affine hull."""
    for j in range(k):
        sides[0, j] = product(columns[j], g)
    sides[0, :k] -= sides[0, 0]  # a constant changes nothing; without it no digits go to what all have in common
    forward_solve(factor, k, sides[0])
    best_weights(factor, sides, k, 0.0, weights)


@jit
def project_onto_support(g, columns, k, h, grad_r):
    """h = J g and its counterpart for the transitions, J the projector onto the affine hull of k sequences."""
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
def _enter_if_tied(rest, r, budget, lift, tied, size, z, y, columns, factor, sides, k, line):
    """Sequence `y` becomes one of the k if it is on their face, and not in their affine hull; returns how many then."""
    n = z.shape[0]
    pack(y, columns[k])
    found, largest = sequence_score(rest, r, columns[k], lift, budget)
    agrees = True
    for i in range(n):
        agrees &= not (z[i] <= 0.0 and y[i] == 1) and not (z[i] >= 1.0 and y[i] == 0)
    distance = approach(factor, columns, k, line)
    if found >= tied - 1e-13 * max(size, largest) and agrees and distance > DEPENDENT and k <= n:
        enter(factor, sides, k, line, distance, 0.0)
        k += 1
    return k


@jit
def complete_face(s, r, budget, columns, k, z, level, y, back, value, rules):
    """Add sequences that score `level` at s − z, as those in `columns` do, until they span all such; returns (columns,
    how many).

    A direction g that is orthogonal to all differences of the known sequences, and random otherwise, tells any sequence
    outside their affine hull from those inside: the best ones at s − z nudged by ±g are outside if any tied one is.
    """
    n = s.shape[0]
    g, h, nudged = np.empty(n), np.empty(n), np.empty(n)
    rest = s - z
    lift = sequence_score(rest, r, columns[0], 0.0, 0)[0] / max(budget, 1)
    rest -= lift
    size = sequence_score(rest, r, columns[0], lift, budget)[1]
    tied = level - lift * budget - 1e-11
    whole = np.empty(0, np.int64)
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
                # A token at 0 or 1 in z is so in every sequence of the smallest face.
                fixed = 10.0 if z[i] >= 1.0 else (-10.0 if z[i] <= 0.0 else 0.0)
                nudged[i] = rest[i] + NUDGE * (sign * (g[i] - h[i]) + fixed)
            before = k
            known_ones = sequence_score(nudged, r, columns[0], lift, budget)[0]
            if good_sequence(nudged, r, rules, lift, known_ones, 0.01 * NUDGE, y, back):
                k = _enter_if_tied(rest, r, budget, lift, tied, size, z, y, columns, factor, sides, k, line)
            if k == before:
                best_sequence(nudged, r, budget, lift, y, back, value, whole, 0, rules)
                k = _enter_if_tied(rest, r, budget, lift, tied, size, z, y, columns, factor, sides, k, line)
        if k == known:
            break
    return columns, k


@jit
def tied_blocks(z, r):
    """Whether there are few plateaus, more than one token wide some of them, and heights that are equal, or add up to
    1, or are 0 or 1 but for rounding: then it may be that the sequences on them reach the budget in some ways only, and
    span less than PAIR + BUDGET's face."""
    n = z.shape[0]
    heights = np.empty(FEW_BLOCKS)
    blocks, wide, tied = 0, False, False
    i = 0
    while i < n:
        stop = i
        while stop + 1 < n and fused(z, r, stop):
            stop += 1
        if 0.0 < z[i] < 1.0:
            if blocks == FEW_BLOCKS:
                return False
            wide |= stop > i
            tied |= min(z[i], 1.0 - z[i]) < 1e-12
            for j in range(blocks):
                tied |= abs(heights[j] - z[i]) < 1e-12 or abs(heights[j] + z[i] - 1.0) < 1e-12
            heights[blocks] = z[i]
            blocks += 1
        i = stop + 1
    return wide and tied
