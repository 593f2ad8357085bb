"""SparseMAP over alignments without crossing pairs: the active-set method of `active_set_cpu` with another MAP problem.

The allowed pairs of a matrix are the positions of a sequence, and an alignment is a sequence of 0s and 1s on them.
"""

import numpy as np

from rationalizer.ops.kernels.monotone_matching_map_cpu import (
    alignment_scratch,
    gather_grid,
    gather_pairs,
    scatter_pairs,
)
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.spans_cpu import solve_from_map


@jit
def monotone_matching_rows(
    first, last, stop, scores, row_mask, column_mask, allowed, budget, exact, max_iterations, tolerance, z,
    support_size, support, iterations, gap, converged,
):  # fmt: skip
    """Solve matrices `first` to `last`. `support_size` is the number of alignments in `support`, 0 if infeasible."""
    for row in range(first, last):
        grid = gather_grid(row_mask[row], column_mask[row], allowed[row], budget[row], exact)
        count = grid.cell.shape[0]
        s, r, solution = np.empty(count), np.zeros(max(count - 1, 0)), np.empty(count)
        gather_pairs(scores[row], allowed[row], s)
        back, value = alignment_scratch(grid)
        support_size[row], iterations[row], gap[row], converged[row] = solve_from_map(
            s, r, grid.budget, grid, solution, support[row], np.zeros(count, np.uint8), back, value, max_iterations,
            tolerance * tolerance, stop,
        )  # fmt: skip
        scatter_pairs(solution, allowed[row], z[row])
