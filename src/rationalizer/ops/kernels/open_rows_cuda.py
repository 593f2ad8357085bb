"""Queue the solution of open rows on a CUDA stream, so that Python never waits for the device.

A kernel copies the rows that it leaves to the CPU into page-locked memory, and writes which ones these are. Asking the
device which rows are open would make Python wait until all queued work is done. Instead, a call of a compiled function
is queued (`open_rows_cpu`); the next kernel in the stream reads its results. All of this can be captured in a CUDA
graph.
"""

import atexit
import ctypes
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import accumulate, pairwise

import numpy as np
import torch

from rationalizer.ops.kernels.numba_runtime import c_address
from rationalizer.ops.kernels.open_rows_cpu import (
    ARGUMENTS,
    COUNT,
    FLAGS,
    OPEN,
    REPORT,
    ROWS,
    SOLVER,
    THREAD_IDS,
    THREADS,
    UNKNOWN,
    solve_open_rows,
)

RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED: other calls than launches are allowed while a graph is captured


@cache
def _cuda_driver():
    """Return the CUDA driver; None with ROCm, and where Triton interprets kernels on the CPU."""
    if not torch.cuda.is_available() or torch.version.cuda is None:
        return None
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuLaunchHostFunc.argtypes = [ctypes.c_void_p] * 3
    return driver


@contextmanager
def _relaxed_capture():
    """Allow queries and allocations while a CUDA graph is captured, by this thread or another one."""
    driver = _cuda_driver()
    mode = ctypes.c_int(RELAXED)
    if driver is not None:
        driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    try:
        yield
    finally:
        if driver is not None:
            driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))


def _is_capturing() -> bool:
    return _cuda_driver() is not None and torch.cuda.is_current_stream_capturing()


