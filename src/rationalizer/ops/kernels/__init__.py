"""Compiled inner loops, one file per op: `<op>_cpu.py` is Numba."""
