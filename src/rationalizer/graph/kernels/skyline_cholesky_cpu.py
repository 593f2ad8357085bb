"""LDLᵀ of a symmetric quasi-definite matrix in skyline storage.

Row i stores the entries from its first nonzero column to the diagonal, at `values[start[i] : start[i + 1]]`. The factor
has no fill-in outside that profile, so chains cost O(n), and small dense graphs as much as a dense factorization.
"""

from rationalizer.ops.kernels.numba_runtime import jit, reordering

# A pivot smaller than this share of its diagonal is a rounding error: the row depends on earlier ones.
_DEPENDENT = 1e-13
_IGNORED = 1e100
_REGULAR = 1e-12


@reordering
def _dot(a, i, b, j, count):
    """Return Σ a[i + t] b[j + t]. Offsets, because slicing costs more than the few entries of a narrow row."""
    total = 0.0
    for t in range(count):
        total += a[i + t] * b[j + t]
    return total


@jit
def factorize(first, start, values, pivots, positive):
    """Overwrite `values` with L (its diagonal is unused) and `pivots` with D.

    Pivot i must be positive if `positive[i]`, otherwise negative. A positive row that depends on earlier ones gets an
    infinite pivot, which sets its unknown to 0; this is a solution because the systems here are consistent. A negative
    row that depends on earlier ones is regularized.
    """
    n = first.shape[0]
    for i in range(n):
        f = first[i]
        row = start[i] - f  # entry (i, j) is at row + j
        for j in range(f, i):
            low = max(f, first[j])
            if low < j:
                values[row + j] -= _dot(values, row + low, values, start[j] - first[j] + low, j - low)
        diagonal = values[row + i]
        pivot = diagonal
        for j in range(f, i):
            w = values[row + j]
            if w != 0.0:
                values[row + j] = w / pivots[j]
                pivot -= w * values[row + j]
        if positive[i]:
            pivots[i] = pivot if pivot > _DEPENDENT * diagonal else _IGNORED
        else:
            pivots[i] = min(pivot, _REGULAR * diagonal)


@jit
def solve(first, start, values, pivots, x):
    """Overwrite the right-hand side `x` with the solution."""
    n = first.shape[0]
    for i in range(n):
        f = first[i]
        x[i] -= _dot(values, start[i], x, f, i - f)
    for i in range(n):
        x[i] /= pivots[i]
    for i in range(n - 1, -1, -1):
        f = first[i]
        row = start[i] - f
        xi = x[i]
        if xi != 0.0:
            for j in range(f, i):
                x[j] -= values[row + j] * xi
