"""Compiled inner loops of the ops, under the same stem: `_cpu` in Numba, `_cuda` in Triton."""
