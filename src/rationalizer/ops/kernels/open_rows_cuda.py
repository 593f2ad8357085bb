"""Let a CUDA stream wait for rows that the CPU solves, so that Python never waits for the device.

A kernel copies its open rows (`open_rows_cpu`) into page-locked memory. Asking the device which rows are open would
make Python wait until all queued work is done. Instead, the last program of the kernel writes into a mailbox: an answer
if no row is open, otherwise a request, which a thread of the host answers. The stream waits for the answer, and the
next kernel reads the solutions. In a CUDA graph, a host function takes the place of the thread.
"""

from __future__ import annotations

import atexit
import ctypes
import threading
from collections import deque
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import accumulate, pairwise

import numpy as np
import torch
import triton
import triton.language as tl

from rationalizer.ops.kernels.numba_runtime import c_address
from rationalizer.ops.kernels.open_rows_cpu import (
    ACTIVITY,
    ANSWER,
    ARGUMENTS,
    CALLS,
    FIRST_CALL,
    FLAGS,
    MAILBOX,
    OPEN,
    OPENED,
    REQUEST,
    ROWS,
    SOLVER,
    STOP,
    THREAD_IDS,
    THREADS,
    answer_request,
    answer_request_in_graph,
    serve,
)

MOST_ARGUMENTS, MOST_THREADS, MOST_CALLS = 32, 256, 4096
UNKNOWN = -1  # how many rows were open
RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED: other calls than launches are allowed while a graph is captured
EQUAL = 1  # CU_STREAM_WAIT_VALUE_EQ

_REQUEST, _ANSWER, _OPENED = tl.constexpr(REQUEST), tl.constexpr(ANSWER), tl.constexpr(OPENED)


@triton.jit
def post(is_open, counter, mailbox, rows):
    """Every program calls this after its last write; `is_open` is 0 or 1. `counter` is 0 before and afterwards."""
    tl.debug_barrier()
    open_rows_unit = tl.full([], 1, tl.int64) << 32
    done = tl.atomic_add(counter, open_rows_unit * is_open + 1, sem="acq_rel", scope="sys")
    if (done & 0xFFFFFFFF) == rows - 1:
        count = (done >> 32) + is_open
        tl.store(counter, 0)
        tl.store(mailbox + _OPENED, count)
        tl.store(mailbox + tl.where(count > 0, _REQUEST, _ANSWER), 1)


@triton.jit
def clear_answer(mailbox):
    """After the stream has waited: in a CUDA graph the mailbox is used again."""
    tl.store(mailbox + _ANSWER, 0)


@cache
def _cuda_driver():
    """Return the CUDA driver; None with ROCm, and where Triton interprets kernels on the CPU."""
    if not torch.cuda.is_available() or torch.version.cuda is None:
        return None
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuLaunchHostFunc.argtypes = [ctypes.c_void_p] * 3
    driver.cuStreamWaitValue32_v2.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint]
    return driver


@contextmanager
def _relaxed_capture():
    """Allow queries and allocations while a CUDA graph is captured."""
    mode = ctypes.c_int(RELAXED)
    _cuda_driver().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    try:
        yield
    finally:
        _cuda_driver().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))


def _is_capturing() -> bool:
    return _cuda_driver() is not None and torch.cuda.is_current_stream_capturing()


class _Service:
    """The thread that answers requests. It runs compiled code without the GIL."""

    def __init__(self) -> None:
        self.fields = np.zeros(FIRST_CALL + MOST_CALLS, np.int64)
        self.calls: list[OpenRows] = []  # the thread reads their memory
        self.thread = threading.Thread(target=serve, args=(self.fields.ctypes.data,), daemon=True)
        self.fields[STOP] = 1
        serve(self.fields.ctypes.data)  # compiles
        self.fields[STOP] = 0
        self.thread.start()
        atexit.register(self.stop)

    def add(self, open_rows: OpenRows) -> None:
        count = len(self.calls)
        if count == MOST_CALLS:
            raise RuntimeError(f"more than {MOST_CALLS} calls of layers wait for the CPU at the same time")
        self.calls.append(open_rows)
        self.fields[FIRST_CALL + count] = open_rows.call.ctypes.data
        self.fields[CALLS] = count + 1

    def stop(self) -> None:
        self.fields[STOP] = 1
        self.thread.join()


