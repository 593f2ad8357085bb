"""Binary sequences as bits, 64 positions in each uint64."""

import numpy as np

from rationalizer.ops.kernels.numba_runtime import jit, reordering


@jit
def word_count(n):
    return (n + 63) // 64


@jit
def pack(y, words):
    """Write the 0/1 array `y` as bits."""
    words[:] = 0
    for i in range(y.shape[0]):
        if y[i]:
            words[i >> 6] |= np.uint64(1) << np.uint64(i & 63)


@jit
def is_set(words, i):
    return (words[i >> 6] >> np.uint64(i & 63)) & np.uint64(1) != 0


@jit
def ones(x):
    """Return the number of bits that are set in one uint64."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@jit
def overlap(a, b):
    """Return the inner product of two sequences."""
    total = np.uint64(0)
    for w in range(a.shape[0]):
        total += ones(a[w] & b[w])
    return float(total)


@jit
def normalize(p, k):
    """Divide the k weights `p` by their sum."""
    total = 0.0
    for j in range(k):
        total += p[j]
    for j in range(k):
        p[j] /= total


@jit
def mixture(columns, p, k, z):
    """Compute z = Σ p_j y_j."""
    n = z.shape[0]
    z[:] = 0.0
    for j in range(k):
        weight = p[j]
        for w in range(columns.shape[1]):
            bits = columns[j, w]
            first = 64 * w
            for b in range(min(64, n - first)):  # without branches, so that the compiler vectorizes it
                z[first + b] += weight * float((bits >> np.uint64(b)) & np.uint64(1))


@reordering
def product(words, g):
    """Return g·y."""
    n = g.shape[0]
    total = 0.0
    for w in range(words.shape[0]):
        bits = words[w]
        first = 64 * w
        for b in range(min(64, n - first)):
            total += g[first + b] * float((bits >> np.uint64(b)) & np.uint64(1))
    return total
