"""Compiled inner loops of the engine (Numba)."""