@cache
def _service() -> _Service:
    return _Service()


class OpenRows:
    """Page-locked memory for the open rows of a call: `floats`, `integers` and `booleans` (as bytes), and a mailbox.

    By convention, `integers` starts with the flags of the rows (not 0 in open rows), followed by room for their list.
    """

    def __init__(self, device: torch.device, in_graph: bool) -> None:
        self.device, self.in_graph = device, in_graph
        self.pinned = device.type == "cuda"
        self.sizes = (0, 0, 0)
        self.mailbox = torch.zeros(3, dtype=torch.int64, pin_memory=self.pinned)
        self.counter = torch.zeros(1, dtype=torch.int64, device=device)
        self.event = torch.cuda.Event() if self.pinned else None
        self.support: torch.Tensor | None = None
        self.reports = False
        self.call = np.zeros(ARGUMENTS + MOST_ARGUMENTS + MOST_THREADS, np.int64)
        self.call[MAILBOX] = self.mailbox.data_ptr()
        self.call[THREAD_IDS] = self.call.ctypes.data + 8 * (ARGUMENTS + MOST_ARGUMENTS)
        if _cuda_driver() is not None and not in_graph:
            _service().add(self)

    def make_room(self, sizes: tuple[int, int, int]) -> None:
        if all(has >= needs for has, needs in zip(self.sizes, sizes, strict=True)):
            return
        self.sizes = tuple(1 << max(size - 1, 0).bit_length() for size in sizes)
        dtypes = (torch.float64, torch.int64, torch.uint8)
        self.floats, self.integers, self.booleans = (
            torch.empty(size, dtype=dtype, pin_memory=self.pinned)
            for size, dtype in zip(self.sizes, dtypes, strict=True)
        )

    def prepare(self, solver, rows: int, support: torch.Tensor, *arguments: float, reports: bool = False) -> None:
        """Describe the call before the kernel runs: `solver` gets the three blocks, `support` and `arguments`.

        If it `reports`, `none_was_open` can tell from `support` that no row was open.
        """
        self.support, self.reports = support, reports
        call, blocks = self.call, (self.floats, self.integers, self.booleans, support)
        call[FLAGS] = self.integers.data_ptr()
        call[ROWS], call[OPEN] = rows, call[FLAGS] + 8 * rows
        call[THREADS], call[SOLVER] = min(torch.get_num_threads(), rows, MOST_THREADS), c_address(solver)
        call[ARGUMENTS : ARGUMENTS + 4] = [block.data_ptr() for block in blocks]
        for place, value in enumerate(arguments, ARGUMENTS + 4):
            (call.view(np.float64) if isinstance(value, float) else call)[place] = value
        if _cuda_driver() is not None and not self.in_graph:
            _service().fields[ACTIVITY] += 1

    def wait(self) -> None:
        """Let the stream wait for the answer."""
        driver = _cuda_driver()
        if driver is None:
            if self.pinned:
                torch.cuda.current_stream(self.device).synchronize()
            answer_request(self.call.ctypes.data)
            return
        stream = torch.cuda.current_stream(self.device).cuda_stream
        if self.in_graph:
            error = driver.cuLaunchHostFunc(stream, c_address(answer_request_in_graph), self.call.ctypes.data)
        else:
            error = driver.cuStreamWaitValue32_v2(stream, int(self.call[MAILBOX]) + 8 * ANSWER, 1, EQUAL)
        if error:
            raise RuntimeError(f"the CUDA driver could not let the stream wait for the CPU (error {error})")

    def finish(self) -> None:
        """Note how many rows were open; the device is done with this call."""
        if self.reports:
            self.support[-1, 0, 0] = self.mailbox[OPENED]
        self.support = None


