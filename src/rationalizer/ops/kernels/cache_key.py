"""What compiled kernels on disk belong to."""

import hashlib
from functools import cache
from pathlib import Path


@cache
def all_sources() -> str:
    """Numba keys its disk cache on a function's own file, although code from the files it calls is compiled in. All
    kernels of the package together are the right key: with it an upgrade, or an edit, never runs yesterday's code."""
    package = Path(__file__).parents[2]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(package.rglob("*_cpu.py")))).hexdigest()
