"""H:SeqBudget in Triton: the closed form with its certificate in one kernel, the rows it leaves open in a second.

The second kernel is the active set of `sequence_budget_cpu`: tokens that the closed form puts at 0 or 1 are held, and
released where a Lagrangian bound cannot prove that they stay. It starts no row of its own accord: programs look at the
marks of the first kernel, so the host never learns, nor waits to learn, which rows were hard.

Not here: the mixtures of `levelling_cpu`, which on the CPU settle rows of little spread without an active set, and
`face_cpu`, so the gradient of rows with tied scores is that of the sequences found, which may span less than the face.
"""

import torch
import triton
import triton.language as tl

from rationalizer.ops.kernels import support_capacity
from rationalizer.ops.kernels.active_set_cuda import active_set, write_sequence
from rationalizer.ops.kernels.packing_cuda import packable
from rationalizer.ops.kernels.pair_budget_cuda import pair_budget_row
from rationalizer.ops.kernels.rows_cuda import (
    BLOCK,
    fill,
    gather_edges,
    gather_real,
    plain,
    programs,
    scatter_real,
)
from rationalizer.ops.kernels.sequence_budget_map_cuda import budgeted_viterbi
from rationalizer.ops.kernels.support_cuda import TILE

HARD = tl.constexpr(-1)  # in `kept`: the closed form is not certified
HELD_1 = tl.constexpr(1)
IN_DOUBT = tl.constexpr(2)


