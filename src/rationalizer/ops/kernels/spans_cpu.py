"""SparseMAP over constrained selections: the active-set method of `active_set_cpu` with a constrained MAP problem."""

import numpy as np

from rationalizer.ops.kernels.active_set_cpu import active_set, best_sequence
from rationalizer.ops.kernels.bits_cpu import pack, word_count
from rationalizer.ops.kernels.budget_cpu import is_finite, scatter_real
from rationalizer.ops.kernels.face_projection_cpu import complete_face
from rationalizer.ops.kernels.lagrangian_cpu import multiplier_scratch
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.spans_map_cpu import gather_row, viterbi_scratch


@jit
def solve_from_map(s, r, budget, structure, z, support, y, back, value, max_iterations, squared_tolerance, stop):
    """Run the active-set method from the MAP solution; write the solution to `z` and the sequences to `support`.

    `structure` contains the lower bound on the number of words, if any.

    Returns (support size, iterations, gap, converged); the support is empty if the problem is infeasible.
    """
    n = s.shape[0]
    start = np.zeros((1, word_count(n)), np.uint64)
    z[:] = 0.0
    if not best_sequence(s, r, 0, budget, 0.0, y, back, value, structure) > -np.inf:
        return 0, 0, np.inf, False
    pack(y, start[0])
    # The method is finite, but its worst case is too long to wait for.
    max_steps = min(max_iterations, 1000 + 20 * n)
    columns, _, size, iterations, gap, converged, level = active_set(
        s, r, 0, budget, start, np.ones(1), 1, z, y, back, value, max_steps, np.inf, squared_tolerance, stop, structure
    )
    if not is_finite(z):
        # Overflow: return one feasible sequence, as not converged.
        best_sequence(s, r, 0, budget, 0.0, y, back, value, structure)
        z[:] = y
        pack(y, support[0, : word_count(n)])
        return 1, iterations, np.inf, False
    if converged and squared_tolerance == 0.0:
        columns, size = complete_face(s, r, 0, budget, columns, size, z, level, y, back, value, structure)
    support[:size, : word_count(n)] = columns[:size]
    return size, iterations, gap, converged


@jit
def spans_rows(
    first, last, stop, scores, transition, mask, least, budget, spans, unit, fixed, group, shortest, longest, per_group,
    max_iterations, tolerance, z, support_size, support, iterations, gap, converged,
):  # fmt: skip
    """Solve rows `first` to `last`. `support_size` is the number of sequences in `support`, 0 if infeasible."""
    solution = np.empty(scores.shape[1])
    for row in range(first, last):
        s, r, graph = gather_row(
            row, scores, transition, mask, least, budget, spans, unit, fixed, group, shortest, longest, per_group
        )
        count = s.shape[0]
        gain, value = viterbi_scratch(graph)
        support_size[row], iterations[row], gap[row], converged[row] = solve_from_map(
            s, r, graph[0], graph, solution[:count], support[row], np.zeros(count, np.uint8),
            (gain, multiplier_scratch(graph)), value, max_iterations, tolerance * tolerance, stop,
        )  # fmt: skip
        scatter_real(solution, mask[row], z[row])
