"""The best matching of every size on CUDA: one program per matrix, vector operations over its short side.

The same successive shortest paths as in `matching_map_cpu`, also at ties. As there, the unmasked entries of a matrix
are first gathered into a (long, short) matrix, so that a masked matrix takes the same path as the truncated one.
Programs of more than one warp exchange data through `scratch` (one tile per matrix), with a barrier between a store and
a load.
"""

import struct
from contextlib import nullcontext
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from rationalizer.ops._declare import run_on_host

INFINITY = tl.constexpr(float("inf"))
SHARED_BYTES = 18  # an upper bound on the shared memory per entry of the tile

# Sizes and flags are not specialized: a kernel is compiled once per tile shape.
flags = ["rows_exact", "columns_exact", "total_exact"]
pair_kernel = triton.jit(do_not_specialize=["m", "n", *flags, "max_iterations", "temperature"])


@cache
def power_of_2(size: int) -> int:
    """Return the length of a tile for `size` entries; at least 16, which matrix products need."""
    return max(16, triton.next_power_of_2(size))


def tile_shape(m: int, n: int) -> tuple[int, int]:
    """(LONG, SHORT) of the tile for the gathered matrix and one more column, for the multiplier of the budget."""
    return power_of_2(max(m, n)), power_of_2(min(m, n) + 1)


@cache
def holds(tile: tuple[int, int], device: torch.device) -> bool:
    """Return whether the tile fits into the shared memory of one program."""
    if device.type != "cuda":
        return True  # Triton's interpreter
    properties: Any = torch.cuda.get_device_properties(device)
    return SHARED_BYTES * tile[0] * tile[1] <= properties.shared_memory_per_block_optin