@triton.jit(do_not_specialize=["n"])
def _closed_form_kernel(
    scores,
    transition,
    mask,
    budget,
    z,
    tau,
    tight,
    kept,
    converged,
    iterations,
    gap,
    work,
    n,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    s = work + row * (13 * n + 6)
    r = s + n
    solution = r + n
    count, answered = gather_real(scores + row * n, mask + row * n, n, s, BLOCK)
    finite, negative = gather_edges(transition + row * (n - 1), mask + row * n, n, r, BLOCK)
    limit = tl.load(budget + row)
    answered = answered & finite & (limit >= 0)
    count = tl.where(answered, count, 0)
    limit = tl.minimum(tl.maximum(limit, 0), count).to(tl.int32)
    threshold = tl.full([], 0.0, tl.float64)
    mark = 0
    if limit == 0:
        fill(solution, 0, count, threshold, BLOCK)
    elif negative:
        fill(solution, 0, count, threshold, BLOCK)
        mark = HARD
    else:
        threshold = pair_budget_row(s, r, count, limit, solution, solution + n, BLOCK)
        if limit < count:
            ones = tl.zeros([BLOCK], tl.int32)
            for start in range(0, count, BLOCK):
                i = start + tl.arange(0, BLOCK)
                ones += (tl.load(solution + i, mask=i < count, other=0.0) == 1.0).to(tl.int32)
            fits = packable(solution, r, count, limit - tl.sum(ones, 0), solution + n, BLOCK, TILE)
            mark = tl.where(fits, 0, HARD)
    tl.store(tau + row, threshold)
    tl.store(tight + row, (threshold > 0.0).to(tl.uint8))
    tl.store(kept + row, mark)
    tl.store(converged + row, answered.to(tl.uint8))
    tl.store(iterations + row, 0)
    tl.store(gap + row, tl.where(answered, 0.0, float("nan")).to(tl.float64))
    scatter_real(solution, mask + row * n, n, answered, z + row * n, BLOCK)


@triton.jit
def _reduce(s, r, state, n, tokens, scores, edges, BLOCK: tl.constexpr):
    """The problem on the tokens in doubt, the others held; returns how many there are and how many are held at 1."""
    count = 0
    held = 0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        here = tl.load(state + i, mask=i < n, other=0)
        behind = tl.load(state + i - 1, mask=(i > 0) & (i < n), other=0)
        ahead = tl.load(state + i + 1, mask=i + 1 < n, other=0)
        doubt = here == IN_DOUBT
        place = count + tl.cumsum(doubt.to(tl.int32), 0) - 1
        edge = tl.load(r + i - 1, mask=(i > 0) & (i < n), other=0.0)
        score = tl.load(s + i, mask=i < n, other=0.0) + tl.where(behind == HELD_1, edge, 0.0)
        score += tl.load(r + i, mask=ahead == HELD_1, other=0.0)
        tl.store(tokens + place, i, mask=doubt)
        tl.store(scores + place, score, mask=doubt)
        tl.store(edges + place - 1, tl.where(behind == IN_DOUBT, edge, 0.0), mask=doubt & (place > 0))
        count += tl.sum(doubt.to(tl.int32), 0)
        held += tl.sum((here == HELD_1).to(tl.int32), 0)
    tl.debug_barrier()
    return count, held


@triton.jit(noinline=True)
def _release(s, r, z, n, tau, budget, level, state, ahead_0, ahead_1, flips):
    """Mark in `flips` the held tokens that might do better flipped; returns how many, and a bound on all sequences.

    See `sequence_budget_cpu._release`.
    """
    best_0 = 0.0 * tau  # best score of tokens i + 1 ... given the bit at i
    best_1 = 0.0 * tau
    for step in range(n):
        i = n - 1 - step
        tl.store(ahead_0 + i, best_0)
        tl.store(ahead_1 + i, best_1)
        gain = tl.load(s + i) - tl.load(z + i) - tau
        edge = tl.load(r + i - 1, mask=i > 0, other=0.0)
        taken = gain + best_1
        best_1 = tl.maximum(best_0, taken + edge)
        best_0 = tl.maximum(best_0, taken)
    tl.debug_barrier()
    allowed = level - tau * budget + 1e-13 + 1e-15 * (tl.abs(level) + tau * budget)
    released = 0
    behind_0 = 0.0 * tau
    behind_1 = 0.0 * tau + float("-inf")
    for i in range(n):
        gain = tl.load(s + i) - tl.load(z + i) - tau
        edge = tl.load(r + i - 1, mask=i > 0, other=0.0)
        here = tl.load(state + i)
        taken = gain + tl.maximum(behind_0, behind_1 + edge)
        behind_0 = tl.maximum(behind_0, behind_1)
        behind_1 = taken
        flipped = tl.where(here == HELD_1, behind_0 + tl.load(ahead_0 + i), behind_1 + tl.load(ahead_1 + i))
        flips_here = ((here != IN_DOUBT) & (flipped > allowed)).to(tl.int32)
        tl.store(flips + i, flips_here.to(tl.uint8))
        released += flips_here
    tl.debug_barrier()
    return released, tl.maximum(behind_0, behind_1) + tau * budget


@triton.jit
def _store_support(columns, n, k, support, words, BLOCK: tl.constexpr):
    """Sequences as bits, 64 tokens to a word."""
    bit = tl.arange(0, 64).to(tl.int64)
    for j in range(k):
        for start in range(0, words, 4):
            word = start + tl.arange(0, 4)
            i = word[:, None] * 64 + bit[None, :]
            y = tl.load(columns + j * n + i, mask=i < n, other=0).to(tl.int64)
            tl.store(support + j * words + word, tl.sum(y << bit[None, :], 1), mask=word < words)


@triton.jit(noinline=True)
def _solve_hard_row(
    scores,
    transition,
    mask,
    budget,
    tau,
    z,
    kept,
    support,
    converged,
    iterations,
    gap,
    floats,
    bytes_,
    tokens,
    n,
    capacity,
    max_iterations,
    enough,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    """Active set with held tokens, from the closed form in `z`."""
    words = (n + 63) // 64
    s = floats
    r = s + n
    solution = r + n
    small_scores = solution + n
    edges = small_scores + n
    small_z = edges + n
    work = small_z + n
    ahead_1 = work + n
    value = work + 3 * n
    p = value + 4 * n + 4
    vectors = p + capacity
    inverse = vectors + 6 * capacity
    columns = bytes_
    y = columns + capacity * n
    state = y + n
    flips = state + n
    trace = flips + n
    count, _ = gather_real(scores, mask, n, s, BLOCK)
    gather_real(z, mask, n, solution, BLOCK)
    _, negative = gather_edges(transition, mask, n, r, BLOCK)
    limit = tl.minimum(budget, count).to(tl.int32)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        here = tl.load(solution + i, mask=i < count, other=0.0)
        held = tl.where(here == 1.0, HELD_1, tl.where(here == 0.0, 0, IN_DOUBT))
        tl.store(state + i, tl.where(negative, IN_DOUBT, held).to(tl.uint8), mask=i < count)
    tl.debug_barrier()
    k = 0
    steps = 0
    settled = 0
    rest = 0.0 * tau
    going = count > 0
    while going:
        doubtful, held = _reduce(s, r, state, count, tokens, small_scores, edges, BLOCK)
        room = tl.minimum(limit - held, doubtful)
        if k == 0:
            for start in range(0, doubtful, BLOCK):
                j = start + tl.arange(0, BLOCK)
                token = tl.load(tokens + j, mask=j < doubtful, other=0)
                less = tl.load(small_scores + j, mask=j < doubtful, other=0.0)
                less -= tl.load(solution + token, mask=j < doubtful, other=0.0)
                tl.store(work + j, less, mask=j < doubtful)
            tl.debug_barrier()
            budgeted_viterbi(work, edges, doubtful, room, 0.0 * tau, y, trace, value, BLOCK)
            write_sequence(columns, state, count, tokens, y, doubtful, BLOCK)
            tl.store(p, 1.0 + 0.0 * tau)
            tl.debug_barrier()
            k = 1
        k, used, rest, settled, level = active_set(
            small_scores, edges, doubtful, room, columns, n, tokens, state, count, k, capacity, p, vectors,
            inverse, small_z, work, y, trace, value, max_iterations - steps, enough,
            BLOCK, TILE,
        )  # fmt: skip
        steps += used
        shared = tl.zeros([BLOCK], tl.float64)
        for start in range(0, count, BLOCK):
            i = start + tl.arange(0, BLOCK)
            here = tl.load(state + i, mask=i < count, other=0)
            ahead = tl.load(state + i + 1, mask=i + 1 < count, other=0)
            one = here == HELD_1
            shared += tl.load(s + i, mask=one, other=0.0) - tl.where(one, 1.0, 0.0)
            shared += tl.load(r + i, mask=one & (ahead == HELD_1), other=0.0)
            tl.store(solution + i, one.to(tl.float64), mask=i < count)
        tl.debug_barrier()
        for start in range(0, doubtful, BLOCK):
            j = start + tl.arange(0, BLOCK)
            token = tl.load(tokens + j, mask=j < doubtful, other=0)
            tl.store(solution + token, tl.load(small_z + j, mask=j < doubtful), mask=j < doubtful)
        tl.debug_barrier()
        going = False
        if doubtful < count:
            level += tl.sum(shared, 0)
            released, bound = _release(s, r, solution, count, tau, limit, level + enough, state, work, ahead_1, flips)
            going = (settled > 0) & (released > 0) & (steps < max_iterations)
            if (released > 0) | (settled == 0):
                settled = 0
                rest = tl.maximum(rest, bound - level)
            everything = 2 * (doubtful + released) > count
            for start in range(0, count, BLOCK):
                i = start + tl.arange(0, BLOCK)
                flip = tl.load(flips + i, mask=going & (i < count), other=0) > 0
                free = going & (i < count) & (flip | everything)
                tl.store(state + i, tl.full([BLOCK], IN_DOUBT, tl.uint8), mask=free)
            tl.debug_barrier()
    _store_support(columns, n, k, support, words, BLOCK)
    scatter_real(solution, mask, n, True, z, BLOCK)
    tl.store(kept, k)
    tl.store(converged, tl.cast(settled, tl.uint8))
    tl.store(iterations, steps)
    tl.store(gap, rest)
    tl.debug_barrier()


@triton.jit(do_not_specialize=["n", "rows", "capacity", "max_iterations", "enough"])
def _active_set_kernel(
    scores,
    transition,
    mask,
    budget,
    tau,
    z,
    kept,
    support,
    converged,
    iterations,
    gap,
    floats,
    bytes_,
    tokens,
    n,
    rows,
    capacity,
    max_iterations,
    enough,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    floats += program * (13 * n + 4 + (7 + capacity) * capacity)
    bytes_ += program * n * (capacity + n + 4)
    tokens += program * n
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = tl.cast(row, tl.int64)
        if tl.load(kept + at) == HARD:
            _solve_hard_row(
                scores + at * n, transition + at * (n - 1), mask + at * n, tl.load(budget + at), tl.load(tau + at),
                z + at * n, kept + at, support + at * capacity * ((n + 63) // 64), converged + at, iterations + at,
                gap + at, floats, bytes_, tokens, n, capacity, max_iterations, enough, BLOCK, TILE,
            )  # fmt: skip


def sequence_budget(scores, transition, mask, budget, max_iterations, tolerance):
    rows, n = scores.shape
    max_iterations = min(max_iterations, 1000 + 20 * n)
    enough = (1 - 1e-6) * tolerance * tolerance  # a little less: it reaches the kernels as float32
    scores, transition, mask, budget = plain(scores, transition, mask, budget)
    capacity = support_capacity(n)
    z, tau, gap = torch.empty_like(scores), scores.new_empty(rows), scores.new_empty(rows)
    tight, converged = (torch.empty(rows, dtype=torch.bool, device=scores.device) for _ in range(2))
    kept, iterations = (torch.empty(rows, dtype=torch.int64, device=scores.device) for _ in range(2))
    support = kept.new_empty(rows, capacity, (n + 63) // 64)
    if scores.numel() == 0:
        for flag in (tight, converged):
            flag.fill_(flag is converged)
        return z, tight, kept.zero_(), support, converged, iterations.zero_(), gap.zero_()
    flags = tight.view(torch.uint8), converged.view(torch.uint8)
    work = scores.new_empty(rows, 13 * n + 6)
    _closed_form_kernel[(rows,)](
        scores, transition, mask, budget, z, tau, flags[0], kept, flags[1], iterations, gap, work, n, BLOCK, TILE,
        num_warps=1,
    )  # fmt: skip
    floats, small = 13 * n + 4 + (7 + capacity) * capacity, n * (capacity + n + 4)
    grid = programs(rows, 8 * floats + small)
    _active_set_kernel[(grid,)](
        scores, transition, mask, budget, tau, z, kept, support, flags[1], iterations, gap,
        scores.new_empty(grid, floats), scores.new_empty((grid, small), dtype=torch.uint8),
        scores.new_empty((grid, n), dtype=torch.int32), n, rows, capacity, max_iterations, enough, BLOCK,
        TILE, num_warps=1,
    )  # fmt: skip
    return z, tight, kept, support, converged, iterations, gap
