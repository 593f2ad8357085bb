"""SparseMAP over budgeted sequences by an active set: exact, finite, any sign of the transitions.

minimise ½‖Yp‖² − c·p over distributions p on sequences (the columns of Y, c their scores). The support is kept affinely
independent, so at most n + 1 sequences; the equality-constrained problem on it is solved with a Cholesky factor of
G = YᵀY + 11ᵀ that is updated, not recomputed, when a sequence enters or leaves. G holds integers, so it is exact.
Sequences are packed 64 tokens to a word.
"""

import numpy as np

from rationalizer.ops.kernels.runtime import jit
from rationalizer.ops.kernels.sequence_budget_map_cpu import budgeted_viterbi

DEPENDENT = 1e-9  # squared distance from the affine hull below which a sequence counts as inside it
EPS = 2.3e-16


@jit
def word_count(n):
    return (n + 63) // 64


@jit
def pack(y, words):
    words[:] = 0
    for i in range(y.shape[0]):
        if y[i]:
            words[i >> 6] |= np.uint64(1) << np.uint64(i & 63)


@jit
def is_set(words, i):
    return (words[i >> 6] >> np.uint64(i & 63)) & np.uint64(1) != 0


@jit
def _ones(x):
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@jit
def overlap(a, b):
    """How many tokens two sequences share."""
    total = np.uint64(0)
    for w in range(a.shape[0]):
        total += _ones(a[w] & b[w])
    return float(total)


@jit
def mixture(columns, p, k, z):
    """z = Σ p_j y_j."""
    z[:] = 0.0
    for j in range(k):
        for w in range(columns.shape[1]):
            bits = columns[j, w]
            while bits != 0:
                lowest = bits & (~bits + np.uint64(1))
                z[w * 64 + int(_ones(lowest - np.uint64(1)))] += p[j]
                bits ^= lowest


@jit
def forward_solve(factor, k, b):
    for i in range(k):
        total = b[i]
        for j in range(i):
            total -= factor[i, j] * b[j]
        b[i] = total / factor[i, i]


@jit
def backward_solve(factor, k, b):
    for i in range(k - 1, -1, -1):
        b[i] /= factor[i, i]
        for j in range(i):
            b[j] -= factor[i, j] * b[i]


@jit
def append_to_factor(factor, columns, k, line):
    """Extend the factor by column k of `columns`; returns its squared distance from the affine hull of the others.

    `line` receives L⁻¹g. The factor is not usable beyond k where the distance is (nearly) zero.
    """
    for j in range(k):
        line[j] = overlap(columns[j], columns[k]) + 1.0
    norm = overlap(columns[k], columns[k]) + 1.0
    forward_solve(factor, k, line)
    distance = norm
    for j in range(k):
        factor[k, j] = line[j]
        distance -= line[j] * line[j]
    factor[k, k] = np.sqrt(max(distance, 0.0))
    return distance


@jit
def remove_from_factor(factor, k, j):
    """Delete row and column j of a k x k factor by Givens rotations."""
    for i in range(j, k - 1):
        for c in range(i + 2):
            factor[i, c] = factor[i + 1, c]
    for c in range(j, k - 1):
        length = np.hypot(factor[c, c], factor[c, c + 1])
        cos, sin = factor[c, c] / length, factor[c, c + 1] / length
        for i in range(c, k - 1):
            a, b = factor[i, c], factor[i, c + 1]
            factor[i, c] = cos * a + sin * b
            factor[i, c + 1] = cos * b - sin * a


@jit
def _drop(columns, score, p, factor, k, j):
    remove_from_factor(factor, k, j)
    for i in range(j, k - 1):
        columns[i] = columns[i + 1]
        score[i] = score[i + 1]
        p[i] = p[i + 1]
    return k - 1


@jit
def affine_solve(factor, score, k, total, target, unit):
    """argmin ½pᵀGp − score·p s.t. Σp = total, signs ignored, to `target`; `unit` is scratch.

    With total 1 the weights that are best on the support's affine hull; with total 0 a direction within it.
    """
    base = score[0]  # a constant on all scores changes nothing; without it no digits go to what they have in common
    for j in range(k):
        target[j] = score[j] - base
        unit[j] = 1.0
    forward_solve(factor, k, target)
    backward_solve(factor, k, target)
    forward_solve(factor, k, unit)
    backward_solve(factor, k, unit)
    level = (np.sum(target[:k]) - total) / np.sum(unit[:k])
    for j in range(k):
        target[j] -= level * unit[j]


@jit
def sequence_score(s, r, words, lift, budget):
    """s·y + Σ r_i y_i y_{i+1} + lift·(Σy − budget), and the largest partial sum, which bounds the rounding."""
    total = 0.0
    largest = 0.0
    used = 0
    before = False
    for i in range(s.shape[0]):
        now = is_set(words, i)
        if now:
            used += 1
            total += s[i]
            if before:
                total += r[i - 1]
            largest = max(largest, abs(total))
        before = now
    return total + lift * (used - budget), largest


@jit
def _grow(array, size):
    grown = np.empty((size, *array.shape[1:]), array.dtype)
    grown[: array.shape[0]] = array
    return grown