def warps(long: int, short: int) -> int:
    return min(max(long * short // 256, 1), 16)


def launch(kernel: Any, arguments: tuple[Any, ...], shape: tuple[int, ...], device: torch.device) -> None:
    """Run one program for each of the matrices of `shape` (matrices, m, n)."""
    pairs, m, n = shape
    long, short = tile_shape(m, n)
    with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        kernel[(pairs,)](
            *arguments,
            torch.empty((pairs, long, short), dtype=torch.float64, device=device),
            m,
            n,
            ROWS=power_of_2(m),
            COLUMNS=power_of_2(n),
            LONG=long,
            SHORT=short,
            num_warps=warps(long, short),
        )


def bits(number: float) -> int:
    """Return the bits of a float64 as an integer: Triton would pass a Python float in single precision."""
    (packed,) = struct.unpack("q", struct.pack("d", number))
    return packed


@triton.jit
def tile_indices(row_mask, column_mask, pair, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SHORT: tl.constexpr):
    """The index of entry (i, j) in the (long, short) tile, which entries are unmasked, and the numbers of words."""
    i = tl.arange(0, ROWS)
    j = tl.arange(0, COLUMNS)
    in_rows = tl.load(row_mask + pair * m + i, mask=i < m, other=0).to(tl.int32)
    in_columns = tl.load(column_mask + pair * n + j, mask=j < n, other=0).to(tl.int32)
    rows = tl.sum(in_rows)
    columns = tl.sum(in_columns)
    a = tl.cumsum(in_rows, 0)[:, None] - 1
    b = tl.cumsum(in_columns, 0)[None, :] - 1
    position = tl.where(rows < columns, b * SHORT + a, a * SHORT + b)
    unmasked = (in_rows[:, None] > 0) & (in_columns[None, :] > 0)
    return position, unmasked, rows, columns


@triton.jit
def entries(pair, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return the flat indices of the entries of a matrix in a (matrices, m, n) tensor, and which of them exist."""
    i = tl.arange(0, ROWS)[:, None]
    j = tl.arange(0, COLUMNS)[None, :]
    return pair.to(tl.int64) * m * n + i * n + j, (i < m) & (j < n)


@triton.jit
def gather(values, position, unmasked, scratch, long, short, LONG: tl.constexpr, SHORT: tl.constexpr):
    """Return the unmasked entries as a (long, short) tile, -inf outside; the tile is also in `scratch`."""
    i = tl.arange(0, LONG)[:, None]
    j = tl.arange(0, SHORT)[None, :]
    tl.debug_barrier()  # others may still be reading
    tl.store(scratch + position, values, mask=unmasked)
    tl.debug_barrier()
    return tl.load(scratch + i * SHORT + j, mask=(i < long) & (j < short), other=-INFINITY)


@triton.jit
def read_pair(
    scores,
    row_mask,
    column_mask,
    budget,
    temperature,
    scratch,
    pair,
    m,
    n,
    rows_exact,
    columns_exact,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    LONG: tl.constexpr,
    SHORT: tl.constexpr,
):
    """Return the gathered tile, (long, short, limit, transposed), and whether the problem is invalid.

    A problem is invalid if a score is not finite, the budget is negative, or there is no feasible matching. It is
    solved as an empty one.
    """
    position, unmasked, rows, columns = tile_indices(row_mask, column_mask, pair, m, n, ROWS, COLUMNS, SHORT)
    where, _ = entries(pair, m, n, ROWS, COLUMNS)
    values = tl.load(scores + where, mask=unmasked, other=0.0).to(tl.float64) / temperature
    limit = tl.load(budget + pair)
    invalid = (
        tl.max(tl.max((tl.abs(values) == INFINITY).to(tl.int32) | (values != values).to(tl.int32), 0), 0) > 0
    ) | (limit < 0)
    invalid = invalid | ((rows_exact > 0) & ((rows > columns) | (limit < rows)))
    invalid = invalid | ((columns_exact > 0) & ((columns > rows) | (limit < columns)))
    long = tl.where(invalid, 0, tl.maximum(rows, columns))
    short = tl.where(invalid, 0, tl.minimum(rows, columns))
    limit = tl.minimum(limit, short.to(tl.int64)).to(tl.int32)
    tile = gather(values, position, unmasked, scratch, long, short, LONG, SHORT)
    return tile, long, short, tl.maximum(limit, 0), rows < columns, invalid


@triton.jit
def scatter(
    tile,
    invalid,
    row_mask,
    column_mask,
    scratch,
    pair,
    m,
    n,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    LONG: tl.constexpr,
    SHORT: tl.constexpr,
):
    """Undo the gathering: masked entries become 0, unmasked ones of an invalid problem NaN."""
    i = tl.arange(0, LONG)[:, None]
    j = tl.arange(0, SHORT)[None, :]
    tl.debug_barrier()  # others may still be reading
    tl.store(scratch + i * SHORT + j, tl.where(invalid, float("nan"), tile))
    tl.debug_barrier()
    position, unmasked, _, _ = tile_indices(row_mask, column_mask, pair, m, n, ROWS, COLUMNS, SHORT)
    return tl.load(scratch + position, mask=unmasked, other=0.0)


@triton.jit
def write_pair(values, out, pair, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    where, present = entries(pair, m, n, ROWS, COLUMNS)
    if out.dtype.element_ty == tl.float64:
        tl.store(out + where, values, mask=present)
    else:  # through float32, as torch rounds to half precision
        tl.store(out + where, values.to(tl.float32).to(out.dtype.element_ty), mask=present)


@triton.jit
def best_matching(scores, scratch, long, short, limit, forced, LONG: tl.constexpr, SHORT: tl.constexpr):
    """Find the best matching of at most (exactly, if `forced`) `limit` pairs.

    `scores` is the tile, also in `scratch`. Returns partner (of each short node, -1 for none), potentials u, v
    and the level, like the CPU kernel. `u` is stored with the short nodes: the potential of their partner.
    """
    i = tl.arange(0, LONG)
    j = tl.arange(0, SHORT)
    matched = tl.zeros((LONG,), tl.int32)
    partner = tl.full((SHORT,), -1, tl.int32)
    u = tl.zeros((SHORT,), tl.float64)
    v = tl.zeros((SHORT,), tl.float64)
    best, source = tl.max(scores, 0, return_indices=True)
    level = tl.max(best, 0)
    count = tl.zeros((), tl.int32)
    going = limit > 0
    while going:
        # Dijkstra over the short nodes; every unmatched long node is a start with potential `level`.
        distance = level + v - best
        before = tl.full((SHORT,), -1, tl.int32)  # the previous short node on the path
        done = tl.zeros((SHORT,), tl.int32)
        length = level
        end = count
        found = count < 0
        searching = count >= 0
        while searching:
            length, end = tl.min(tl.where(done > 0, INFINITY, distance), 0, return_indices=True)
            current = j == end
            through = tl.sum(tl.where(current, partner, 0), 0)
            found = through < 0
            searching = (through >= 0) & (forced | (length < level))
            if searching:
                done = tl.where(current, 1, done)
                base = length + tl.sum(tl.where(current, u, 0.0), 0)
                row = tl.load(scratch + through * SHORT + j, mask=j < short, other=-INFINITY)
                via = base + v - row
                closer = (done == 0) & (via < distance)
                distance = tl.where(closer, via, distance)
                before = tl.where(closer, end, before)
        useful = found & (forced | (length < level))
        length = tl.where(useful, length, level)
        gain = tl.where(done > 0, length - distance, 0.0)
        v += gain
        u -= gain
        level = tl.where(useful, level - length, 0.0)
        walking = useful
        while walking:
            current = j == end
            previous = tl.sum(tl.where(current, before, 0), 0)
            previous_node = j == previous
            walking = previous >= 0
            freed = tl.sum(tl.where(previous_node, partner, 0), 0)
            fresh = tl.sum(tl.where(current, source, 0), 0)
            potential = tl.where(walking, tl.sum(tl.where(previous_node, u, 0.0), 0), level)
            node = tl.where(walking, freed, fresh)
            partner = tl.where(current, node, partner)
            u = tl.where(current, potential, u)
            if not walking:
                matched = tl.where(i == node, 1, matched)
            end = previous
        best, source = tl.max(tl.where(matched[:, None] > 0, -INFINITY, scores), 0, return_indices=True)
        count += 1
        going = useful & (count < limit)
    return partner, u, v, level


@pair_kernel
def matching_map_kernel(
    scores,
    row_mask,
    column_mask,
    budget,
    out,
    rows_exact,
    columns_exact,
    total_exact,
    scratch,
    m,
    n,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    LONG: tl.constexpr,
    SHORT: tl.constexpr,
):
    pair = tl.program_id(0)
    scratch += pair.to(tl.int64) * LONG * SHORT
    tile, long, short, limit, _, invalid = read_pair(
        scores, row_mask, column_mask, budget, 1.0, scratch, pair, m, n,
        rows_exact, columns_exact, ROWS, COLUMNS, LONG, SHORT,
    )  # fmt: skip
    invalid = invalid | ((total_exact > 0) & (tl.load(budget + pair) > short))
    forced = (short > 0) & ((rows_exact | columns_exact | total_exact) > 0)
    partner, _, _, _ = best_matching(tile, scratch, long, short, limit, forced, LONG, SHORT)
    chosen = (partner[None, :] == tl.arange(0, LONG)[:, None]).to(tl.float64)
    y = scatter(chosen, invalid, row_mask, column_mask, scratch, pair, m, n, ROWS, COLUMNS, LONG, SHORT)
    write_pair(y, out, pair, m, n, ROWS, COLUMNS)


def matching_map(
    scores: Tensor,
    row_mask: Tensor,
    column_mask: Tensor,
    budget: Tensor,
    allowed: Tensor | None,
    rows_exact: bool,
    columns_exact: bool,
    total_exact: bool,
    at_least: Tensor | None = None,
) -> Tensor:
    if allowed is not None or at_least is not None or not holds(tile_shape(*scores.shape[1:]), scores.device):
        inputs = (scores, row_mask, column_mask, budget, allowed, rows_exact, columns_exact, total_exact, at_least)
        return run_on_host(torch.ops.rationalizer.matching_map, *inputs)
    out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    if scores.numel():
        tensors = (scores.contiguous(), row_mask.contiguous(), column_mask.contiguous(), budget.contiguous(), out)
        exact = (int(rows_exact), int(columns_exact), int(total_exact))
        launch(matching_map_kernel, (*tensors, *exact), scores.shape, scores.device)
    return out
