"""`mixture_certificate_cpu` in Triton: the levels of the histogram in parallel, the words in sequence."""

import triton
import triton.language as tl

TILE = 16  # single sets × single sets in one vector step
TINY = tl.constexpr(1e-12)  # measures below this are rounding error


@triton.jit
def _carry(amount, inside, outside, other, low, limit, BLOCK: tl.constexpr):
    """Move the lowest `amount` of the current set to the next set (`other`), one level up, and the rest outside.

    `inside` becomes empty. Returns the amount that does not fit.
    """
    for start in range(0, limit + 1 - low, BLOCK):
        level = low + start + tl.arange(0, BLOCK)
        in_range = level <= limit
        measure = tl.load(inside + level, mask=in_range, other=0.0)
        room = tl.where(level < limit, measure, 0.0)
        part = tl.minimum(tl.maximum(amount - (tl.cumsum(room, 0) - room), 0.0), room)
        tl.store(other + level + 1, part, mask=level < limit)
        tl.store(outside + level, tl.load(outside + level, mask=in_range, other=0.0) + (measure - part), mask=in_range)
        tl.store(inside + level, tl.zeros([BLOCK], tl.float64), mask=in_range)
        amount -= tl.sum(part, 0)
    tl.debug_barrier()
    return amount


@triton.jit
def _cover(amount, outside, inside, low, limit, BLOCK: tl.constexpr):
    """Add the lowest `amount` of the outside to the current set, one level up. Returns the amount that does not fit."""
    for start in range(0, limit - low, BLOCK):
        level = low + start + tl.arange(0, BLOCK)
        in_range = level < limit
        measure = tl.load(outside + level, mask=in_range, other=0.0)
        part = tl.minimum(tl.maximum(amount - (tl.cumsum(measure, 0) - measure), 0.0), measure)
        tl.store(outside + level, measure - part, mask=in_range)
        tl.store(inside + level + 1, tl.load(inside + level + 1, mask=in_range, other=0.0) + part, mask=in_range)
        amount -= tl.sum(part, 0)
    tl.debug_barrier()
    return amount


@triton.jit
def _lowest(outside, low, capacity):
    """Return the lowest level that is not empty, after moving rounding errors below it up."""
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
    """Write `values` to `ordered` in descending order; the rank of a value is the number of values before it."""
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
    """Return whether the k widest sets fit into ∫ min(room, k) for every k (Gale–Ryser); `widths` is descending."""
    mass = tl.zeros([BLOCK], tl.float64)
    for start in range(0, capacity - low, BLOCK):
        level = low + start + tl.arange(0, BLOCK)
        mass += tl.load(outside + level, mask=level < capacity, other=0.0)
    above = tl.sum(mass, 0)  # the measure with room for at least k sets
    width = 0.0 * above
    room = 0.0 * above
    violations = 0
    for start in range(0, count, BLOCK):
        k = start + tl.arange(0, BLOCK)
        each = tl.load(widths + k, mask=k < count, other=0.0)
        leaving = tl.load(outside + capacity - 1 - k, mask=(k < count) & (k < capacity), other=0.0)
        has_room = tl.where(k < count, above - (tl.cumsum(leaving, 0) - leaving), 0.0)
        total_width = width + tl.cumsum(each, 0)
        total_room = room + tl.cumsum(has_room, 0)
        violations += tl.sum(((k < count) & (total_width > total_room + TINY * (capacity + 1))).to(tl.int32), 0)
        width += tl.sum(each, 0)
        room += tl.sum(has_room, 0)
        above -= tl.sum(leaving, 0)
    return violations == 0


@triton.jit
def is_mixture_within_budget(z, r, n, capacity, work, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """Return whether `z` is proven to be a mixture of sequences with at most `capacity` fractional words each.

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
        sets = work + levels  # two histograms: of the sets of the current and the next word
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
        linked = 0  # to the previous word
        for i in range(n):
            here = tl.load(z + i)
            ahead = tl.load(z + i + 1, mask=i + 1 < n, other=0.0)
            edge = tl.load(r + i, mask=i + 1 < n, other=0.0)
            inside = (here > 0.0) & (here < 1.0)
            links = (inside & (ahead > 0.0) & (ahead < 1.0) & (edge > 0.0)).to(tl.int32)
            if inside & (missing <= TINY):
                if linked + links > 0:
                    # Neighbours are nested: keep the lowest part of the previous set, or all of it and add more.
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
