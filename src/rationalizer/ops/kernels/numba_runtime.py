"""Compile the CPU kernels and run them on several threads.

A kernel is a serial function `kernel(first_row, last_row, *arrays)` that releases the GIL. Rows are distributed over
our own thread pool instead of Numba's threading layers: several Python threads may enter it at once (those of a web
server or of autograd), it survives a fork (data-loader workers), and a free thread takes the next piece of work, which
matters because rows differ in difficulty.
"""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba.core import config
from numba.extending import overload

if TYPE_CHECKING:
    import torch  # functions import it, because processes that only compile kernels do without it

# Versions of Numba that `numba_compiler`, which uses undocumented parts of Numba, was tested with. With any other
# version kernels are compiled by documented means only: compiling takes about 2.4 times as long, and they run as fast.
TESTED = ("0.64", "0.65", "0.66", "0.67", "0.68")


def jit(function: Callable[..., Any]) -> Any:
    """Compile a function that releases the GIL, cached on disk so that a second process does not compile it again."""
    return _compile(function)


def reordering(function: Callable[..., Any]) -> Any:
    """`jit` with sums that may be reordered into vector lanes; equal lengths still give equal results."""
    return _compile(function, fastmath={"reassoc", "nsz", "contract"})


def overloading(function: Callable[..., Any]) -> Any:
    """Decorate a function that chooses, by the types of the arguments, the implementation of `function` in kernels."""
    compiler = fast_compiler()
    options: Any = {} if compiler is None else {"pipeline_class": compiler.CalleeCompiler}
    return overload(function, jit_options=options)


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # slow, but with Python tracebacks
        return function
    options |= {"nogil": True, "error_model": "numpy"}
    compiler = fast_compiler()
    if compiler is not None:
        try:
            return compiler.Compiled(function, **options)
        except Exception as error:
            warn_plain_compilation(error)
    return compile_plainly(function, **options)


@cache
def fast_compiler() -> Any:
    """Return the module that compiles every function once; None if this version of Numba is not supported."""
    if numba.__version__.rpartition(".")[0] not in TESTED:
        warn_plain_compilation("the version was not tested")
        return None
    try:
        from rationalizer.ops.kernels import numba_compiler
    except Exception as error:
        warn_plain_compilation(error)
        return None
    return numba_compiler


_warned = False


def warn_plain_compilation(reason: object) -> None:
    """Warn, once per process, that kernels are compiled by documented means only."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"Numba {numba.__version__}: compiling kernels takes longer than with a tested version "
            f"({TESTED[0]} to {TESTED[-1]}): {reason}. Results and speed of the kernels are the same.",
            RuntimeWarning,
            stacklevel=3,
        )


def compile_plainly(function: Callable[..., Any], **options: Any) -> Any:
    """Compile by documented means only, cached on disk."""
    return _cached(numba.njit, **options)(function)


_compiling = threading.RLock()


def c_address(function: Callable[..., Any]) -> int:
    """Compile `function(address: int64)`, which returns nothing, for callers in C; return where it is in memory."""
    with _compiling:  # several threads may be the first
        return _c_address(function)


@cache
def _c_address(function: Callable[..., Any]) -> int:
    compiler = fast_compiler()
    options: Any = {} if compiler is None else {"pipeline_class": compiler.KernelCompiler}
    signature = numba.void(numba.int64)
    return int(_cached(numba.cfunc, signature, error_model="numpy", **options)(function).address)


def _cached(decorator: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[..., Any]:
    """Return a decorator of Numba that uses a cache on disk, if there is a writable folder."""

    def decorate(function: Callable[..., Any]) -> Any:
        # Numba invalidates its disk cache when a function's own file changes, but not the files of the functions it
        # calls. One cache folder for each state of all sources does.
        folder = config.CACHE_DIR  # type: ignore[attr-defined]
        parent = Path(folder) if folder else Path(__file__).parent / "__pycache__"
        config.CACHE_DIR = str(parent / source_hash()[:16])  # type: ignore[attr-defined]
        try:
            return decorator(*arguments, cache=True, **options)(function)
        except RuntimeError:  # no folder is writable: every process compiles again
            return decorator(*arguments, **options)(function)
        finally:
            config.CACHE_DIR = folder  # type: ignore[attr-defined]

    return decorate


@cache
def source_hash() -> str:
    """Return the key of the disk cache: a hash of all kernel sources, because a kernel contains its callees' code."""
    package = Path(__file__).parents[2]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(package.rglob("*_cpu.py")))).hexdigest()


def host(tensor: torch.Tensor) -> Any:
    """Return the tensor as a C-contiguous NumPy array: without a copy if it is a contiguous CPU tensor."""
    return tensor.detach().cpu().contiguous().numpy()


def unsigned(tensor: torch.Tensor) -> Any:
    """Return an int64 tensor of bits as a uint64 array."""
    return host(tensor).view("uint64")


def _arrays(values: tuple[Any, ...]) -> list[Any]:
    import torch

    return [host(value) if isinstance(value, torch.Tensor) else value for value in values]


_PIECES_PER_THREAD = 4
_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def _drop_pool() -> None:
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_drop_pool)


def _workers(count: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    if _pool is None or _pool_size < count:
        _pool = ThreadPoolExecutor(max_workers=count, thread_name_prefix="rationalizer")
        _pool_size = count
    return _pool


def for_rows(kernel: Callable[..., None], rows: int, work: int, *values: Any) -> None:
    """Run `kernel(first, last, *values)` over all rows, tensors as arrays.

    `work`, an estimate of the run time in ns, decides whether threads are worth starting.
    """
    import torch

    arguments = _arrays(values)
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


def for_slow_rows(kernel: Callable[..., None], rows: int, *values: Any) -> None:
    """Run `kernel(row, row + 1, stop, *values)` for each row, tensors as arrays; one row may take seconds.

    Compiled code does not see signals, so all rows run in other threads while the calling thread waits, where Ctrl-C
    (or a SIGTERM handler) reaches it. Kernels check `stop[0]` in every iteration and end when it is set.
    """
    import torch

    if rows == 0:
        return
    arguments = _arrays(values)
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
