"""Solve the instances of a batch, and project onto the faces of their solutions."""

import numpy as np

from rationalizer.graph.kernels.face_solve_cpu import guess_face, is_settled, solve_exactly, solve_on_face
from rationalizer.graph.kernels.interior_cpu import INFEASIBLE, RELATIVE_ERROR, SOLVED, interior_point
from rationalizer.graph.kernels.linear_systems_cpu import InstanceProgram, make_system
from rationalizer.graph.kernels.warm_start_cpu import solve_warm
from rationalizer.ops.kernels.numba_runtime import jit

EXACT = 1e-15
_EARLY = 1e-5  # complementarity at which the face is usually identified
_EARLY_ATTEMPTS, _FINAL_ATTEMPTS = 3, 15


@jit
def _concatenate(entries, slacks, weights):
    out = np.empty(entries.shape[0] + slacks.shape[0] + weights.shape[0])
    out[: entries.shape[0]] = entries
    out[entries.shape[0] : entries.shape[0] + slacks.shape[0]] = slacks
    out[entries.shape[0] + slacks.shape[0] :] = weights
    return out


@jit
def solve_rows(
    first, last, todo, warm, settle, gap, tolerance, indptr, rows, coefficients, early, row_first, quadratic,
    copy_rows, copy_size, active, violation_cost, cost, upper, slack_upper, rhs, known, configurations, owner,
    weight_cost, x, weights, y, status, outcome, iterations, residuals,
):  # fmt: skip
    """Solve the instances in `todo`: by an interior point, then exactly on its face if `gap` is at most `EXACT`.

    `warm` instances continue from the exact solution over fewer configurations, with the new ones FREE; the interior
    point runs only if this fails, or if `settle` and the face is ambiguous.
    """
    n_rows, sums, entries = active.shape[1], copy_rows.shape[0], upper.shape[1]
    for b in range(first, last):
        if not todo[b]:
            continue
        shared = b if indptr.shape[0] > 1 else 0
        k = known[b]
        n = entries + n_rows + k
        costs = _concatenate(cost[b], np.zeros(n_rows), weight_cost[b, :k])
        uppers = _concatenate(upper[b], slack_upper[b], np.full(k, 2.0))
        squares = _concatenate(quadratic, np.zeros(n_rows), np.zeros(k))
        sides = np.concatenate((rhs[b], np.ones(sums)))
        exact = InstanceProgram(
            indptr[shared], rows[shared], coefficients[shared], early, active[b], violation_cost[b],
            configurations[b, :k], owner[b, :k], copy_rows, copy_size, squares, costs, uppers, sides,
        )  # fmt: skip
        if warm[b]:
            solution, face = _concatenate(x[b], np.zeros(n_rows), weights[b, :k]), status[b, :n].copy()
            multipliers = y[b].copy()
            iterations[b] = 1
            residuals[b] = solve_warm(exact, row_first[shared], tolerance[b], solution, multipliers, face)
            identified = residuals[b] <= tolerance[b]
            if identified and settle:
                system = make_system(exact, row_first[shared])
                identified = is_settled(exact, system, solution, multipliers, face)
            if identified:
                outcome[b] = SOLVED
                x[b], weights[b, :k] = solution[:entries], solution[entries + n_rows :]
                y[b], status[b, :n] = multipliers, face
                continue
        scale = 1.0
        for j in range(n):
            if uppers[j] > 0.0:
                scale = max(scale, abs(costs[j]))
        for i in range(n_rows):
            if violation_cost[b, i] < np.inf:
                scale = max(scale, violation_cost[b, i])
        scaled = InstanceProgram(
            indptr[shared], rows[shared], coefficients[shared], early, active[b], violation_cost[b] / scale,
            configurations[b, :k], owner[b, :k], copy_rows, copy_size, squares / scale, costs / scale, uppers, sides,
        )  # fmt: skip
        system = make_system(scaled, row_first[shared])
        point, room, lower_dual, upper_dual = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
        multipliers, violations = np.zeros(n_rows + sums), np.zeros((4, n_rows + sums))
        exactly = gap[b] <= EXACT
        accuracy = _EARLY if exactly else RELATIVE_ERROR * gap[b]
        outcome[b], steps = interior_point(
            scaled, system, _EARLY if exactly else gap[b], accuracy, True, point, room, multipliers, lower_dual,
            upper_dual, violations,
        )  # fmt: skip
        iterations[b] += steps
        solution, face = point.copy(), np.zeros(n, np.int8)
        y[b] = scale * multipliers
        if exactly:
            identified = False
            if outcome[b] != INFEASIBLE:
                guess_face(scaled, point, room, lower_dual, upper_dual, violations, face)
                residuals[b] = solve_exactly(exact, system, tolerance[b], _EARLY_ATTEMPTS, solution, y[b], face)
                identified = residuals[b] <= tolerance[b] and is_settled(exact, system, solution, y[b], face)
            if not identified:
                outcome[b], steps = interior_point(
                    scaled, system, gap[b], 1e-11, False, point, room, multipliers, lower_dual, upper_dual, violations
                )
                iterations[b] += steps
                solution[:] = point
                y[b] = scale * multipliers
                if outcome[b] != INFEASIBLE:
                    guess_face(scaled, point, room, lower_dual, upper_dual, violations, face)
                    residuals[b] = solve_exactly(exact, system, tolerance[b], _FINAL_ATTEMPTS, solution, y[b], face)
            if outcome[b] != INFEASIBLE:
                status[b, :n] = face
        x[b] = solution[:entries]
        weights[b, :k] = solution[entries + n_rows :]


@jit
def project_rows(
    first, last, indptr, rows, coefficients, early, row_first, quadratic, copy_rows, copy_size,
    active, known, configurations, owner, status, g, h, weight_h,
):  # fmt: skip
    """Project `g` onto the directions of the face `status`: h = argmin ½‖h‖² − g·h.

    Only coordinates with `quadratic` 1 count in ‖h‖. The others are determined by them and are the gradients of their
    own costs.
    """
    n_rows, sums, entries = active.shape[1], copy_rows.shape[0], quadratic.shape[0]
    for b in range(first, last):
        shared = b if indptr.shape[0] > 1 else 0
        k = known[b]
        n = entries + n_rows + k
        squares = _concatenate(quadratic, np.zeros(n_rows), np.zeros(k))
        costs = _concatenate(g[b], np.zeros(n_rows), np.zeros(k))
        sides = np.zeros(n_rows + sums)
        p = InstanceProgram(
            indptr[shared], rows[shared], coefficients[shared], early, active[b], np.full(n_rows, np.inf),
            configurations[b, :k], owner[b, :k], copy_rows, copy_size, squares, costs, np.ones(n), sides,
        )  # fmt: skip
        system = make_system(p, row_first[shared])
        direction, multipliers = np.zeros(n), np.zeros(n_rows + sums)
        solve_on_face(p, system, squares, costs, sides, status[b, :n], direction, multipliers)
        h[b] = direction[:entries]
        weight_h[b, :k] = direction[entries + n_rows :]


@jit
def row_profile(indptr, rows, count):
    """Return, for each row, the first row with which it shares an entry."""
    first = np.empty((indptr.shape[0], count), np.int64)
    for s in range(indptr.shape[0]):
        for i in range(count):
            first[s, i] = i
        for v in range(indptr.shape[1] - 1):
            low = count
            for a in range(indptr[s, v], indptr[s, v + 1]):
                low = min(low, rows[s, a])
            for a in range(indptr[s, v], indptr[s, v + 1]):
                i = rows[s, a]
                first[s, i] = min(first[s, i], low)
    return first
