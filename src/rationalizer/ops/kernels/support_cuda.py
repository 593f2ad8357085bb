"""The support of an active set in Triton: sequences, and the inverse of their Gram matrix.

G = YᵀY + 11ᵀ, Y the sequences as columns, is kept as its inverse H, bordered or deflated by a rank-one update when a
sequence enters or leaves: every solve is then a product, which all lanes share. What updates lose, a step of iterative
refinement with the exact Y restores. Sequences are lines of bytes over all tokens of a row (`width` apart); `tokens`
lists the m tokens that count.
"""

import triton
import triton.language as tl

TILE = 16  # sequences by tokens, or by sequences, in one vector step
CLOSE = tl.constexpr(0.01)  # squared distance below which errors of H would be multiplied
DEPENDENT = tl.constexpr(1e-9)  # squared distance from the affine hull below which a sequence counts as inside it


@triton.jit(noinline=True)
def combine(columns, width, tokens, m, p, k, out, TILE: tl.constexpr):
    """out = Σ_j p_j y_j on the listed tokens."""
    for at in range(0, m, TILE):
        i = at + tl.arange(0, TILE)
        token = tl.load(tokens + i, mask=i < m, other=0)
        total = tl.zeros([TILE], tl.float64)
        for start in range(0, k, TILE):
            j = start + tl.arange(0, TILE)
            weight = tl.load(p + j, mask=j < k, other=0.0)
            known = (j[:, None] < k) & (i[None, :] < m)
            y = tl.load(columns + j[:, None] * width + token[None, :], mask=known, other=0)
            total += tl.sum(weight[:, None] * y.to(tl.float64), 0)
        tl.store(out + i, total, mask=i < m)
    tl.debug_barrier()


@triton.jit(noinline=True)
def project(columns, width, tokens, m, w, k, plus, out, TILE: tl.constexpr):
    """out_j = w·y_j + plus."""
    for start in range(0, k, TILE):
        j = start + tl.arange(0, TILE)
        total = tl.zeros([TILE], tl.float64)
        for at in range(0, m, TILE):
            i = at + tl.arange(0, TILE)
            token = tl.load(tokens + i, mask=i < m, other=0)
            weight = tl.load(w + i, mask=i < m, other=0.0)
            known = (j[:, None] < k) & (i[None, :] < m)
            y = tl.load(columns + j[:, None] * width + token[None, :], mask=known, other=0)
            total += tl.sum(weight[None, :] * y.to(tl.float64), 1)
        tl.store(out + j, total + plus, mask=j < k)
    tl.debug_barrier()


