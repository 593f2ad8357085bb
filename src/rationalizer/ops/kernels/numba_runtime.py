"""How the CPU kernels are compiled and spread over threads.

A kernel is a serial function `kernel(first_row, last_row, *arrays)` that holds no lock. Rows are handed to a thread
pool of our own rather than to Numba's threading layers: it may be entered from several Python threads at once (a web
server's, autograd's), survives a fork (data-loader workers), and hands a new piece to whichever thread is free, which
matters because rows differ in difficulty.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import torch
from numba.core import config
from numba.extending import overload

from rationalizer.ops.kernels.cache_key import all_sources

# Whose inside `compiled` knows. With any other kernels take minutes to compile, once, and run as fast.
TRIED = ("0.64", "0.65", "0.66", "0.67", "0.68")


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # slow, but with Python's tracebacks
        return function
    options |= {"nogil": True, "error_model": "numpy"}
    if not _known():
        return _compile_plainly(function, **options)
    from rationalizer.ops.kernels.numba_compiler import Compiled

    return Compiled(function, **options)


def _known() -> bool:
    return numba.__version__.rpartition(".")[0] in TRIED


def _compile_plainly(function: Callable[..., Any], **options: Any) -> Any:
    """By nothing but what Numba documents, but for the key of its cache."""
    compiled: Any = numba.njit(**options)(function)
    with suppress(RuntimeError):  # no folder can be written to: each process compiles anew
        compiled.enable_caching()
        compiled._cache._cache_file._source_stamp = all_sources()
    return compiled


def jit(function: Callable[..., Any]) -> Any:
    """Compile without the GIL, cached on disk so that a second process does not compile again."""
    return _compile(function)


def reordering(function: Callable[..., Any]) -> Any:
    """`jit` for sums whose order does not matter: split into vector lanes, yet the same for the same length."""
    return _compile(function, fastmath={"reassoc", "nsz", "contract"})


def overloading(function: Callable[..., Any]) -> Any:
    """Decorates what chooses, by the types of arguments, the code for `function` in kernels."""
    options: Any = {}
    if _known():
        from rationalizer.ops.kernels.numba_compiler import PartCompiler

        options = {"pipeline_class": PartCompiler}
    return overload(function, jit_options=options)


_PIECES_PER_THREAD = 4
_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def _forget_pool() -> None:
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_forget_pool)


def _workers(count: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    if _pool is None or _pool_size < count:
        _pool = ThreadPoolExecutor(max_workers=count, thread_name_prefix="rationalizer")
        _pool_size = count
    return _pool


def for_rows(kernel: Callable[..., None], rows: int, work: int, *arguments: Any) -> None:
    """Run `kernel(first, last, *arguments)` over all rows; `work` (about 1 ns each) decides whether threads pay."""
    threads = min(torch.get_num_threads(), rows)
    if threads <= 1 or work < 50_000:
        kernel(0, rows, *arguments)
        return
    pool = _workers(threads - 1)
    pieces = min(rows, threads * _PIECES_PER_THREAD)
    bounds = [rows * piece // pieces for piece in range(pieces + 1)]
    queue = iter(list(pairwise(bounds)))  # next() on it is atomic under the GIL

    def drain() -> None:
        for first, last in queue:
            kernel(first, last, *arguments)

    others = [pool.submit(drain) for _ in range(threads - 1)]
    drain()
    for other in others:
        other.result()


def for_slow_rows(kernel: Callable[..., None], rows: int, *arguments: Any) -> None:
    """Run `kernel(row, row + 1, stop, *arguments)` for each row, where one may take seconds.

    Compiled code does not see signals, so all of it runs in other threads, while the one that called waits, where
    Ctrl-C (or a handler of SIGTERM) reaches it. Kernels look at `stop[0]` in every iteration and end when it is set.
    """
    stop = np.zeros(1, np.uint8)
    threads = min(torch.get_num_threads(), rows)
    queue = iter(range(rows))

    def drain() -> None:
        for row in queue:
            if stop[0] == 0:
                kernel(row, row + 1, stop, *arguments)

    pool = _workers(threads)
    tasks = [pool.submit(drain) for _ in range(threads)]
    try:
        wait(tasks)
    except BaseException:
        stop[0] = 1
        wait(tasks)
        raise
    for task in tasks:
        task.result()
