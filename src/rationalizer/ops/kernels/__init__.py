"""Compiled inner loops of the ops, under the same stem: `_cpu` in Numba, `_cuda` in Triton."""


def support_capacity(n: int) -> int:
    """How many sequences a row of n tokens may mix on CUDA: what any row needs, up to a bound on the memory it takes.

    Memory there is taken whether it is written to or not. A row that needs more stops short and says so.
    """
    return min(n + 2, 512)
