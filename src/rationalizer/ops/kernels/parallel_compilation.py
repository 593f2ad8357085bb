"""Compile kernels in subprocesses, while the process that needs them does something else.

Numba compiles under one lock, so only processes compile in parallel. A subprocess leaves its kernels in the cache on
disk. The first call of such a kernel waits for the subprocess and loads it from there, or compiles it if it is missing.

    python -P parallel_compilation.py FOLDER_OF_OPS [[MODULE, KERNEL, TYPES], ...]
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

_TYPES = {"i": "int64", "f": "float64", "b": "boolean", "u": "uint64", "c": "uint8"}
_LONGEST_WAIT = 300.0  # seconds; compiling takes 10 on an idle machine
_running: dict[tuple[str, str], subprocess.Popen[bytes]] = {}  # by module and name of the kernel


def start(groups: Sequence[Sequence[tuple[Any, str]]]) -> None:
    """Compile kernels, each group in a subprocess, unless they are in the cache or cannot be written to it.

    Args:
        groups: kernels and the types of their arguments: "i f2 b1" for an int64, a C-contiguous float64 array of two
            dimensions and a Boolean array of one.
    """
    if (os.cpu_count() or 1) < 2 or not sys.executable:
        return
    for group in groups:
        kernels = [(_name(kernel.py_func), types) for kernel, types in group if _is_missing(kernel)]
        kernels = [(name, types) for name, types in kernels if name not in _running]
        if kernels:
            with suppress(OSError):
                process = _spawn([(*name, types) for name, types in kernels])
                _running.update({name: process for name, _ in kernels})


def wait(function: Callable[..., Any]) -> None:
    """Wait until no subprocess compiles the kernel any more."""
    process = _running.get(_name(function))
    if process is not None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LONGEST_WAIT)


def argument_types(types: str) -> tuple[Any, ...]:
    """Return Numba's types: `argument_types("i f2")` is (int64, float64[:, ::1])."""
    import numba

    scalars = [(getattr(numba, _TYPES[each[0]]), int(each[1:] or 0)) for each in types.split()]
    return tuple(numba.types.Array(scalar, dims, "C") if dims else scalar for scalar, dims in scalars)


def _name(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__module__, function.__name__


def _is_missing(kernel: Any) -> bool:
    """Whether a kernel can be cached and is not. Undocumented parts of Numba may be missing; then it cannot."""
    try:
        return bool(kernel.kernel._cache.is_empty())
    except Exception:
        return False


def _spawn(kernels: list[tuple[str, str, str]]) -> subprocess.Popen[bytes]:
    from numba.core import config

    ops = Path(__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(ops.parents[1])}
    if config.CACHE_DIR:  # type: ignore[attr-defined]
        environment["NUMBA_CACHE_DIR"] = str(config.CACHE_DIR)  # type: ignore[attr-defined]
    process = subprocess.Popen(
        [sys.executable, "-P", __file__, str(ops), json.dumps(kernels)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(process.kill)
    return process


def _compile(ops: str, kernels: list[tuple[str, str, str]]) -> None:
    # Kernels do not need the modules of the ops, which import PyTorch.
    package = ModuleType("rationalizer.ops")
    package.__path__ = [ops]
    sys.modules["rationalizer.ops"] = package
    for module, name, types in kernels:
        getattr(import_module(module), name).kernel.compile(argument_types(types))


if __name__ == "__main__":
    _compile(sys.argv[1], json.loads(sys.argv[2]))
