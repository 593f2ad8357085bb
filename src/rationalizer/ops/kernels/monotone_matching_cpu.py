"""SparseMAP over alignments without crossing links: the active set of `active_set_cpu` with another oracle.

A pair's links that may be aligned are the positions of a sequence; what is a sequence there is an alignment here.
"""

import numpy as np

from rationalizer.ops.kernels.active_set_cpu import active_set
from rationalizer.ops.kernels.bits_cpu import pack, word_count
from rationalizer.ops.kernels.face_cpu import complete_face
from rationalizer.ops.kernels.monotone_matching_map_cpu import (
    best_alignment,
    gather_grid,
    gather_links,
    scatter_links,
    scratch,
)
from rationalizer.ops.kernels.numba_runtime import jit


@jit
def monotone_matching_rows(
    first, last, stop, scores, row_mask, column_mask, allowed, budget, exact, max_iterations, tolerance, z, kept,
    support, iterations, gap, converged,
):  # fmt: skip
    """`kept` says how many alignments are in `support`; 0 where nothing is feasible."""
    enough = tolerance * tolerance
    for row in range(first, last):
        grid = gather_grid(row_mask[row], column_mask[row], allowed[row], budget[row], exact)
        count = grid.cell.shape[0]
        s, solution, y = np.empty(count), np.zeros(count), np.zeros(count, np.uint8)
        gather_links(scores[row], allowed[row], s)
        back, value = scratch(grid)
        found = best_alignment(s, grid, 0.0, y, back, value) > -np.inf
        kept[row], iterations[row], gap[row], converged[row] = 0, 0, np.inf, False
        if found:
            words = word_count(count)
            start, r = np.zeros((1, words), np.uint64), np.zeros(max(count - 1, 0))
            pack(y, start[0])
            # Finitely many steps would do, but not a number of them that anyone would wait for.
            most = min(max_iterations, 1000 + 20 * count)
            columns, _, k, iterations[row], gap[row], converged[row], level = active_set(
                s, r, grid.budget, start, np.ones(1), 1, solution, y, back, value, np.empty(1, np.int64), 0, most,
                np.inf, enough, stop, grid,
            )  # fmt: skip
            if not np.all(np.isfinite(solution)):
                # Beyond the range of floats; one alignment is feasible, and nothing is claimed of it.
                best_alignment(s, grid, 0.0, y, back, value)
                solution[:] = y
                pack(y, start[0])
                columns, k, gap[row], converged[row] = start, 1, np.inf, False
            elif converged[row] and enough == 0.0:
                columns, k = complete_face(s, r, grid.budget, columns, k, solution, level, y, back, value, grid)
            support[row, :k, :words] = columns[:k]
            kept[row] = k
        scatter_links(solution, allowed[row], z[row])