_lock = threading.Lock()
_free: list[OpenRows] = []
_queued: deque[OpenRows] = deque()
_in_graphs: list[OpenRows] = []  # a CUDA graph uses its memory in every replay


def _collect() -> None:
    while _queued and _queued[0].event.query():
        finished = _queued.popleft()
        finished.finish()
        _free.append(finished)


def take(sizes: tuple[int, int, int], device: torch.device) -> OpenRows:
    """Return memory for at least so many numbers, used before if the device is done with it."""
    in_graph = _is_capturing()
    with _lock, _relaxed_capture() if in_graph else nullcontext():
        if in_graph:
            open_rows = OpenRows(device, in_graph)
            _in_graphs.append(open_rows)
        else:
            _collect()
            matching = [k for k, each in enumerate(_free) if each.device == device]
            open_rows = _free.pop(matching[-1]) if matching else OpenRows(device, in_graph)
        open_rows.make_room(sizes)
        return open_rows


def give_back(open_rows: OpenRows) -> None:
    """Let the memory be used again when all that is now queued is done."""
    if open_rows.in_graph:
        return
    if open_rows.event is None:
        open_rows.finish()
        _free.append(open_rows)
        return
    open_rows.event.record(torch.cuda.current_stream(open_rows.device))
    with _lock:
        _queued.append(open_rows)


def new_support(rows: int, n: int) -> torch.Tensor:
    """Return room for the sequences of all rows; only the pages that are written use memory.

    The last row has none. Its first number is that of the rows that were open, UNKNOWN before the device is done.
    """
    support = torch.empty((rows + 1, n + 1, (n + 63) // 64), dtype=torch.int64)
    if n:
        support[-1, 0, 0] = UNKNOWN
    return support


def none_was_open(support: torch.Tensor) -> bool:
    """Return whether it is known by now that no row was open; this does not wait."""
    if support.is_cuda or support.numel() == 0 or _is_capturing():
        return False
    with _lock:
        _collect()
    return int(support[-1, 0, 0]) == 0


def solve_on_cpu(solver, inputs, outputs, *numbers: float, support: torch.Tensor | None = None) -> list[torch.Tensor]:
    """Let the CPU solve all rows when the stream is there; return tensors like `outputs` on the device.

    The solver's arguments, from `open_rows_cpu.VALUES` on, are the addresses of `inputs` and `outputs`, and `numbers`.
    """
    rows, device = len(inputs[0]), inputs[0].device
    results = [torch.empty_like(output, device=device) for output in outputs]
    if rows == 0:
        return results
    tensors = (*inputs, *results)
    units = ((tensor.numel() * tensor.element_size() + 7) // 8 for tensor in tensors)
    places = list(accumulate(units, initial=2 * rows))  # after the flags and the list of open rows
    open_rows = take((0, places[-1], 0), device)
    blocks = [
        open_rows.integers[start:end].view(tensor.dtype)[: tensor.numel()].view(tensor.shape)
        for tensor, (start, end) in zip(tensors, pairwise(places), strict=True)
    ]
    addresses = [open_rows.integers.data_ptr() + 8 * place for place in places[:-1]]
    open_rows.prepare(solver, rows, inputs[0] if support is None else support, *addresses, *numbers)
    ones = torch.ones(rows, dtype=torch.int64, device=device)
    open_rows.integers[:rows].copy_(ones, non_blocking=True)
    for block, tensor in zip(blocks, inputs, strict=False):
        block.copy_(tensor, non_blocking=True)
    open_rows.mailbox[REQUEST : REQUEST + 1].copy_(ones[:1], non_blocking=True)
    open_rows.wait()
    open_rows.mailbox[ANSWER : ANSWER + 1].copy_(ones[:1] - 1, non_blocking=True)
    for block, result in zip(blocks[len(inputs) :], results, strict=True):
        result.copy_(block, non_blocking=True)
    give_back(open_rows)
    return results
