"""The certificate of `packing_cpu` in Triton: levels of the histogram in parallel, tokens one after the other."""

import triton
import triton.language as tl

TILE = 16  # singles by singles in one vector step
TINY = tl.constexpr(1e-12)  # measures below it are rounding


@triton.jit
def _carry(amount, inside, outside, other, low, limit, BLOCK: tl.constexpr):
    """The current set hands on its lowest `amount`, one level up, to the next (`other`); the rest becomes outside.

    `inside` is left empty. Returns how much found no room.
    """
    for start in range(0, limit + 1 - low, BLOCK):
        level = low + start + tl.arange(0, BLOCK)
        held = level <= limit
        have = tl.load(inside + level, mask=held, other=0.0)
        room = tl.where(level < limit, have, 0.0)
        part = tl.minimum(tl.maximum(amount - (tl.cumsum(room, 0) - room), 0.0), room)
        tl.store(other + level + 1, part, mask=level < limit)
        tl.store(outside + level, tl.load(outside + level, mask=held, other=0.0) + (have - part), mask=held)
        tl.store(inside + level, tl.zeros([BLOCK], tl.float64), mask=held)
        amount -= tl.sum(part, 0)
    tl.debug_barrier()
    return amount


@triton.jit
def _cover(amount, outside, inside, low, limit, BLOCK: tl.constexpr):
    """The current set also takes the lowest `amount` of what is outside, one level up. Returns what found no room."""
    for start in range(0, limit - low, BLOCK):
        level = low + start + tl.arange(0, BLOCK)
        held = level < limit
        have = tl.load(outside + level, mask=held, other=0.0)
        part = tl.minimum(tl.maximum(amount - (tl.cumsum(have, 0) - have), 0.0), have)
        tl.store(outside + level, have - part, mask=held)
        tl.store(inside + level + 1, tl.load(inside + level + 1, mask=held, other=0.0) + part, mask=held)
        amount -= tl.sum(part, 0)
    tl.debug_barrier()
    return amount


@triton.jit
def _lowest(outside, low, capacity):
    """The lowest level that is not empty; crumbs below it are moved up."""
    mass = tl.load(outside + low)
    while (low < capacity) & (mass <= TINY):
        mass += tl.load(outside + low + 1)
        tl.store(outside + low, 0.0 * mass)
        tl.store(outside + low + 1, mass)
        tl.debug_barrier()
        low += 1
    return low


@triton.jit
def _sort_down(values, count, ordered, TILE: tl.constexpr):
    """Sort by counting, for each value, those that go before it."""
    for start in range(0, count, TILE):
        i = start + tl.arange(0, TILE)
        mine = tl.load(values + i, mask=i < count, other=0.0)
        rank = tl.zeros([TILE], tl.int32)
        for begin in range(0, count, TILE):
            j = begin + tl.arange(0, TILE)
            theirs = tl.load(values + j, mask=j < count, other=-1.0)
            first = (theirs[None, :] > mine[:, None]) | ((theirs[None, :] == mine[:, None]) & (j[None, :] < i[:, None]))
            rank += tl.sum((first & (j[None, :] < count)).to(tl.int32), 1)
        tl.store(ordered + rank, mine, mask=i < count)
    tl.debug_barrier()


@triton.jit
def _singles_fit(widths, count, outside, low, capacity, BLOCK: tl.constexpr):
    """Gale–Ryser: the k widest must fit into ∫ min(room, k) for every k; `widths` falls."""
    mass = tl.zeros([BLOCK], tl.float64)
    for start in range(0, capacity - low, BLOCK):
        level = low + start + tl.arange(0, BLOCK)
        mass += tl.load(outside + level, mask=level < capacity, other=0.0)
    above = tl.sum(mass, 0)  # how much of the circle has room for at least k
    width = 0.0 * above
    room = 0.0 * above
    misfits = 0
    for start in range(0, count, BLOCK):
        k = start + tl.arange(0, BLOCK)
        each = tl.load(widths + k, mask=k < count, other=0.0)
        gone = tl.load(outside + capacity - 1 - k, mask=(k < count) & (k < capacity), other=0.0)
        has_room = tl.where(k < count, above - (tl.cumsum(gone, 0) - gone), 0.0)
        taken = width + tl.cumsum(each, 0)
        offered = room + tl.cumsum(has_room, 0)
        misfits += tl.sum(((k < count) & (taken > offered + TINY * (capacity + 1))).to(tl.int32), 0)
        width += tl.sum(each, 0)
        room += tl.sum(has_room, 0)
        above -= tl.sum(gone, 0)
    return misfits == 0


@triton.jit
def packable(z, r, n, capacity, work, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """Whether the fractional tokens of `z` can be laid with at most `capacity` over each point.

    `work` holds 5n + 6 floats.
    """
    fractional = tl.zeros([BLOCK], tl.int32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = tl.load(z + i, mask=i < n, other=0.0)
        fractional += ((value > 0.0) & (value < 1.0)).to(tl.int32)
    fits = True
    if tl.sum(fractional, 0) > capacity:
        levels = capacity + 2
        outside = work
        sets = work + levels  # two histograms: of the current token's set, and of the next one's
        singles = sets + 2 * levels
        for start in range(0, 3 * levels, BLOCK):
            i = start + tl.arange(0, BLOCK)
            tl.store(work + i, tl.where(i == 0, 1.0, 0.0).to(tl.float64), mask=i < 3 * levels)
        tl.debug_barrier()
        low = 0
        count = 0
        current = 0
        missing = tl.full([], 0.0, tl.float64)
        before = tl.full([], 0.0, tl.float64)
        linked = 0  # to the token before
        for i in range(n):
            here = tl.load(z + i)
            ahead = tl.load(z + i + 1, mask=i + 1 < n, other=0.0)
            edge = tl.load(r + i, mask=i + 1 < n, other=0.0)
            inside = (here > 0.0) & (here < 1.0)
            links = (inside & (ahead > 0.0) & (ahead < 1.0) & (edge > 0.0)).to(tl.int32)
            if inside & (missing <= TINY):
                if linked + links > 0:
                    # Neighbours nest: keep the lowest part of the set before, or all of it and take more.
                    keep = tl.where(linked > 0, tl.minimum(here, before), 0.0)
                    mine = sets + current * levels
                    current = 1 - current
                    following = sets + current * levels
                    missing = _carry(keep, mine, outside, following, low, capacity, BLOCK)
                    if linked == 0:
                        low = _lowest(outside, low, capacity)
                    if missing <= TINY:
                        missing = _cover(here - keep, outside, following, low, capacity, BLOCK)
                else:
                    tl.store(singles + count, here)
                    count += 1
            before = here
            linked = links
        if missing > TINY:
            fits = False
        else:
            mine = sets + current * levels
            _carry(0.0 * missing, mine, outside, sets + (1 - current) * levels, low, capacity, BLOCK)
            low = _lowest(outside, low, capacity)
            _sort_down(singles, count, singles + n, TILE)
            fits = _singles_fit(singles + n, count, outside, low, capacity, BLOCK)
    return fits
