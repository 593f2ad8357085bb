"""SparseMAP over sequences under rules: the active set of `active_set_cpu` with another oracle."""

import numpy as np

from rationalizer.ops.kernels.active_set_cpu import active_set
from rationalizer.ops.kernels.bits_cpu import pack, word_count
from rationalizer.ops.kernels.budget_cpu import scatter_real
from rationalizer.ops.kernels.face_cpu import complete_face
from rationalizer.ops.kernels.lagrangian_cpu import price_scratch
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.spans_map_cpu import constrained_viterbi, gather_row, scratch


@jit
def _solve(s, r, rules, z, support, max_iterations, enough, stop):
    """The solution to `z`, sequences to `support`; returns (how many, iterations, gap, converged), the first 0 where
    the rules leave nothing."""
    n = s.shape[0]
    budget = rules[0]
    y = np.zeros(n, np.uint8)
    gain, value = scratch(rules)
    back = gain, price_scratch(rules)
    start = np.zeros((1, word_count(n)), np.uint64)
    z[:] = 0.0
    if not constrained_viterbi(s, r, rules, 0.0, y, gain, value) > -np.inf:
        return 0, 0, np.inf, False
    pack(y, start[0])
    columns, _, kept, iterations, gap, converged, level = active_set(
        s, r, budget, start, np.ones(1), 1, z, y, back, value, np.empty(1, np.int64), 0, max_iterations, np.inf,
        enough, stop, rules,
    )  # fmt: skip
    if not np.all(np.isfinite(z)):
        # Beyond the range of floats; one sequence is feasible, and nothing is claimed of it.
        constrained_viterbi(s, r, rules, 0.0, y, gain, value)
        z[:] = y
        pack(y, support[0, : word_count(n)])
        return 1, iterations, np.inf, False
    if converged and enough == 0.0:
        columns, kept = complete_face(s, r, budget, columns, kept, z, level, y, back, value, rules)
    support[:kept, : word_count(n)] = columns[:kept]
    return kept, iterations, gap, converged


@jit
def spans_rows(
    first, last, stop, scores, transition, mask, budget, spans, unit, fixed, group, shortest, longest, per_group,
    max_iterations, tolerance, z, kept, support, iterations, gap, converged,
):  # fmt: skip
    """`kept` says how many sequences are in `support`; 0 where the rules leave nothing."""
    solution = np.empty(scores.shape[1])
    for row in range(first, last):
        s, r, rules = gather_row(
            row, scores, transition, mask, budget, spans, unit, fixed, group, shortest, longest, per_group
        )
        count = s.shape[0]
        # Finitely many steps would do, but not a number of them that anyone would wait for.
        most = min(max_iterations, 1000 + 20 * count)
        kept[row], iterations[row], gap[row], converged[row] = _solve(
            s, r, rules, solution[:count], support[row], most, tolerance * tolerance, stop
        )
        scatter_real(solution, mask[row], z[row])