def new_support(rows: int, n: int) -> torch.Tensor:
    """Return room for the sequences of all rows; only the pages that are written use memory.

    It is on the CPU, and written when the stream is there: hooks that copy saved tensors at once, such as
    `torch.autograd.graph.save_on_cpu(pin_memory=True)`, copy it too early. The last row has no sequences. Its first
    number is that of the rows that were open, UNKNOWN before the call was carried out, and in a CUDA graph.
    """
    support = torch.empty((rows + 1, n + 1, (n + 63) // 64), dtype=torch.int64, device="cpu")
    if n:
        support[-1, 0, 0] = UNKNOWN
    return support


def none_was_open(support: torch.Tensor) -> bool:
    """Return whether it is known by now that no row was open; this does not wait."""
    if support.is_cuda or support.numel() == 0 or _is_capturing():
        return False
    return int(support[-1, 0, 0]) == 0


class OpenRows:
    """Page-locked memory for the open rows of one call: `floats`, `integers` and `booleans` (as bytes).

    By convention, `integers` starts with the flags of the rows (not 0 in open rows), followed by room for their list.
    """

    def __init__(self, sizes: tuple[int, ...], device: torch.device) -> None:
        pinned = device.type == "cuda"
        dtypes = (torch.float64, torch.int64, torch.uint8)
        with torch.inference_mode(False):  # inference tensors could not be written to by a later training
            self.floats, self.integers, self.booleans = (
                torch.empty(size, dtype=dtype, device="cpu", pin_memory=pinned)
                for size, dtype in zip(sizes, dtypes, strict=True)
            )
        self.sizes = sizes
        self.device = device
        self.addresses = [block.data_ptr() for block in (self.floats, self.integers, self.booleans)]
        self.event = torch.cuda.Event() if pinned else None
        self.alive: tuple[object, ...] = ()  # what the queued call uses

    def solve(self, solver, rows: int, support: torch.Tensor, *arguments: float, report: bool = False) -> None:
        """Queue `solver` for the open rows. Its arguments are the three blocks, `support` and `arguments`.

        With `report`, the number of open rows will be where `none_was_open` looks for it.
        """
        threads = min(torch.get_num_threads(), rows)
        call = np.empty(ARGUMENTS + 4 + len(arguments) + threads, np.int64)
        address, flags, last = call.ctypes.data, self.addresses[1], len(call) - threads
        sequences = support.data_ptr()
        call[ROWS], call[FLAGS], call[OPEN] = rows, flags, flags + 8 * rows
        call[THREADS], call[THREAD_IDS], call[SOLVER] = threads, address + 8 * last, c_address(solver)
        call[REPORT] = (
            sequences + 8 * rows * support.stride(0) if report and not _is_capturing() else address + 8 * COUNT
        )
        call[ARGUMENTS : ARGUMENTS + 4] = (*self.addresses, sequences)
        for place, value in enumerate(arguments, ARGUMENTS + 4):
            (call.view(np.float64) if isinstance(value, float) else call)[place] = value
        self.alive = (call, support)
        self._queue(c_address(solve_open_rows), address)

    def is_done(self) -> bool:
        return self.event is None or self.event.query()

    def _queue(self, function: int, argument: int) -> None:
        driver = _cuda_driver()
        if driver is None or self.event is None:
            if self.event is not None:
                torch.cuda.current_stream(self.device).synchronize()
            ctypes.CFUNCTYPE(None, ctypes.c_int64)(function)(argument)
            return
        error = driver.cuLaunchHostFunc(torch.cuda.current_stream(self.device).cuda_stream, function, argument)
        if error:
            raise RuntimeError(f"CUDA could not queue a host function (cuLaunchHostFunc returned {error})")


_lock = threading.Lock()
_free: list[OpenRows] = []
_queued: deque[OpenRows] = deque()
_captured: list[OpenRows] = []  # a CUDA graph uses its memory in every replay


@atexit.register
def _wait_for_queued() -> None:
    """Threads of the CPU may still solve rows, in memory that the end of the process frees."""
    for event in [open_rows.event for open_rows in _queued]:
        if event is not None:
            with suppress(RuntimeError):
                event.synchronize()


@contextmanager
def borrow(sizes: tuple[int, int, int], device: torch.device) -> Iterator[OpenRows]:
    """Memory for at least so many numbers. It is used again when all that is queued at the end of the block is done."""
    open_rows = _take(sizes, device)
    try:
        yield open_rows
    finally:
        _give_back(open_rows)


def _take(sizes: tuple[int, ...], device: torch.device) -> OpenRows:
    with _lock, _relaxed_capture():
        while _queued and _queued[0].is_done():
            finished = _queued.popleft()
            finished.alive = ()
            _free.append(finished)
        while _free:
            open_rows = _free.pop()
            if open_rows.device == device:
                if all(has >= needs for has, needs in zip(open_rows.sizes, sizes, strict=True)):
                    return open_rows
                # Give it up for one that is large enough for both calls: layers that take turns then share memory.
                sizes = tuple(map(max, sizes, open_rows.sizes))
        return OpenRows(tuple(1 << max(size - 1, 0).bit_length() for size in sizes), device)


def _give_back(open_rows: OpenRows) -> None:
    if open_rows.event is None:
        open_rows.alive = ()
        _free.append(open_rows)
    elif _is_capturing():
        _captured.append(open_rows)
    else:
        open_rows.event.record(torch.cuda.current_stream(open_rows.device))
        with _lock:
            _queued.append(open_rows)


def solve_on_cpu(solver, inputs, outputs, *numbers: float, support: torch.Tensor | None = None) -> list[torch.Tensor]:
    """Queue `solver` for all rows; return tensors like `outputs` on the device.

    The solver's arguments, from `open_rows_cpu.VALUES` on, are the addresses of `inputs` and `outputs`, and `numbers`.
    """
    rows, device = len(inputs[0]), inputs[0].device
    contiguous = torch.contiguous_format
    results = [torch.empty_like(output, device=device, memory_format=contiguous) for output in outputs]
    if rows == 0:
        return results
    tensors = (*inputs, *results)
    units = ((tensor.numel() * tensor.element_size() + 7) // 8 for tensor in tensors)
    places = list(accumulate(units, initial=2 * rows))  # after the flags and the list of open rows
    with borrow((0, places[-1], 0), device) as open_rows:
        blocks = [
            open_rows.integers[start:end].view(tensor.dtype)[: tensor.numel()].view(tensor.shape)
            for tensor, (start, end) in zip(tensors, pairwise(places), strict=True)
        ]
        addresses = [open_rows.integers.data_ptr() + 8 * place for place in places[:-1]]
        open_rows.integers[:rows] = 1  # every row is open
        for block, tensor in zip(blocks, inputs, strict=False):
            block.copy_(tensor, non_blocking=True)
        open_rows.solve(solver, rows, inputs[0] if support is None else support, *addresses, *numbers)
        for block, result in zip(blocks[len(inputs) :], results, strict=True):
            result.copy_(block, non_blocking=True)
    return results
