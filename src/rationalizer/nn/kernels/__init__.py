"""Compiled inner loops of networks (Numba)."""
