"""Freed memory is kept during training."""

from __future__ import annotations

import ctypes

from rationalizer.training import kept_memory
from rationalizer.training.kept_memory import freed_memory_kept


class _Library:
    """Records the calls of the C library."""

    def __init__(self):
        self.calls = []

    def mallopt(self, option, value):
        self.calls.append((option, value))

    def malloc_trim(self, pad):
        self.calls.append("trim")


def test_memory_is_returned_at_the_end_even_after_an_error(monkeypatch):
    library = _Library()
    monkeypatch.setattr(kept_memory, "_glibc", lambda: library)
    training = freed_memory_kept()
    training.__enter__()
    during = dict(library.calls)
    assert not training.__exit__(KeyError, KeyError("failed"), None)
    assert min(during.values()) >= 1 << 30
    after = dict(library.calls[len(during) : -1])
    assert after.keys() == during.keys()
    assert max(after.values()) < 1 << 30
    assert library.calls[-1] == "trim"


def test_other_c_libraries_change_nothing(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    with freed_memory_kept():
        pass