@jit
def _grow_square(array, size):
    grown = np.empty((size, size), array.dtype)
    grown[: array.shape[0], : array.shape[1]] = array
    return grown


@jit
def active_set(s, r, budget, columns, p, k, z, y, back, value, max_iterations):
    """Optimise from the given sequences and weights (k >= 1 of them); `z` receives the solution.

    Returns (columns, p, k, iterations, gap, converged, λ), λ the score minus z·y that the support's sequences share.
    """
    n = s.shape[0]
    capacity = max(16, 2 * k)
    columns, p = _grow(columns[:k], capacity + 1), _grow(p[:k], capacity + 1)
    score = np.empty(capacity + 1)
    factor = np.empty((capacity + 1, capacity + 1))
    line, target, unit = np.empty(capacity + 1), np.empty(capacity + 1), np.empty(capacity + 1)
    # Scores are counted from what a good sequence earns per token: partial sums then stay near 0 (see the Viterbi).
    lift = sequence_score(s, r, columns[0], 0.0, 0)[0] / max(overlap(columns[0], columns[0]), 1.0)
    lifted, reduced = s - lift, np.empty(n)
    kept = 0
    for j in range(k):
        columns[kept] = columns[j]
        p[kept] = p[j]
        if append_to_factor(factor, columns, kept, line) > DEPENDENT:
            score[kept] = sequence_score(lifted, r, columns[kept], lift, budget)[0]
            kept += 1
    k = kept
    p[:k] /= np.sum(p[:k])

    iterations, stalled = 0, 0
    gap, level, best = np.inf, 0.0, np.inf
    converged = False
    while iterations < max_iterations:
        iterations += 1
        # Move to the optimum of the support; sequences whose weight would turn negative leave.
        while True:
            affine_solve(factor, score, k, 1.0, target, unit)
            step, blocking = 1.0, -1
            for j in range(k):
                if target[j] < 0.0 and p[j] < step * (p[j] - target[j]):
                    step, blocking = p[j] / (p[j] - target[j]), j
            for j in range(k):
                p[j] += step * (target[j] - p[j])
            if blocking < 0:
                break
            k = _drop(columns, score, p, factor, k, blocking)
        p[:k] /= np.sum(p[:k])  # 1 up to rounding, which large scores would blow up in the gap
        mixture(columns, p, k, z)
        objective = 0.0
        for i in range(n):
            reduced[i] = lifted[i] - z[i]
            objective += 0.5 * z[i] * z[i]
        for j in range(k):
            objective -= p[j] * score[j]
        budgeted_viterbi(reduced, r, budget, lift, y, back, value)
        if k == capacity:
            capacity *= 2
            columns, p, score = (
                _grow(columns, capacity + 1),
                _grow(p, capacity + 1),
                _grow(score, capacity + 1),
            )
            factor = _grow_square(factor, capacity + 1)
            line, target, unit = np.empty(capacity + 1), np.empty(capacity + 1), np.empty(capacity + 1)
        pack(y, columns[k])
        found, largest = sequence_score(reduced, r, columns[k], lift, budget)
        # The support's sequences all score λ up to rounding; their average has the least of it.
        level, rounding = 0.0, largest
        for j in range(k):
            each, largest = sequence_score(reduced, r, columns[j], lift, budget)
            level += p[j] * each
            rounding = max(rounding, largest)
        tolerance = 1e-13 + 8.0 * EPS * rounding
        gap = found - level
        stalled = 0 if objective < best - 1e-16 * abs(best) else stalled + 1
        best = min(best, objective)
        if gap <= tolerance or (stalled >= 10 and gap <= 1e3 * tolerance):
            converged = True
            break
        if stalled >= 100:
            break
        entering = sequence_score(lifted, r, columns[k], lift, budget)[0]
        distance = append_to_factor(factor, columns, k, line)
        if distance <= DEPENDENT or k > n:  # n + 1 sequences span everything, whatever the rounding says
            # Inside the affine hull: the same z can be had with a better score. Exchange it for the sequence that
            # leaves first on the way (a simplex pivot).
            backward_solve(factor, k, line)
            step, blocking = np.inf, -1
            for j in range(k):
                if line[j] > 1e-9 and p[j] < step * line[j]:
                    step, blocking = p[j] / line[j], j
            for j in range(k):
                p[j] -= step * line[j]
            sequence = columns[k].copy()
            k = _drop(columns, score, p, factor, k, blocking)
            columns[k] = sequence
            p[k] = step
            append_to_factor(factor, columns, k, line)
        else:
            p[k] = 0.0
        score[k] = entering
        k += 1
    if converged:
        # Updates drift; the last weights come from a factor computed afresh.
        for j in range(k):
            append_to_factor(factor, columns, j, line)
        affine_solve(factor, score, k, 1.0, target, unit)
        p[:k] = np.maximum(target[:k], 0.0)
        p[:k] /= np.sum(p[:k])
        mixture(columns, p, k, z)
    for i in range(n):
        z[i] = min(max(z[i], 0.0), 1.0)  # sums of weights may round out of [0, 1]
    return columns, p, k, iterations, max(gap, 0.0), converged, level + lift * budget
