"""A merge sort. Numba's version of np.argsort takes longer to compile than most kernels, for each type again."""

import numpy as np

from rationalizer.ops.kernels.numba_runtime import jit


@jit
def ascending(values):
    """Return the indices that sort `values` in ascending order (a stable argsort)."""
    n = values.shape[0]
    order, merged = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for k in range(start, stop):
                if i < middle and (j == stop or values[order[i]] <= values[order[j]]):
                    merged[k] = order[i]
                    i += 1
                else:
                    merged[k] = order[j]
                    j += 1
        order, merged = merged, order
        width *= 2
    return order
