"""Search for good selections under constraints by Lagrangian relaxation of the budget.

The exact dynamic program counts words. Without the budget, finding the best path takes one step per block. The budget
is therefore replaced by a multiplier θ per word. Near the best θ, some optimal paths have slightly too many words and
some slightly too few. Two paths that are in the same state at the same block can exchange their tails, which may give a
path within the budget. This path may not be optimal, but its error is bounded: for any θ, no path within the budget B
has a larger score than the maximum over all paths of score + θ · (words − B). A lower bound on the number of words
is not relaxed: paths with fewer words are never returned.
"""

import numpy as np

from rationalizer.ops.kernels.constraint_graph_cpu import CONTINUE, SKIP, START
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.spans_map_cpu import add_gains

OVER, UNDER, NEW = 0, 1, 2
MIN_BUDGET = 100  # below it, the dynamic program that counts words is as fast
MAX_MULTIPLIERS = 4  # multipliers tried per search
SUFFICIENT_GAIN = 0.5  # share of the largest possible gain at which the search stops
MAX_PAUSE = 63  # the most searches that are skipped after repeated failures


@jit
def multiplier_scratch(constraint_graph):
    """Allocate three paths (one over the budget, one within it, and a new one) and the tables of the search."""
    blocks, states = constraint_graph[4].shape[0] - 1, constraint_graph[4].shape[1]
    role = np.arange(3)  # the row of each path in the arrays below
    initialized = np.zeros(1, np.bool_)
    pause = np.zeros(2, np.int64)  # searches to skip now, and the length of the last pause
    kind, state = np.empty((3, blocks), np.int8), np.zeros((3, blocks + 1), np.int32)
    used, score = np.zeros((3, blocks + 1), np.int64), np.zeros((3, blocks + 1))
    return (
        role,
        initialized,
        pause,
        kind,
        state,
        used,
        score,
        np.empty((2, states)),
        np.empty((blocks, states), np.int32),
    )


@jit
def _add_up(path, heads, gain, kind, used, score):
    """Compute the number of words and the score of a path up to each block."""
    for b in range(kind.shape[1]):
        chosen = kind[path, b]
        used[path, b + 1] = used[path, b] + (0 if chosen == SKIP else heads[b + 1] - heads[b])
        score[path, b + 1] = score[path, b] + gain[b, chosen]


@jit
def _best_path(constraint_graph, theta, gain, paths):
    """Find the best path with multiplier θ per word and store it in the role NEW."""
    _, heads, first_arc, arcs, low, high, final, _ = constraint_graph
    role, _, _, kind, state, used, score, value, back = paths
    path = role[NEW]
    blocks, states = back.shape
    gains = np.zeros(3)
    value[0, 0] = 0.0
    for b in range(blocks):
        now, after = b & 1, 1 - (b & 1)
        multiplier_gain = theta * (heads[b + 1] - heads[b])
        gains[START], gains[CONTINUE] = gain[b, START] + multiplier_gain, gain[b, CONTINUE] + multiplier_gain
        a, stop = first_arc[b], first_arc[b + 1]
        while a < stop:
            goal, best, by = arcs[a, 1], -np.inf, a
            while a < stop and arcs[a, 1] == goal:
                total = value[now, np.uint32(arcs[a, 0])] + gains[np.uint32(arcs[a, 2])]
                by = a if total > best else by  # a branch would be mispredicted too often
                best = max(best, total)
                a += 1
            value[after, goal], back[b, goal] = best, by
    best, at = -np.inf, 0
    for goal in range(states):
        if final[goal] and low[blocks, goal] <= high[blocks, goal] and value[blocks & 1, goal] > best:
            best, at = value[blocks & 1, goal], goal
    for b in range(blocks - 1, -1, -1):
        state[path, b + 1] = at
        kind[path, b] = arcs[back[b, at], 2]
        at = arcs[back[b, at], 0]
    _add_up(path, heads, gain, kind, used, score)


@jit
def _replace(role, replaced):
    """Let the path NEW take over the role `replaced`."""
    role[replaced], role[NEW] = role[NEW], role[replaced]


