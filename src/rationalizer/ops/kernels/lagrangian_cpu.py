"""Good selections under rules without counting their words: the budget by its price.

A path that may have any number of words is found in a step a block; at the right price a word, of the best ones some
have a few words too many and some a few too few. Two paths that are in the same place at the same time may exchange
what follows, and so may end up with as many as are allowed. What is found is not known to be the best, but how far from
it at most: no path within the budget B earns more than max (what it earns + θ · (its words − B)), whatever θ.
"""

import numpy as np

from rationalizer.ops.kernels.constraint_graph_cpu import BEGIN, GO_ON, LEAVE
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.spans_map_cpu import add_gains

OVER, UNDER, FRESH = 0, 1, 2
FEW = 100  # words; up to so many are counted in no more time
TRIES = 4  # prices a search
SHARE = 0.5  # of what could be gained at most is good enough
LONGEST_PAUSE = 63  # searches left out where they led nowhere


@jit
def price_scratch(rules):
    """Paths known (over the budget, within it, and the last one found) and room for another."""
    blocks, places = rules[4].shape[0] - 1, rules[4].shape[1]
    role = np.arange(3)  # which line below holds which path
    known = np.zeros(1, np.bool_)
    pause = np.zeros(2, np.int64)  # how many searches to leave out now, and how many it were last
    kind, place = np.empty((3, blocks), np.int8), np.zeros((3, blocks + 1), np.int32)
    used, earned = np.zeros((3, blocks + 1), np.int64), np.zeros((3, blocks + 1))
    return role, known, pause, kind, place, used, earned, np.empty((2, places)), np.empty((blocks, places), np.int32)


@jit
def _add_up(path, heads, gain, kind, used, earned):
    for b in range(kind.shape[1]):
        chosen = kind[path, b]
        used[path, b + 1] = used[path, b] + (0 if chosen == LEAVE else heads[b + 1] - heads[b])
        earned[path, b + 1] = earned[path, b] + gain[b, chosen]


@jit
def _best_path(rules, theta, gain, paths):
    """The best path at θ a word, as FRESH."""
    _, heads, first_arc, arcs, low, high, final = rules
    role, _, _, kind, place, used, earned, value, back = paths
    path = role[FRESH]
    blocks, places = back.shape
    price = np.zeros(3)
    value[0, 0] = 0.0
    for b in range(blocks):
        now, after = b & 1, 1 - (b & 1)
        taken = theta * (heads[b + 1] - heads[b])
        price[BEGIN], price[GO_ON] = gain[b, BEGIN] + taken, gain[b, GO_ON] + taken
        a, stop = first_arc[b], first_arc[b + 1]
        while a < stop:
            goal, best, by = arcs[a, 1], -np.inf, a
            while a < stop and arcs[a, 1] == goal:
                worth = value[now, np.uint32(arcs[a, 0])] + price[np.uint32(arcs[a, 2])]
                by = a if worth > best else by  # free of branches, which nothing could foresee
                best = max(best, worth)
                a += 1
            value[after, goal], back[b, goal] = best, by
    best, at = -np.inf, 0
    for goal in range(places):
        if final[goal] and low[blocks, goal] <= high[blocks, goal] and value[blocks & 1, goal] > best:
            best, at = value[blocks & 1, goal], goal
    for b in range(blocks - 1, -1, -1):
        place[path, b + 1] = at
        kind[path, b] = arcs[back[b, at], 2]
        at = arcs[back[b, at], 0]
    _add_up(path, heads, gain, kind, used, earned)


@jit
def _keep(role, what):
    """The fresh path takes the part of `what`."""
    role[what], role[FRESH] = role[FRESH], role[what]


@jit
def _best_exchange(budget, lift, paths):
    """Where OVER and UNDER should exchange what follows, (its worth, block, who begins); block 0 is UNDER as it is."""
    role, _, _, _, place, used, earned, _, back = paths
    over, under = role[OVER], role[UNDER]
    blocks = back.shape[0]
    best, at, begins = earned[under, blocks] + lift * (used[under, blocks] - budget), 0, over
    for b in range(1, blocks):
        if place[over, b] != place[under, b]:
            continue
        for first, second in ((over, under), (under, over)):
            words = used[first, b] + used[second, blocks] - used[second, b]
            worth = earned[first, b] + earned[second, blocks] - earned[second, b] + lift * (words - budget)
            if words <= budget and worth > best:
                best, at, begins = worth, b, first
    return best, at, begins


@jit
def _write(rules, paths, at, begins, y):
    role, _, _, kind, _, _, _, _, back = paths
    heads = rules[1]
    ends = role[UNDER] if begins == role[OVER] else role[OVER]
    for b in range(back.shape[0]):
        y[heads[b] : heads[b + 1]] = kind[begins if b < at else ends, b] != LEAVE


@jit
def search_by_price(s, r, rules, lift, level, least, y, gain, paths):
    """A selection within the budget that earns at least `least` more than `level`, and half as much more as any could,
    to `y`; False where none was found. `lift` is as in `budgeted_viterbi`."""
    budget, heads, _, _, low, _, _ = rules
    role, known, pause, kind, _, used, earned, _, _ = paths
    if budget < FEW:
        return False
    if pause[0] > 0:
        pause[0] -= 1
        return False
    blocks = low.shape[0] - 1
    add_gains(s, r, heads, gain)
    if known[0]:
        for path in (role[OVER], role[UNDER]):
            _add_up(path, heads, gain, kind, used, earned)
    else:
        _best_path(rules, lift, gain, paths)
        _keep(role, OVER)
        over = role[OVER]
        if used[over, blocks] <= budget:  # which does not bind, and the path is the best of all
            _write(rules, paths, blocks, over, y)
            return earned[over, blocks] + lift * (used[over, blocks] - budget) - level > least
        _best_path(rules, -1e3 * (1.0 + abs(lift) + np.max(np.abs(gain))), gain, paths)
        _keep(role, UNDER)
        known[0] = used[role[UNDER], blocks] <= budget
        if not known[0]:
            return False
    bound = np.inf
    for _ in range(TRIES):
        over, under = role[OVER], role[UNDER]
        more = used[over, blocks] - used[under, blocks]
        theta = min((earned[under, blocks] - earned[over, blocks]) / more, lift)
        crossing = earned[over, blocks] + theta * (used[over, blocks] - budget)
        _best_path(rules, theta, gain, paths)
        fresh = role[FRESH]
        worth = earned[fresh, blocks] + theta * (used[fresh, blocks] - budget)
        bound = min(bound, worth)
        _keep(role, OVER if used[fresh, blocks] > budget else UNDER)
        best, at, begins = _best_exchange(budget, lift, paths)
        if best - level > least and best - level >= SHARE * (bound - level):
            _write(rules, paths, at, begins, y)
            pause[1] = 0
            return True
        if bound - level <= least:
            return False
        if worth <= crossing + 1e-12 * abs(crossing):  # there is no better price
            break
    # Where counting matters, prices are of no use for long.
    pause[1] = min(2 * pause[1] + 1, LONGEST_PAUSE)
    pause[0] = pause[1]
    return False