@triton.jit
def dot(a, b, k, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float64)
    for start in range(0, k, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(a + i, mask=i < k, other=0.0) * tl.load(b + i, mask=i < k, other=0.0)
    return tl.sum(total, 0)


@triton.jit
def total_of(a, k, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float64)
    for start in range(0, k, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(a + i, mask=i < k, other=0.0)
    return tl.sum(total, 0)


@triton.jit(noinline=True)
def _multiply(inverse, stride, k, v, out, add: tl.constexpr, TILE: tl.constexpr):
    """out = H v, or out += H v where `add`."""
    for start in range(0, k, TILE):
        a = start + tl.arange(0, TILE)
        total = tl.load(out + a, mask=(a < k) & add, other=0.0)
        for begin in range(0, k, TILE):
            b = begin + tl.arange(0, TILE)
            known = (a[:, None] < k) & (b[None, :] < k)
            tile = tl.load(inverse + a[:, None] * stride + b[None, :], mask=known, other=0.0)
            total += tl.sum(tile * tl.load(v + b, mask=b < k, other=0.0)[None, :], 1)
        tl.store(out + a, total, mask=a < k)
    tl.debug_barrier()


@triton.jit(noinline=True)
def _rank_one(inverse, stride, k, u, factor, TILE: tl.constexpr):
    """H += factor · u uᵀ."""
    for start in range(0, k, TILE):
        a = start + tl.arange(0, TILE)
        left = factor * tl.load(u + a, mask=a < k, other=0.0)
        for begin in range(0, k, TILE):
            b = begin + tl.arange(0, TILE)
            known = (a[:, None] < k) & (b[None, :] < k)
            place = inverse + a[:, None] * stride + b[None, :]
            right = tl.load(u + b, mask=b < k, other=0.0)
            tl.store(place, tl.load(place, mask=known, other=0.0) + left[:, None] * right[None, :], mask=known)
    tl.debug_barrier()


@triton.jit(noinline=True)
def approach(columns, width, tokens, m, inverse, stride, k, u, overlaps, w, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """The affine combination u of the first k sequences that comes nearest to sequence k; returns the squared distance.

    Summed as squares, so it is never negative and errors of H count only in second order.
    """
    for start in range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        token = tl.load(tokens + i, mask=i < m, other=0)
        tl.store(w + i, tl.load(columns + k * width + token, mask=i < m, other=0).to(tl.float64), mask=i < m)
    tl.debug_barrier()
    project(columns, width, tokens, m, w, k, 1.0, overlaps, TILE)
    _multiply(inverse, stride, k, overlaps, u, False, TILE)
    rest = 1.0 - _miss(columns, width, tokens, m, u, k, w, BLOCK, TILE)
    distance = dot(w, w, m, BLOCK) + rest * rest
    if distance < CLOSE:
        # The residual of G u = overlaps, from the sequences themselves, for one step of refinement.
        project(columns, width, tokens, m, w, k, rest, overlaps, TILE)
        _multiply(inverse, stride, k, overlaps, u, True, TILE)
        rest = 1.0 - _miss(columns, width, tokens, m, u, k, w, BLOCK, TILE)
        distance = dot(w, w, m, BLOCK) + rest * rest
    return distance


@triton.jit
def _miss(columns, width, tokens, m, u, k, w, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """w = sequence k − Σ u_j y_j; returns Σu."""
    combine(columns, width, tokens, m, u, k, w, TILE)
    for start in range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        token = tl.load(tokens + i, mask=i < m, other=0)
        y = tl.load(columns + k * width + token, mask=i < m, other=0).to(tl.float64)
        tl.store(w + i, y - tl.load(w + i, mask=i < m, other=0.0), mask=i < m)
    tl.debug_barrier()
    return total_of(u, k, BLOCK)


@triton.jit(noinline=True)
def enter(inverse, stride, k, u, distance, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """Border H by sequence k, which `approach` has looked at."""
    _rank_one(inverse, stride, k, u, 1.0 / distance, TILE)
    for start in range(0, k, BLOCK):
        j = start + tl.arange(0, BLOCK)
        value = -tl.load(u + j, mask=j < k, other=0.0) / distance
        tl.store(inverse + k * stride + j, value, mask=j < k)
        tl.store(inverse + j * stride + k, value, mask=j < k)
    tl.store(inverse + k * stride + k, 1.0 / distance)
    tl.debug_barrier()


@triton.jit(noinline=True)
def leave(columns, width, inverse, stride, k, j, p, score, rough, u, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """Take sequence j out of the support of k; the last one takes its place."""
    for start in range(0, k, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(u + i, tl.load(inverse + j * stride + i, mask=i < k, other=0.0), mask=i < k)
    tl.debug_barrier()
    _rank_one(inverse, stride, k, u, -1.0 / tl.load(u + j), TILE)
    last = k - 1
    if j < last:
        for start in range(0, last, BLOCK):
            i = start + tl.arange(0, BLOCK)
            other = (i < last) & (i != j)
            value = tl.load(inverse + last * stride + i, mask=other, other=0.0)
            tl.store(inverse + j * stride + i, value, mask=other)
            tl.store(inverse + i * stride + j, value, mask=other)
        tl.store(inverse + j * stride + j, tl.load(inverse + last * stride + last))
        tl.store(p + j, tl.load(p + last))
        tl.store(score + j, tl.load(score + last))
        tl.store(rough + j, tl.load(rough + last))
        for start in range(0, width, BLOCK):
            i = start + tl.arange(0, BLOCK)
            tl.store(columns + j * width + i, tl.load(columns + last * width + i, mask=i < width), mask=i < width)
    tl.debug_barrier()


@triton.jit(noinline=True)
def affine_solve(
    columns,
    width,
    tokens,
    m,
    inverse,
    stride,
    score,
    k,
    total,
    refinements,
    target,
    unit,
    residual,
    w,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    """argmin ½pᵀGp − score·p s.t. Σp = total, signs ignored, to `target`; the other pointers are scratch."""
    base = tl.load(score)  # a constant on all scores changes nothing; without it no digits go to what they share
    for start in range(0, k, BLOCK):
        j = start + tl.arange(0, BLOCK)
        tl.store(residual + j, tl.zeros([BLOCK], tl.float64) + 1.0, mask=j < k)
        tl.store(target + j, tl.zeros([BLOCK], tl.float64), mask=j < k)
    tl.debug_barrier()
    _multiply(inverse, stride, k, residual, unit, False, TILE)
    units = total_of(unit, k, BLOCK)
    level = 0.0 * base
    for repeat in range(refinements + 1):
        if repeat > 0:
            combine(columns, width, tokens, m, target, k, w, TILE)
            project(columns, width, tokens, m, w, k, 0.0, residual, TILE)
        have = total_of(target, k, BLOCK)
        for start in range(0, k, BLOCK):
            j = start + tl.arange(0, BLOCK)
            known = j < k
            earned = tl.where(repeat > 0, tl.load(residual + j, mask=known, other=0.0) + have, 0.0)
            wanted = tl.load(score + j, mask=known, other=0.0) - base - level
            tl.store(residual + j, wanted - earned, mask=known)
        tl.debug_barrier()
        _multiply(inverse, stride, k, residual, target, True, TILE)
        change = (total_of(target, k, BLOCK) - total) / units
        for start in range(0, k, BLOCK):
            j = start + tl.arange(0, BLOCK)
            moved = tl.load(target + j, mask=j < k, other=0.0) - change * tl.load(unit + j, mask=j < k, other=0.0)
            tl.store(target + j, moved, mask=j < k)
        tl.debug_barrier()
        level += change