@jit
def _best_exchange(fewest, budget, offset, paths):
    """Return the best exchange of tails of OVER and UNDER: (score, block, path before it); block 0 means UNDER.

    The score is −inf if no path has `fewest` to `budget` words.
    """
    role, _, _, _, state, used, score, _, back = paths
    over, under = role[OVER], role[UNDER]
    blocks = back.shape[0]
    best, at, first_path = -np.inf, 0, over
    if used[under, blocks] >= fewest:
        best = score[under, blocks] + offset * (used[under, blocks] - budget)
    for b in range(1, blocks):
        if state[over, b] != state[under, b]:
            continue
        for first, second in ((over, under), (under, over)):
            words = used[first, b] + used[second, blocks] - used[second, b]
            total = score[first, b] + score[second, blocks] - score[second, b] + offset * (words - budget)
            if fewest <= words <= budget and total > best:
                best, at, first_path = total, b, first
    return best, at, first_path


@jit
def _write(constraint_graph, paths, at, first_path, y):
    """Write to `y` the words of `first_path` before block `at`, then those of the other path."""
    role, _, _, kind, _, _, _, _, back = paths
    heads = constraint_graph[1]
    ends = role[UNDER] if first_path == role[OVER] else role[OVER]
    for b in range(back.shape[0]):
        y[heads[b] : heads[b + 1]] = kind[first_path if b < at else ends, b] != SKIP


@jit
def search_with_multiplier(s, r, constraint_graph, offset, level, least, y, gain, paths):
    """Search for a selection within the budget whose score exceeds `level` by more than `least`; write it to `y`.

    The gain must also be at least `SUFFICIENT_GAIN` of the largest possible one. Returns False if no selection was
    found. `offset` is as in `budgeted_viterbi`.
    """
    budget, heads, _, _, low, _, _, fewest = constraint_graph
    role, initialized, pause, kind, _, used, score, _, _ = paths
    if budget < MIN_BUDGET:
        return False
    if pause[0] > 0:
        pause[0] -= 1
        return False
    blocks = low.shape[0] - 1
    add_gains(s, r, heads, gain)
    if initialized[0]:
        for path in (role[OVER], role[UNDER]):
            _add_up(path, heads, gain, kind, used, score)
    else:
        _best_path(constraint_graph, offset, gain, paths)
        _replace(role, OVER)
        over = role[OVER]
        if used[over, blocks] <= budget:  # the budget does not bind, and the path is optimal
            _write(constraint_graph, paths, blocks, over, y)
            if used[over, blocks] < fewest:
                return False
            return score[over, blocks] + offset * (used[over, blocks] - budget) - level > least
        _best_path(constraint_graph, -1e3 * (1.0 + abs(offset) + np.max(np.abs(gain))), gain, paths)
        _replace(role, UNDER)
        initialized[0] = used[role[UNDER], blocks] <= budget
        if not initialized[0]:
            return False
    bound = np.inf
    for _ in range(MAX_MULTIPLIERS):
        over, under = role[OVER], role[UNDER]
        more = used[over, blocks] - used[under, blocks]
        theta = min((score[under, blocks] - score[over, blocks]) / more, offset)
        crossing = score[over, blocks] + theta * (used[over, blocks] - budget)
        _best_path(constraint_graph, theta, gain, paths)
        new = role[NEW]
        total = score[new, blocks] + theta * (used[new, blocks] - budget)
        bound = min(bound, total)
        _replace(role, OVER if used[new, blocks] > budget else UNDER)
        best, at, first_path = _best_exchange(fewest, budget, offset, paths)
        if best - level > least and best - level >= SUFFICIENT_GAIN * (bound - level):
            _write(constraint_graph, paths, at, first_path, y)
            pause[1] = 0
            return True
        if bound - level <= least:
            return False
        if total <= crossing + 1e-12 * abs(crossing):  # there is no better multiplier
            break
    # A search that fails will probably fail again next time, so skip the next ones.
    pause[1] = min(2 * pause[1] + 1, MAX_PAUSE)
    pause[0] = pause[1]
    return False
