"""Compiled inner loops of the ops, with the same stems: `_cpu` in Numba, `_cuda` in Triton."""
