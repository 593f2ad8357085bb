"""PAIR factors along a chain and one BUDGET factor in closed form: budget projection ∘ total-variation prox."""

import numpy as np

from rationalizer.ops.kernels.budget_cpu import budget_row, gather_real, scatter_real
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.total_variation_cpu import average_plateaus, fused, total_variation_row


@jit
def gather_edges(transition, mask, out):
    """Copy the transitions of neighbouring words to `out`: for neighbours a < b, the transition at a."""
    count = 0
    previous = -1
    for i in range(mask.shape[0]):
        if mask[i]:
            if previous >= 0:
                out[count] = transition[previous]
                count += 1
            previous = i


@jit
def scatter_edges(values, mask, out):
    """Undo `gather_edges`; transitions without a pair of neighbours become 0."""
    out[:] = 0.0
    count = 0
    previous = -1
    for i in range(mask.shape[0]):
        if mask[i]:
            if previous >= 0:
                out[previous] = values[count]
                count += 1
            previous = i


@jit
def pair_budget_row(s, r, least, budget, z, x, work):
    """Write the solution to `z` and the prox before the budget to `x`; return τ. `work` (5, 2n + 2) is scratch."""
    n = s.shape[0]
    for i in range(n):
        z[i] = s[i]
    for i in range(n - 1):
        z[i] += 0.5 * r[i]
        z[i + 1] += 0.5 * r[i]
        work[4, n + i] = 0.5 * r[i]
    weight = work[4, n : 2 * n]  # `total_variation_row` uses only the first n entries of that line
    total_variation_row(z, weight, x, work)
    # The plateaus are right, but their heights have lost digits if r is large, since shifts and weights cancel. Sum
    # what is left after the cancellation instead: the scores, and r once for each edge to a word that is at least as
    # high.
    start = 0
    before = -np.inf  # the plateau before this one, at its height in `x` as it was
    while start < n:
        stop, here, first = start, x[start], s[start]
        total = 0.0
        while stop + 1 < n and fused(here, x[stop + 1], r[stop]):
            total += r[stop]
            stop += 1
            total += s[stop] - first
        if start > 0:  # the products avoid branches, whose outcome would be random
            total += r[start - 1] * np.uint8(before > here)
        if stop + 1 < n:
            total += r[stop] * np.uint8(x[stop + 1] > here)
        height = first + total / (stop + 1 - start)
        for i in range(start, stop + 1):
            x[i] = height
        before = here
        start = stop + 1
    return budget_row(x, least, budget, z)


@jit
def pair_budget_backward_row(g, z, r, tight, h, grad_r):
    """Compute h = J g with J the projector onto the face of z; grad_r of an edge is h at the lower of its two words."""
    n = z.shape[0]
    free = 0
    total = 0.0
    for i in range(n):
        value, inside = g[i], (z[i] > 0.0) & (z[i] < 1.0)
        free += inside
        total += value if inside else 0.0
    average_plateaus(z, r, g, h)
    mean = total / free if tight and free > 0 else 0.0
    for i in range(n):
        centered, inside = h[i] - mean, (z[i] > 0.0) & (z[i] < 1.0)
        h[i] = centered if inside else 0.0
    for i in range(n - 1):
        grad_r[i] = h[i + np.int64(z[i] > z[i + 1])]


@jit
def pair_budget_rows(first, last, scores, transition, mask, least, budget, z, tau):
    n = scores.shape[1]
    s, r, x, solution = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    work = np.empty((5, 2 * n + 2))
    for row in range(first, last):
        count = gather_real(scores[row], mask[row], s)
        gather_edges(transition[row], mask[row], r)
        low = min(least[row], count)
        tau[row] = pair_budget_row(s[:count], r, low, budget[row], solution[:count], x[:count], work)
        scatter_real(solution, mask[row], z[row])


@jit
def pair_budget_backward_rows(first, last, grad, z, transition, mask, tight, grad_s, grad_r):
    n = z.shape[1]
    g, real_z, r, h, edges = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for row in range(first, last):
        count = gather_real(grad[row], mask[row], g)
        gather_real(z[row], mask[row], real_z)
        gather_edges(transition[row], mask[row], r)
        pair_budget_backward_row(g[:count], real_z[:count], r, tight[row], h[:count], edges)
        scatter_real(h, mask[row], grad_s[row])
        scatter_edges(edges, mask[row], grad_r[row])
