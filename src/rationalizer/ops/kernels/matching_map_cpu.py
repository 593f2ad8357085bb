"""The best matching of every size, by successive shortest augmenting paths."""

import numpy as np

from rationalizer.ops.kernels.numba_runtime import jit


@jit
def pair_sizes(row_mask, column_mask):
    """(long, short, transposed): the numbers of words on the longer and the shorter side, and whether the rows are the
    shorter side.

    The kernels work on (long, short) matrices. Only unmasked words are counted, so a masked matrix takes the same path
    as the truncated one.
    """
    rows = 0
    for real in row_mask:
        rows += real
    columns = 0
    for real in column_mask:
        columns += real
    return max(rows, columns), min(rows, columns), rows < columns


@jit
def gather_pair(values, row_mask, column_mask, transposed, out):
    """Copy the unmasked entries of one matrix to `out`, with the longer side first."""
    a = 0
    for i in range(row_mask.shape[0]):
        if not row_mask[i]:
            continue
        b = 0
        for j in range(column_mask.shape[0]):
            if column_mask[j]:
                if transposed:
                    out[b, a] = values[i, j]
                else:
                    out[a, b] = values[i, j]
                b += 1
        a += 1


@jit
def scatter_pair(values, row_mask, column_mask, transposed, out):
    """Undo `gather_pair`; masked entries become 0."""
    a = 0
    for i in range(row_mask.shape[0]):
        b = 0
        for j in range(column_mask.shape[0]):
            out[i, j] = 0.0
            if row_mask[i] and column_mask[j]:
                out[i, j] = values[b, a] if transposed else values[a, b]
                b += 1
        a += row_mask[i]


@jit
def best_free(scores, mate, j):
    """Return the unmatched long node with the highest score for short node `j`; -1 if there is none."""
    best = -1
    for i in range(scores.shape[0]):
        if mate[i] < 0 and (best < 0 or scores[i, j] > scores[best, j]):
            best = i
    return best


@jit
def best_matching(scores, least, limit, u, v, mate, partner):
    """Find the best matching of `least` to `limit` pairs. A score of -inf forbids a pair.

    `scores` is (long, short). Writes the matching (`mate` of each long node, `partner` of each short one, -1
    for none) and potentials with u_i + v_j ≥ scores_ij, equality on pairs, v ≥ 0, v = 0 on unmatched short
    nodes. Returns the level: u ≥ level everywhere, u = level on unmatched long nodes. The level is also the
    gain of the last path, and 0 if the search ended because no path has a gain, so with `least` = 0 (u − level, v,
    level) is optimal for the dual of the linear program with the constraint "at most `limit` pairs", and with `least` =
    `limit` for that with "exactly `limit` pairs". The level is NaN if there is no matching of `least` pairs.
    """
    long, short = scores.shape
    distance = np.empty(short)
    before = np.empty(short, np.int64)  # the long node from which the path enters a short one
    source = np.empty(short, np.int64)  # the best unmatched long node of a short one
    done = np.empty(short, np.bool_)
    mate[:] = -1
    partner[:] = -1
    v[:] = 0.0
    level = -np.inf
    for j in range(short):
        source[j] = best_free(scores, mate, j)
        level = max(level, scores[source[j], j])
    if level == -np.inf and limit > 0:
        u[:] = 0.0
        return np.nan if least > 0 else 0.0
    for size in range(limit):
        forced = size < least
        # Dijkstra over the short nodes; every unmatched long node is a start with potential `level`.
        for j in range(short):
            done[j] = False
            before[j] = source[j]
            distance[j] = level + v[j] - scores[source[j], j] if source[j] >= 0 else np.inf
        end = -1
        length = np.inf
        while True:
            nearest = -1
            for j in range(short):
                if not done[j] and (nearest < 0 or distance[j] < distance[nearest]):
                    nearest = j
            length = distance[nearest]
            if partner[nearest] < 0:
                end = nearest
                break
            if not forced and length >= level:
                break
            done[nearest] = True
            i = partner[nearest]
            base = length + u[i]
            for j in range(short):
                if not done[j]:
                    through = base + v[j] - scores[i, j]
                    if through < distance[j]:
                        distance[j] = through
                        before[j] = i
        if forced and length == np.inf:
            return np.nan
        no_gain = not forced and length >= level
        if no_gain:
            length = level
        for j in range(short):
            if done[j]:
                v[j] += length - distance[j]
                u[partner[j]] -= length - distance[j]
        level = 0.0 if no_gain else level - length
        if no_gain:
            break
        while True:
            i = before[end]
            previous = mate[i]
            mate[i] = end
            partner[end] = i
            if previous < 0:
                u[i] = level
                for j in range(short):
                    if source[j] == i:
                        source[j] = best_free(scores, mate, j)
                break
            end = previous
    for i in range(long):
        if mate[i] < 0:
            u[i] = level
    return level


@jit
def matching_map_rows(
    first, last, scores, row_mask, column_mask, least, budget, rows_exact, columns_exact, total_exact, z
):
    """Infeasible matrices become NaN."""
    larger = max(scores.shape[1], scores.shape[2])
    smaller = min(scores.shape[1], scores.shape[2])
    real = np.empty(larger * smaller)
    u = np.empty(larger)
    v = np.empty(larger)
    mate = np.empty(larger, np.int64)
    partner = np.empty(larger, np.int64)
    for row in range(first, last):
        long, short, transposed = pair_sizes(row_mask[row], column_mask[row])
        pair = real[: long * short].reshape(long, short)
        gather_pair(scores[row], row_mask[row], column_mask[row], transposed, pair)
        level = 0.0
        if short > 0:
            limit = min(budget[row], short)
            level = best_matching(
                pair,
                limit if columns_exact or rows_exact or total_exact else min(least[row], short),
                limit,
                u[:long],
                v[:short],
                mate[:long],
                partner[:short],
            )
        for i in range(long):
            for j in range(short):
                pair[i, j] = 1.0 if mate[i] == j else 0.0
        if np.isnan(level):
            pair[:] = np.nan
        scatter_pair(pair, row_mask[row], column_mask[row], transposed, z[row])
